"""Logging of training runs into files of JSON lines, and reading them while they grow.

`SummaryWriter` has the interface of ``torch.utils.tensorboard.SummaryWriter`` and needs no
package; ``python -m tensorflow_lite_clone watch FOLDER`` shows what it writes.
"""

from __future__ import annotations

from tensorflow_lite_clone.utils.runs.log import FileWriter
from tensorflow_lite_clone.utils.runs.reader import Event, Reader
from tensorflow_lite_clone.utils.runs.writer import SummaryWriter

__all__ = ["Event", "FileWriter", "Reader", "SummaryWriter"]
