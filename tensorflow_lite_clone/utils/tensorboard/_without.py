"""`SummaryWriter` where the package tensorboard is not installed."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from tensorflow_lite_clone.utils import runs
from tensorflow_lite_clone.utils.runs import FileWriter

__all__ = ["FileWriter", "SummaryWriter"]


@functools.cache
def _say_once() -> None:
    warnings.warn(
        "tensorboard is not installed: SummaryWriter writes JSON lines, which `python -m "
        "tensorflow_lite_clone watch FOLDER` shows; for TensorBoard's files: pip install "
        "tensorboard",
        stacklevel=3,
    )


class SummaryWriter(runs.SummaryWriter):
    """`utils.runs.SummaryWriter`, which says once that it takes the place of another."""

    @functools.wraps(runs.SummaryWriter.__init__)
    def __init__(self, *arguments: Any, **options: Any) -> None:
        _say_once()
        super().__init__(*arguments, **options)
