"""Forwards to `python -m tensorflow_lite_clone.kernels check [--arch sm_90] FILE...`."""

from __future__ import annotations

import sys

from tensorflow_lite_clone.kernels.__main__ import main

if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word.startswith("sm_")]
    paths = [word for word in sys.argv[1:] if not word.startswith("sm_")]
    sys.exit(main(["check", *(["--arch", ",".join(names)] if names else []), *paths]))
