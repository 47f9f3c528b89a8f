"""Writing what TensorBoard shows, as ``torch.utils.tensorboard``.

The files are made with TensorBoard's own writer; TensorFlow is not needed. Where the package
tensorboard is not installed, `SummaryWriter` is that of `utils.runs`.
"""

from __future__ import annotations

try:
    from tensorboard.summary.writer.record_writer import RecordWriter
except ImportError:
    from tensorflow_lite_clone.utils.tensorboard._without import FileWriter, SummaryWriter

    __all__ = ["FileWriter", "SummaryWriter"]
else:
    from tensorflow_lite_clone.utils.tensorboard import summary, writer
    from tensorflow_lite_clone.utils.tensorboard.writer import (  # type: ignore[assignment]
        FileWriter,
        SummaryWriter,
    )

    __all__ = ["FileWriter", "RecordWriter", "SummaryWriter", "summary", "writer"]
