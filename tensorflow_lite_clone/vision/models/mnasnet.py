"""MNASNet: Tan et al., Platform-Aware Neural Architecture Search for Mobile, 2018."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import _make_divisible, initialize

__all__ = [
    "MNASNet",
    "MNASNet0_5_Weights",
    "MNASNet0_75_Weights",
    "MNASNet1_0_Weights",
    "MNASNet1_3_Weights",
    "mnasnet0_5",
    "mnasnet0_75",
    "mnasnet1_0",
    "mnasnet1_3",
]


class MNASNet0_5_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("mnasnet0.5_top1_67.823-3ffadce67e.pth", 2_218_512)
    DEFAULT = IMAGENET1K_V1


class MNASNet0_75_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("mnasnet0_75-7090bc5f.pth", 3_170_208, resize_size=232)
    DEFAULT = IMAGENET1K_V1


class MNASNet1_0_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("mnasnet1.0_top1_73.512-f206786ef8.pth", 4_383_312)
    DEFAULT = IMAGENET1K_V1


class MNASNet1_3_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("mnasnet1_3-a4c69d6f.pth", 6_282_256, resize_size=232)
    DEFAULT = IMAGENET1K_V1


# The paper's batch norm decay of 0.9997, as PyTorch counts it.
MOMENTUM = 1 - 0.9997


def _conv(inp: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    """A convolution that keeps the size at stride 1, and its norm."""
    convolution = nn.Conv2d(
        inp, out, kernel, padding=kernel // 2, stride=stride, groups=groups, bias=False
    )
    return [convolution, nn.BatchNorm2d(out, momentum=MOMENTUM)]


class _InvertedResidual(nn.Module):
    """Widens, filters each channel, narrows; with a shortcut where the shape stays.

    Raises ValueError for a stride other than 1 and 2, or a kernel other than 3 and 5.
    """

    def __init__(
        self, in_ch: int, out_ch: int, kernel_size: int, stride: int, expansion_factor: int
    ) -> None:
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        if kernel_size not in (3, 5):
            raise ValueError(f"kernel_size should be 3 or 5 instead of {kernel_size}")
        wide = in_ch * expansion_factor
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(
            *_conv(in_ch, wide, 1),
            nn.ReLU(inplace=True),
            *_conv(wide, wide, kernel_size, stride, groups=wide),
            nn.ReLU(inplace=True),
            *_conv(wide, out_ch, 1),
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.layers(input) + input if self.apply_residual else self.layers(input)


# Channels, kernel, stride, expansion, repetitions.
STACKS = [
    (24, 3, 2, 3, 3),
    (40, 5, 2, 3, 3),
    (80, 5, 2, 6, 3),
    (96, 3, 1, 6, 2),
    (192, 5, 2, 6, 4),
    (320, 3, 1, 6, 1),
]


class MNASNet(nn.Module):
    """MNASNet-B1 over pictures (N, 3, H, W); `alpha` scales its widths, ValueError unless > 0."""

    _version = 2

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha = alpha
        self.num_classes = num_classes
        first, channels = (_make_divisible(width * alpha, 8) for width in (32, 16))
        layers = [
            *_conv(3, first, 3, stride=2),
            nn.ReLU(inplace=True),
            *_conv(first, first, 3, groups=first),
            nn.ReLU(inplace=True),
            *_conv(first, channels, 1),
        ]
        for wide, kernel, stride, expansion, repetitions in STACKS:
            width = _make_divisible(wide * alpha, 8)
            stack = [_InvertedResidual(channels, width, kernel, stride, expansion)]
            for _ in range(repetitions - 1):
                stack.append(_InvertedResidual(width, width, kernel, 1, expansion))
            layers.append(nn.Sequential(*stack))
            channels = width
        self.layers = nn.Sequential(*layers, *_conv(channels, 1280, 1), nn.ReLU(inplace=True))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes)
        )
        linear = partial(init.kaiming_uniform_, mode="fan_out", nonlinearity="sigmoid")
        initialize(self, linear)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.layers(x).mean([2, 3]))


@register_model(MNASNet0_5_Weights)
def mnasnet0_5(**kwargs: Any) -> MNASNet:
    """MNASNet, 0.5 times as wide."""
    return MNASNet(0.5, **kwargs)


@register_model(MNASNet0_75_Weights)
def mnasnet0_75(**kwargs: Any) -> MNASNet:
    """MNASNet, 0.75 times as wide."""
    return MNASNet(0.75, **kwargs)


@register_model(MNASNet1_0_Weights)
def mnasnet1_0(**kwargs: Any) -> MNASNet:
    """MNASNet, 1.0 times as wide."""
    return MNASNet(1.0, **kwargs)


@register_model(MNASNet1_3_Weights)
def mnasnet1_3(**kwargs: Any) -> MNASNet:
    """MNASNet, 1.3 times as wide."""
    return MNASNet(1.3, **kwargs)
