"""`SummaryWriter` where the package tensorboard is not installed."""

from __future__ import annotations

import functools
import warnings

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.utils import runs
from tensorflow_lite_clone.utils.runs import FileWriter

__all__ = ["FileWriter", "SummaryWriter"]


@functools.cache
def _say_once() -> None:
    warnings.warn(
        "tensorboard is not installed: SummaryWriter writes JSON lines, which `python -m "
        "tensorflow_lite_clone watch FOLDER` shows; for TensorBoard's files: pip install "
        "tensorboard",
        stacklevel=level_outside(),
    )


class SummaryWriter(runs.SummaryWriter):
    """`utils.runs.SummaryWriter`, which says once that it takes the place of another."""

    def _open_file(self, folder: str) -> FileWriter:
        _say_once()
        return super()._open_file(folder)
