"""Writing what TensorBoard shows, as ``torch.utils.tensorboard``; it needs the package tensorboard.

The files are made with TensorBoard's own writer; TensorFlow is not needed.
"""

from __future__ import annotations

try:
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError as error:
    raise ImportError(
        "tensorflow_lite_clone.utils.tensorboard needs tensorboard: pip install tensorboard"
    ) from error

from tensorflow_lite_clone.utils.tensorboard import summary, writer
from tensorflow_lite_clone.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter", "summary", "writer"]
