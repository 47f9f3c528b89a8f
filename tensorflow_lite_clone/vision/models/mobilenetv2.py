"""MobileNetV2: Sandler et al., Inverted Residuals and Linear Bottlenecks, 2018."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import _make_divisible, initialize
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation

__all__ = ["MobileNetV2", "MobileNet_V2_Weights", "mobilenet_v2"]


class MobileNet_V2_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("mobilenet_v2-b0353104.pth", 3_504_872)
    IMAGENET1K_V2 = imagenet("mobilenet_v2-7ebf99e0.pth", 3_504_872, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class InvertedResidual(nn.Module):
    """Widens by `expand_ratio`, filters each channel, narrows without an activation.

    Raises ValueError for a stride other than 1 and 2.
    """

    def __init__(
        self,
        inp: int,
        oup: int,
        stride: int,
        expand_ratio: int,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm_layer = norm_layer or nn.BatchNorm2d
        self.stride = stride
        self.use_res_connect = stride == 1 and inp == oup
        self.out_channels = oup
        self._is_cn = stride > 1
        hidden = round(inp * expand_ratio)
        common: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        layers: list[nn.Module] = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, hidden, kernel_size=1, **common))
        layers += [
            Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, **common),
            nn.Conv2d(hidden, oup, 1, 1, 0, bias=False),
            norm_layer(oup),
        ]
        self.conv = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


# Table 2 of the paper: expansion, channels, repetitions, stride of the first.
SETTING = [
    [1, 16, 1, 1],
    [6, 24, 2, 2],
    [6, 32, 3, 2],
    [6, 64, 4, 2],
    [6, 96, 3, 1],
    [6, 160, 3, 2],
    [6, 320, 1, 1],
]


class MobileNetV2(nn.Module):
    """Inverted residuals over pictures (N, 3, H, W); `width_mult` scales all widths.

    Raises ValueError if the setting's rows are not of four numbers.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: Sequence[Sequence[int]] | None = None,
        round_nearest: int = 8,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        block = block or InvertedResidual
        norm_layer = norm_layer or nn.BatchNorm2d
        setting = SETTING if inverted_residual_setting is None else inverted_residual_setting
        if not setting or len(setting[0]) != 4:
            raise ValueError(
                "inverted_residual_setting should be non-empty or a 4-element list, got "
                f"{inverted_residual_setting}"
            )
        channels = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        common: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.ReLU6}
        features: list[nn.Module] = [Conv2dNormActivation(3, channels, stride=2, **common)]
        for expansion, wide, repetitions, first_stride in setting:
            width = _make_divisible(wide * width_mult, round_nearest)
            for index in range(repetitions):
                stride = first_stride if index == 0 else 1
                features.append(
                    block(channels, width, stride, expand_ratio=expansion, norm_layer=norm_layer)
                )
                channels = width
        features.append(Conv2dNormActivation(channels, self.last_channel, kernel_size=1, **common))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes)
        )
        initialize(self)

    def forward(self, x: Tensor) -> Tensor:
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(flatten(x, 1))


@register_model(MobileNet_V2_Weights)
def mobilenet_v2(**kwargs: Any) -> MobileNetV2:
    """MobileNetV2."""
    return MobileNetV2(**kwargs)
