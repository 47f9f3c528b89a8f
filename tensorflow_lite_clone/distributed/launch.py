"""``python -m torch.distributed.launch``: the older name of the launcher."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.run import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
