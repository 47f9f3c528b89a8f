"""``python -m tensorflow_lite_clone script.py``: see `dropin.run`."""

from __future__ import annotations

import sys

from tensorflow_lite_clone.dropin.run import main

if __name__ == "__main__":
    sys.exit(main())
