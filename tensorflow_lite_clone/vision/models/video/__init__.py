"""Models that say what happens in a video."""

from __future__ import annotations

from tensorflow_lite_clone.vision.models.video.resnet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.video.s3d import *  # noqa: F403
