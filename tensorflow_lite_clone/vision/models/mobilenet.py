"""The MobileNets."""

from __future__ import annotations

from tensorflow_lite_clone.vision.models.mobilenetv2 import *  # noqa: F403
from tensorflow_lite_clone.vision.models.mobilenetv2 import __all__ as _v2
from tensorflow_lite_clone.vision.models.mobilenetv3 import *  # noqa: F403
from tensorflow_lite_clone.vision.models.mobilenetv3 import __all__ as _v3

__all__ = [*_v2, *_v3]  # noqa: PLE0604
