"""``python -m torch.distributed.launch``: the older name of the launcher."""

from __future__ import annotations

import sys

from tensorflow_lite_clone.distributed.run import command_line, main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(command_line())
