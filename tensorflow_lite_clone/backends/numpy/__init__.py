"""The CPU backend over NumPy."""

from __future__ import annotations

from tensorflow_lite_clone.backends.numpy.backend import backend

__all__ = ["backend"]
