"""SqueezeNet: Iandola et al., AlexNet-level accuracy with 50x fewer parameters, 2016."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import zero_bias

__all__ = [
    "SqueezeNet",
    "SqueezeNet1_0_Weights",
    "SqueezeNet1_1_Weights",
    "squeezenet1_0",
    "squeezenet1_1",
]


class SqueezeNet1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("squeezenet1_0-b66bff10.pth", 1_248_424, min_size=21)
    DEFAULT = IMAGENET1K_V1


class SqueezeNet1_1_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("squeezenet1_1-b8a52dc0.pth", 1_235_496, min_size=17)
    DEFAULT = IMAGENET1K_V1


class Fire(nn.Module):
    """A 1 x 1 convolution that narrows, then 1 x 1 and 3 x 3 side by side."""

    def __init__(
        self, inplanes: int, squeeze_planes: int, expand1x1_planes: int, expand3x3_planes: int
    ) -> None:
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.squeeze_activation(self.squeeze(x))
        narrow = self.expand1x1_activation(self.expand1x1(x))
        return cat([narrow, self.expand3x3_activation(self.expand3x3(x))], 1)


# The widths of the eight fire modules: squeezed, and each half when expanded.
FIRES = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
# The first convolution, and how many fires lie between the poolings.
VERSIONS = {"1_0": ((96, 7), (3, 4, 1)), "1_1": ((64, 3), (2, 2, 4))}


class SqueezeNet(nn.Module):
    """Fire modules and a convolutional classifier over pictures (N, 3, H, W).

    Raises ValueError for a version other than "1_0" and "1_1".
    """

    def __init__(self, version: str = "1_0", num_classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.num_classes = num_classes
        if version not in VERSIONS:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        (channels, kernel), groups = VERSIONS[version]
        layers: list[nn.Module] = [
            nn.Conv2d(3, channels, kernel_size=kernel, stride=2),
            nn.ReLU(inplace=True),
        ]
        fires = iter(FIRES)
        for count in groups:
            layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
            for _ in range(count):
                squeezed, half = next(fires)
                layers.append(Fire(channels, squeezed, half, half))
                channels = 2 * half
        self.features = nn.Sequential(*layers)
        final = nn.Conv2d(channels, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), final, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                if module is final:
                    init.normal_(module.weight, mean=0.0, std=0.01)
                else:
                    init.kaiming_uniform_(module.weight)
                zero_bias(module)

    def forward(self, x: Tensor) -> Tensor:
        return flatten(self.classifier(self.features(x)), 1)


@register_model(SqueezeNet1_0_Weights)
def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet as in the paper."""
    return SqueezeNet("1_0", **kwargs)


@register_model(SqueezeNet1_1_Weights)
def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1, which pools earlier and computes less than half."""
    return SqueezeNet("1_1", **kwargs)
