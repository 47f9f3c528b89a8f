"""Models with torchvision's names: `resnet18()`, `get_model("resnet18")`."""

from __future__ import annotations

from tensorflow_lite_clone.vision.models import detection as detection
from tensorflow_lite_clone.vision.models import feature_extraction as feature_extraction
from tensorflow_lite_clone.vision.models import segmentation as segmentation
from tensorflow_lite_clone.vision.models import video as video
from tensorflow_lite_clone.vision.models._api import *  # noqa: F403
from tensorflow_lite_clone.vision.models.alexnet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.convnext import *  # noqa: F403
from tensorflow_lite_clone.vision.models.densenet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.efficientnet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.googlenet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.inception import *  # noqa: F403
from tensorflow_lite_clone.vision.models.mnasnet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.mobilenet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.regnet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.resnet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.shufflenetv2 import *  # noqa: F403
from tensorflow_lite_clone.vision.models.squeezenet import *  # noqa: F403
from tensorflow_lite_clone.vision.models.swin_transformer import *  # noqa: F403
from tensorflow_lite_clone.vision.models.vgg import *  # noqa: F403
from tensorflow_lite_clone.vision.models.vision_transformer import *  # noqa: F403
