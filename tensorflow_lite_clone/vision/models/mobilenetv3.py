"""MobileNetV3: Howard et al., Searching for MobileNetV3, 2019."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import _make_divisible, initialize
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "MobileNetV3",
    "MobileNet_V3_Large_Weights",
    "MobileNet_V3_Small_Weights",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
]


class MobileNet_V3_Large_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("mobilenet_v3_large-8738ca79.pth", 5_483_032)
    IMAGENET1K_V2 = imagenet("mobilenet_v3_large-5c1a4163.pth", 5_483_032, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class MobileNet_V3_Small_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("mobilenet_v3_small-047dcff4.pth", 2_542_856)
    DEFAULT = IMAGENET1K_V1


class InvertedResidualConfig:
    """A row of the paper's tables 1 and 2, with widths scaled; activation "RE" or "HS"."""

    def __init__(
        self,
        input_channels: int,
        kernel: int,
        expanded_channels: int,
        out_channels: int,
        use_se: bool,
        activation: str,
        stride: int,
        dilation: int,
        width_mult: float,
    ) -> None:
        self.input_channels = self.adjust_channels(input_channels, width_mult)
        self.kernel = kernel
        self.expanded_channels = self.adjust_channels(expanded_channels, width_mult)
        self.out_channels = self.adjust_channels(out_channels, width_mult)
        self.use_se = use_se
        self.use_hs = activation == "HS"
        self.stride = stride
        self.dilation = dilation

    @staticmethod
    def adjust_channels(channels: int, width_mult: float) -> int:
        return _make_divisible(channels * width_mult, 8)


HARD_SQUEEZE = partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)


class InvertedResidual(nn.Module):
    """Widens, filters each channel, weighs the channels, narrows.

    Raises ValueError for a stride other than 1 and 2.
    """

    def __init__(
        self,
        cnf: InvertedResidualConfig,
        norm_layer: Callable[..., nn.Module],
        se_layer: Callable[..., nn.Module] = HARD_SQUEEZE,
    ) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        wide = cnf.expanded_channels
        activation = nn.Hardswish if cnf.use_hs else nn.ReLU
        common: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation}
        layers: list[nn.Module] = []
        if wide != cnf.input_channels:
            layers.append(Conv2dNormActivation(cnf.input_channels, wide, kernel_size=1, **common))
        layers.append(
            Conv2dNormActivation(
                wide,
                wide,
                kernel_size=cnf.kernel,
                stride=1 if cnf.dilation > 1 else cnf.stride,
                dilation=cnf.dilation,
                groups=wide,
                **common,
            )
        )
        if cnf.use_se:
            layers.append(se_layer(wide, _make_divisible(wide // 4, 8)))
        layers.append(
            Conv2dNormActivation(
                wide, cnf.out_channels, kernel_size=1, norm_layer=norm_layer, activation_layer=None
            )
        )
        self.block = nn.Sequential(*layers)
        self.out_channels = cnf.out_channels
        self._is_cn = cnf.stride > 1

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        if self.use_res_connect:
            result += input
        return result


class MobileNetV3(nn.Module):
    """Inverted residuals and a two-layer classifier over pictures (N, 3, H, W).

    Raises ValueError for an empty setting, TypeError for one of other things than configurations.
    """

    def __init__(
        self,
        inverted_residual_setting: Sequence[InvertedResidualConfig],
        last_channel: int,
        num_classes: int = 1000,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        dropout: float = 0.2,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not inverted_residual_setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(row, InvertedResidualConfig) for row in inverted_residual_setting):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block = block or InvertedResidual
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        common: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": nn.Hardswish}
        first = inverted_residual_setting[0].input_channels
        narrow = inverted_residual_setting[-1].out_channels
        wide = 6 * narrow
        self.features = nn.Sequential(
            Conv2dNormActivation(3, first, kernel_size=3, stride=2, **common),
            *(block(row, norm_layer) for row in inverted_residual_setting),
            Conv2dNormActivation(narrow, wide, kernel_size=1, **common),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(wide, last_channel),
            nn.Hardswish(inplace=True),
            nn.Dropout(p=dropout, inplace=True),
            nn.Linear(last_channel, num_classes),
        )
        initialize(self)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x)), 1))


# Kernel, expanded channels, channels, squeeze-and-excitation, activation, stride. The last three
# rows are the tail, which can be halved and dilated.
LARGE = [
    (3, 16, 16, False, "RE", 1),
    (3, 64, 24, False, "RE", 2),
    (3, 72, 24, False, "RE", 1),
    (5, 72, 40, True, "RE", 2),
    (5, 120, 40, True, "RE", 1),
    (5, 120, 40, True, "RE", 1),
    (3, 240, 80, False, "HS", 2),
    (3, 200, 80, False, "HS", 1),
    (3, 184, 80, False, "HS", 1),
    (3, 184, 80, False, "HS", 1),
    (3, 480, 112, True, "HS", 1),
    (3, 672, 112, True, "HS", 1),
    (5, 672, 160, True, "HS", 2),
    (5, 960, 160, True, "HS", 1),
    (5, 960, 160, True, "HS", 1),
]
SMALL = [
    (3, 16, 16, True, "RE", 2),
    (3, 72, 24, False, "RE", 2),
    (3, 88, 24, False, "RE", 1),
    (5, 96, 40, True, "HS", 2),
    (5, 240, 40, True, "HS", 1),
    (5, 240, 40, True, "HS", 1),
    (5, 120, 48, True, "HS", 1),
    (5, 144, 48, True, "HS", 1),
    (5, 288, 96, True, "HS", 2),
    (5, 576, 96, True, "HS", 1),
    (5, 576, 96, True, "HS", 1),
]
ARCHITECTURES = {"mobilenet_v3_large": (LARGE, 1280), "mobilenet_v3_small": (SMALL, 1024)}


def _mobilenet_v3_conf(
    arch: str,
    width_mult: float = 1.0,
    reduced_tail: bool = False,
    dilated: bool = False,
    **kwargs: Any,
) -> tuple[list[InvertedResidualConfig], int]:
    """The rows of an architecture and its last width; ValueError for an unknown one."""
    if arch not in ARCHITECTURES:
        raise ValueError(f"Unsupported model type {arch}")
    rows, last_channel = ARCHITECTURES[arch]
    divider = 2 if reduced_tail else 1
    setting = []
    channels = 16
    for index, (kernel, wide, out, use_se, activation, stride) in enumerate(rows):
        tail = index - (len(rows) - 3)  # its first row already has the full width inside
        out = out // divider if tail >= 0 else out
        wide = wide // divider if tail > 0 else wide
        setting.append(
            InvertedResidualConfig(
                channels,
                kernel,
                wide,
                out,
                use_se,
                activation,
                stride,
                2 if dilated and tail >= 0 else 1,
                width_mult,
            )  # fmt: skip
        )
        channels = out
    adjust = InvertedResidualConfig.adjust_channels
    return setting, adjust(last_channel // divider, width_mult)


@register_model(MobileNet_V3_Large_Weights)
def mobilenet_v3_large(**kwargs: Any) -> MobileNetV3:
    """MobileNetV3, the large one."""
    return MobileNetV3(*_mobilenet_v3_conf("mobilenet_v3_large", **kwargs), **kwargs)


@register_model(MobileNet_V3_Small_Weights)
def mobilenet_v3_small(**kwargs: Any) -> MobileNetV3:
    """MobileNetV3, the small one."""
    return MobileNetV3(*_mobilenet_v3_conf("mobilenet_v3_small", **kwargs), **kwargs)
