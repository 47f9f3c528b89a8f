"""Models that find things in pictures, and say where and what they are."""

from __future__ import annotations

from tensorflow_lite_clone.vision.models.detection.faster_rcnn import *  # noqa: F403
from tensorflow_lite_clone.vision.models.detection.fcos import *  # noqa: F403
from tensorflow_lite_clone.vision.models.detection.keypoint_rcnn import *  # noqa: F403
from tensorflow_lite_clone.vision.models.detection.mask_rcnn import *  # noqa: F403
from tensorflow_lite_clone.vision.models.detection.retinanet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.detection.ssd import *  # noqa: F403
from tensorflow_lite_clone.vision.models.detection.ssdlite import *  # noqa: F403
