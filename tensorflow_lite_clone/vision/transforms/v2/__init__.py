"""The second version's transforms: of pictures, masks and boxes together, in any nest.

They draw from the default generator of tensors. See `vision.tv_tensors` for masks and boxes.
"""

from __future__ import annotations

from tensorflow_lite_clone.vision.transforms._interpolation import InterpolationMode
from tensorflow_lite_clone.vision.transforms._policies import AutoAugmentPolicy
from tensorflow_lite_clone.vision.transforms.v2 import functional
from tensorflow_lite_clone.vision.transforms.v2._auto_augment import (
    AugMix,
    AutoAugment,
    RandAugment,
    TrivialAugmentWide,
)
from tensorflow_lite_clone.vision.transforms.v2._color import (
    RGB,
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomErasing,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from tensorflow_lite_clone.vision.transforms.v2._container import (
    Compose,
    RandomApply,
    RandomChoice,
    RandomOrder,
)
from tensorflow_lite_clone.vision.transforms.v2._geometry import (
    CenterCrop,
    ElasticTransform,
    FiveCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomPerspective,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    TenCrop,
)
from tensorflow_lite_clone.vision.transforms.v2._misc import (
    ClampBoundingBoxes,
    ConvertBoundingBoxFormat,
    ConvertImageDtype,
    Identity,
    Lambda,
    LinearTransformation,
    Normalize,
    PILToTensor,
    ToDtype,
    ToImage,
    ToPILImage,
    ToPureTensor,
    ToTensor,
)
from tensorflow_lite_clone.vision.transforms.v2._mixes import CutMix, MixUp
from tensorflow_lite_clone.vision.transforms.v2._transform import Transform

__all__ = [
    "AugMix",
    "AutoAugment",
    "AutoAugmentPolicy",
    "CenterCrop",
    "ClampBoundingBoxes",
    "ColorJitter",
    "Compose",
    "ConvertBoundingBoxFormat",
    "ConvertImageDtype",
    "CutMix",
    "ElasticTransform",
    "FiveCrop",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "Identity",
    "InterpolationMode",
    "Lambda",
    "LinearTransformation",
    "MixUp",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RGB",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
    "ToDtype",
    "ToImage",
    "ToPILImage",
    "ToPureTensor",
    "ToTensor",
    "Transform",
    "TrivialAugmentWide",
    "functional",
]
