"""EfficientNet: Tan and Le, EfficientNet, 2019, and EfficientNetV2, 2021."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, bicubic, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import _make_divisible, initialize
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from tensorflow_lite_clone.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "EfficientNet",
    "EfficientNet_B0_Weights",
    "EfficientNet_B1_Weights",
    "EfficientNet_B2_Weights",
    "EfficientNet_B3_Weights",
    "EfficientNet_B4_Weights",
    "EfficientNet_B5_Weights",
    "EfficientNet_B6_Weights",
    "EfficientNet_B7_Weights",
    "EfficientNet_V2_L_Weights",
    "EfficientNet_V2_M_Weights",
    "EfficientNet_V2_S_Weights",
    "efficientnet_b0",
    "efficientnet_b1",
    "efficientnet_b2",
    "efficientnet_b3",
    "efficientnet_b4",
    "efficientnet_b5",
    "efficientnet_b6",
    "efficientnet_b7",
    "efficientnet_v2_s",
    "efficientnet_v2_m",
    "efficientnet_v2_l",
]


class EfficientNet_B0_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("efficientnet_b0_rwightman-7f5810bc.pth", 5_288_548)
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B1_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("efficientnet_b1_rwightman-bac287d4.pth", 7_794_184, crop_size=240)
    IMAGENET1K_V2 = imagenet(
        "efficientnet_b1-c27df63c.pth", 7_794_184, crop_size=240, resize_size=255
    )
    DEFAULT = IMAGENET1K_V2


class EfficientNet_B2_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("efficientnet_b2_rwightman-c35c1473.pth", 9_109_994, size=288)
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B3_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic(
        "efficientnet_b3_rwightman-b3899882.pth", 12_233_232, crop_size=300, resize_size=320
    )
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B4_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic(
        "efficientnet_b4_rwightman-23ab8bcd.pth", 19_341_616, crop_size=380, resize_size=384
    )
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B5_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("efficientnet_b5_lukemelas-1a07897c.pth", 30_389_784, size=456)
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B6_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("efficientnet_b6_lukemelas-24a108a5.pth", 43_040_704, size=528)
    DEFAULT = IMAGENET1K_V1


class EfficientNet_B7_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic("efficientnet_b7_lukemelas-c5b4e57e.pth", 66_347_960, size=600)
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_L_Weights(WeightsEnum):
    IMAGENET1K_V1 = bicubic(
        "efficientnet_v2_l-59c71312.pth",
        118_515_272,
        min_size=33,
        size=480,
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
    )
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_M_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("efficientnet_v2_m-dc08266a.pth", 54_139_356, min_size=33, size=480)
    DEFAULT = IMAGENET1K_V1


class EfficientNet_V2_S_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("efficientnet_v2_s-dd5fe13b.pth", 21_458_488, min_size=33, size=384)
    DEFAULT = IMAGENET1K_V1


@dataclass
class _MBConvConfig:
    """A stage: so many blocks, the first of which strides and changes the width."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Callable[..., nn.Module]

    @staticmethod
    def adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
        return _make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of `MBConv`, of scaled width and depth."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        width_mult: float = 1.0,
        depth_mult: float = 1.0,
        block: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(
            expand_ratio,
            kernel,
            stride,
            self.adjust_channels(input_channels, width_mult),
            self.adjust_channels(out_channels, width_mult),
            self.adjust_depth(num_layers, depth_mult),
            block or MBConv,
        )

    @staticmethod
    def adjust_depth(num_layers: int, depth_mult: float) -> int:
        return math.ceil(num_layers * depth_mult)


class FusedMBConvConfig(_MBConvConfig):
    """A stage of `FusedMBConv`."""

    def __init__(
        self,
        expand_ratio: float,
        kernel: int,
        stride: int,
        input_channels: int,
        out_channels: int,
        num_layers: int,
        block: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__(
            expand_ratio, kernel, stride, input_channels, out_channels, num_layers,
            block or FusedMBConv,
        )  # fmt: skip


class _Block(nn.Module):
    """Layers with a shortcut where the shape stays, dropped at random in training.

    Raises ValueError for a stride other than 1 and 2.
    """

    def __init__(
        self, cnf: _MBConvConfig, layers: Sequence[nn.Module], stochastic_depth_prob: float
    ) -> None:
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*layers)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    def forward(self, input: Tensor) -> Tensor:
        result = self.block(input)
        if self.use_res_connect:
            result = self.stochastic_depth(result)
            result += input
        return result


class MBConv(_Block):
    """Widens, filters each channel, weighs the channels, narrows."""

    def __init__(
        self,
        cnf: _MBConvConfig,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module],
        se_layer: Callable[..., nn.Module] = SqueezeExcitation,
    ) -> None:
        channels = cnf.input_channels
        wide = cnf.adjust_channels(channels, cnf.expand_ratio)
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer)
        layers: list[nn.Module] = []
        if wide != channels:
            layers.append(conv(channels, wide, kernel_size=1, activation_layer=nn.SiLU))
        layers.append(
            conv(
                wide,
                wide,
                kernel_size=cnf.kernel,
                stride=cnf.stride,
                groups=wide,
                activation_layer=nn.SiLU,
            )  # fmt: skip
        )
        squeezed = max(1, channels // 4)
        layers.append(se_layer(wide, squeezed, activation=partial(nn.SiLU, inplace=True)))
        layers.append(conv(wide, cnf.out_channels, kernel_size=1, activation_layer=None))
        super().__init__(cnf, layers, stochastic_depth_prob)


class FusedMBConv(_Block):
    """Widens and filters in one convolution, narrows."""

    def __init__(
        self,
        cnf: _MBConvConfig,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module],
    ) -> None:
        channels = cnf.input_channels
        wide = cnf.adjust_channels(channels, cnf.expand_ratio)
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer)
        first = partial(conv, kernel_size=cnf.kernel, stride=cnf.stride, activation_layer=nn.SiLU)
        if wide == channels:
            layers = [first(channels, cnf.out_channels)]
        else:
            narrow = conv(wide, cnf.out_channels, kernel_size=1, activation_layer=None)
            layers = [first(channels, wide), narrow]
        super().__init__(cnf, layers, stochastic_depth_prob)


class EfficientNet(nn.Module):
    """Stages of (fused) inverted residuals over pictures (N, 3, H, W).

    The probability to drop a block grows with its depth up to `stochastic_depth_prob`. Raises
    ValueError for an empty setting, TypeError for one of other things than configurations.
    """

    def __init__(
        self,
        inverted_residual_setting: Sequence[_MBConvConfig],
        dropout: float,
        stochastic_depth_prob: float = 0.2,
        num_classes: int = 1000,
        norm_layer: Callable[..., nn.Module] | None = None,
        last_channel: int | None = None,
    ) -> None:
        super().__init__()
        setting = inverted_residual_setting
        if not setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not all(isinstance(stage, _MBConvConfig) for stage in setting):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        norm_layer = norm_layer or nn.BatchNorm2d
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        features: list[nn.Module] = [conv(3, setting[0].input_channels, kernel_size=3, stride=2)]
        total = sum(stage.num_layers for stage in setting)
        done = 0
        for stage in setting:
            blocks = []
            row = stage
            for _ in range(stage.num_layers):
                probability = stochastic_depth_prob * float(done) / total
                blocks.append(stage.block(row, probability, norm_layer))
                row = _following(stage)
                done += 1
            features.append(nn.Sequential(*blocks))
        narrow = setting[-1].out_channels
        wide = 4 * narrow if last_channel is None else last_channel
        features.append(conv(narrow, wide, kernel_size=1))
        self.features = nn.Sequential(*features)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(wide, num_classes)
        )
        initialize(self, _uniform)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(flatten(self.avgpool(self.features(x)), 1))


def _uniform(weight: Tensor) -> None:
    bound = 1.0 / math.sqrt(weight.shape[0])
    init.uniform_(weight, -bound, bound)


def _following(stage: _MBConvConfig) -> _MBConvConfig:
    """The configuration of a stage's blocks behind the first."""
    following = _MBConvConfig(**vars(stage))
    return replace(following, input_channels=stage.out_channels, stride=1)


# The stages of B0, and of V2: expansion, kernel, stride, channels in and out, depth.
B0 = [
    (1, 3, 1, 32, 16, 1),
    (6, 3, 2, 16, 24, 2),
    (6, 5, 2, 24, 40, 2),
    (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3),
    (6, 5, 2, 112, 192, 4),
    (6, 3, 1, 192, 320, 1),
]
V2 = {
    "s": (
        [(1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4)],
        [(4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15)],
    ),
    "m": (
        [(1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5)],
        [(4, 3, 2, 80, 160, 7), (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18),
         (6, 3, 1, 304, 512, 5)],
    ),
    "l": (
        [(1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7)],
        [(4, 3, 2, 96, 192, 10), (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25),
         (6, 3, 1, 384, 640, 7)],
    ),
}  # fmt: skip


def _scaled(width: float, depth: float, dropout: float, /, **kwargs: Any) -> EfficientNet:
    """B0, wider and deeper."""
    setting = [MBConvConfig(*row, width_mult=width, depth_mult=depth) for row in B0]
    return EfficientNet(setting, **{"dropout": dropout, **kwargs})


def _v2(size: str, dropout: float, /, **kwargs: Any) -> EfficientNet:
    fused, separate = V2[size]
    setting = [
        *(FusedMBConvConfig(*row) for row in fused),
        *(MBConvConfig(*row) for row in separate),
    ]
    norm = partial(nn.BatchNorm2d, eps=1e-03)
    given = {"dropout": dropout, "norm_layer": norm, "last_channel": 1280, **kwargs}
    return EfficientNet(setting, **given)


SLOW_NORM = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)


@register_model(EfficientNet_B0_Weights)
def efficientnet_b0(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B0."""
    return _scaled(1.0, 1.0, 0.2, **kwargs)


@register_model(EfficientNet_B1_Weights)
def efficientnet_b1(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B1."""
    return _scaled(1.0, 1.1, 0.2, **kwargs)


@register_model(EfficientNet_B2_Weights)
def efficientnet_b2(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B2."""
    return _scaled(1.1, 1.2, 0.3, **kwargs)


@register_model(EfficientNet_B3_Weights)
def efficientnet_b3(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B3."""
    return _scaled(1.2, 1.4, 0.3, **kwargs)


@register_model(EfficientNet_B4_Weights)
def efficientnet_b4(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B4."""
    return _scaled(1.4, 1.8, 0.4, **kwargs)


@register_model(EfficientNet_B5_Weights)
def efficientnet_b5(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B5."""
    return _scaled(1.6, 2.2, 0.4, **{"norm_layer": SLOW_NORM, **kwargs})


@register_model(EfficientNet_B6_Weights)
def efficientnet_b6(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B6."""
    return _scaled(1.8, 2.6, 0.5, **{"norm_layer": SLOW_NORM, **kwargs})


@register_model(EfficientNet_B7_Weights)
def efficientnet_b7(**kwargs: Any) -> EfficientNet:
    """EfficientNet-B7."""
    return _scaled(2.0, 3.1, 0.5, **{"norm_layer": SLOW_NORM, **kwargs})


@register_model(EfficientNet_V2_S_Weights)
def efficientnet_v2_s(**kwargs: Any) -> EfficientNet:
    """EfficientNetV2, the small one."""
    return _v2("s", 0.2, **kwargs)


@register_model(EfficientNet_V2_M_Weights)
def efficientnet_v2_m(**kwargs: Any) -> EfficientNet:
    """EfficientNetV2, the medium one."""
    return _v2("m", 0.3, **kwargs)


@register_model(EfficientNet_V2_L_Weights)
def efficientnet_v2_l(**kwargs: Any) -> EfficientNet:
    """EfficientNetV2, the large one."""
    return _v2("l", 0.4, **kwargs)
