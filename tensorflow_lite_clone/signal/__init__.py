"""``torch.signal``: window functions."""

from tensorflow_lite_clone.signal import windows as windows

__all__ = ["windows"]
