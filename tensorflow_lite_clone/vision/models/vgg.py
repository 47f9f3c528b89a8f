"""VGG: Simonyan and Zisserman, Very Deep Convolutional Networks, 2014."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import initialize

__all__ = [
    "VGG",
    "VGG11_BN_Weights",
    "VGG11_Weights",
    "VGG13_BN_Weights",
    "VGG13_Weights",
    "VGG16_BN_Weights",
    "VGG16_Weights",
    "VGG19_BN_Weights",
    "VGG19_Weights",
    "vgg11",
    "vgg11_bn",
    "vgg13",
    "vgg13_bn",
    "vgg16",
    "vgg16_bn",
    "vgg19",
    "vgg19_bn",
]


class VGG11_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg11_bn-6002323d.pth", 132_868_840, min_size=32)
    DEFAULT = IMAGENET1K_V1


class VGG11_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg11-8a719046.pth", 132_863_336, min_size=32)
    DEFAULT = IMAGENET1K_V1


class VGG13_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg13_bn-abd245e5.pth", 133_053_736, min_size=32)
    DEFAULT = IMAGENET1K_V1


class VGG13_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg13-19584684.pth", 133_047_848, min_size=32)
    DEFAULT = IMAGENET1K_V1


class VGG16_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg16_bn-6c64b313.pth", 138_365_992, min_size=32)
    DEFAULT = IMAGENET1K_V1


class VGG16_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg16-397923af.pth", 138_357_544, min_size=32)
    IMAGENET1K_FEATURES = imagenet(
        "vgg16_features-amdegroot-88682ab5.pth",
        138_357_544,
        min_size=32,
        mean=(0.48235, 0.45882, 0.40784),
        std=(1 / 255, 1 / 255, 1 / 255),
    )
    DEFAULT = IMAGENET1K_V1


class VGG19_BN_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg19_bn-c79401a0.pth", 143_678_248, min_size=32)
    DEFAULT = IMAGENET1K_V1


class VGG19_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("vgg19-dcbb9e9d.pth", 143_667_240, min_size=32)
    DEFAULT = IMAGENET1K_V1


class VGG(nn.Module):
    """Given features, a pooling to 7 x 7, and three linear layers."""

    def __init__(
        self,
        features: nn.Module,
        num_classes: int = 1000,
        init_weights: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )
        if init_weights:
            initialize(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x)), 1))


def make_layers(cfg: Sequence[str | int], batch_norm: bool = False) -> nn.Sequential:
    """The features that `cfg` lists: 3 x 3 convolutions by their width, "M" for a pooling."""
    layers: list[nn.Module] = []
    channels = 3
    for width in cfg:
        if isinstance(width, str):
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
            continue
        layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(width))
        layers.append(nn.ReLU(inplace=True))
        channels = width
    return nn.Sequential(*layers)


def _configuration(*depths: int) -> list[str | int]:
    """So many convolutions in each of the five stages."""
    layers: list[str | int] = []
    for depth, width in zip(depths, (64, 128, 256, 512, 512)):
        layers += [*[width] * depth, "M"]
    return layers


# The columns A, B, D and E of the paper's table 1.
cfgs = {
    "A": _configuration(1, 1, 2, 2, 2),
    "B": _configuration(2, 2, 2, 2, 2),
    "D": _configuration(2, 2, 3, 3, 3),
    "E": _configuration(2, 2, 4, 4, 4),
}


def _unset(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    """First values that are overwritten need not be drawn."""
    kwargs["init_weights"] = False


@register_model(VGG11_Weights, arguments=_unset)
def vgg11(**kwargs: Any) -> VGG:
    """VGG-11."""
    return VGG(make_layers(cfgs["A"]), **kwargs)


@register_model(VGG11_BN_Weights, arguments=_unset)
def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG-11 with batch norm."""
    return VGG(make_layers(cfgs["A"], batch_norm=True), **kwargs)


@register_model(VGG13_Weights, arguments=_unset)
def vgg13(**kwargs: Any) -> VGG:
    """VGG-13."""
    return VGG(make_layers(cfgs["B"]), **kwargs)


@register_model(VGG13_BN_Weights, arguments=_unset)
def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG-13 with batch norm."""
    return VGG(make_layers(cfgs["B"], batch_norm=True), **kwargs)


@register_model(VGG16_Weights, arguments=_unset)
def vgg16(**kwargs: Any) -> VGG:
    """VGG-16."""
    return VGG(make_layers(cfgs["D"]), **kwargs)


@register_model(VGG16_BN_Weights, arguments=_unset)
def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG-16 with batch norm."""
    return VGG(make_layers(cfgs["D"], batch_norm=True), **kwargs)


@register_model(VGG19_Weights, arguments=_unset)
def vgg19(**kwargs: Any) -> VGG:
    """VGG-19."""
    return VGG(make_layers(cfgs["E"]), **kwargs)


@register_model(VGG19_BN_Weights, arguments=_unset)
def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG-19 with batch norm."""
    return VGG(make_layers(cfgs["E"], batch_norm=True), **kwargs)
