"""The live view of training: ``python -m tensorflow_lite_clone watch FOLDER``.

A small server of one page, which draws what `utils.runs.SummaryWriter` writes while it is written.
"""

from __future__ import annotations

from tensorflow_lite_clone.watch.server import Server

__all__ = ["Server"]
