"""Models that say of each pixel what it belongs to."""

from __future__ import annotations

from tensorflow_lite_clone.vision.models.segmentation.deeplabv3 import *  # noqa: F403
from tensorflow_lite_clone.vision.models.segmentation.fcn import *  # noqa: F403
from tensorflow_lite_clone.vision.models.segmentation.lraspp import *  # noqa: F403
