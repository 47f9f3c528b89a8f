"""Residual networks over time: Tran et al., A Closer Look at Spatiotemporal Convolutions, 2017."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, kinetics, register_model
from tensorflow_lite_clone.vision.models._utils import initialize

__all__ = [
    "MC3_18_Weights",
    "R2Plus1D_18_Weights",
    "R3D_18_Weights",
    "VideoResNet",
    "mc3_18",
    "r2plus1d_18",
    "r3d_18",
]

SIZES: dict[str, Any] = {"crop_size": (112, 112), "resize_size": (128, 171)}


class R3D_18_Weights(WeightsEnum):
    KINETICS400_V1 = kinetics("r3d_18-b3b3357e.pth", 33_371_472, **SIZES)
    DEFAULT = KINETICS400_V1


class MC3_18_Weights(WeightsEnum):
    KINETICS400_V1 = kinetics("mc3_18-a90a0ba3.pth", 11_695_440, **SIZES)
    DEFAULT = KINETICS400_V1


class R2Plus1D_18_Weights(WeightsEnum):
    KINETICS400_V1 = kinetics("r2plus1d_18-91a641e6.pth", 31_505_325, **SIZES)
    DEFAULT = KINETICS400_V1


class Conv3DSimple(nn.Conv3d):
    """A convolution over time and space."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        midplanes: int | None = None,
        stride: int = 1,
        padding: int = 1,
    ) -> None:
        super().__init__(in_planes, out_planes, 3, stride, padding, bias=False)

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        return stride, stride, stride


class Conv2Plus1D(nn.Sequential):
    """A convolution over space to `midplanes` channels, then one over time."""

    def __init__(
        self, in_planes: int, out_planes: int, midplanes: int, stride: int = 1, padding: int = 1
    ) -> None:
        space: dict[str, Any] = {"stride": (1, stride, stride), "padding": (0, padding, padding)}
        time: dict[str, Any] = {"stride": (stride, 1, 1), "padding": (padding, 0, 0)}
        super().__init__(
            nn.Conv3d(in_planes, midplanes, (1, 3, 3), **space, bias=False),
            nn.BatchNorm3d(midplanes),
            nn.ReLU(inplace=True),
            nn.Conv3d(midplanes, out_planes, (3, 1, 1), **time, bias=False),
        )

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        return stride, stride, stride


class Conv3DNoTemporal(nn.Conv3d):
    """A convolution of each picture alone."""

    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        midplanes: int | None = None,
        stride: int = 1,
        padding: int = 1,
    ) -> None:
        super().__init__(
            in_planes, out_planes, (1, 3, 3), (1, stride, stride), (0, padding, padding), bias=False
        )

    @staticmethod
    def get_downsample_stride(stride: int) -> tuple[int, int, int]:
        return 1, stride, stride


def _normed(convolution: nn.Module, width: int, *activation: nn.Module) -> nn.Sequential:
    return nn.Sequential(convolution, nn.BatchNorm3d(width), *activation)


def _midplanes(inplanes: int, planes: int) -> int:
    """How wide a `Conv2Plus1D` is inside that has the parameters of a `Conv3DSimple`."""
    return (inplanes * planes * 27) // (inplanes * 9 + 3 * planes)


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut."""

    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        middle = _midplanes(inplanes, planes)
        first = conv_builder(inplanes, planes, middle, stride)
        self.conv1 = _normed(first, planes, nn.ReLU(inplace=True))
        self.conv2 = _normed(conv_builder(planes, planes, middle), planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(self.conv2(self.conv1(x)) + shortcut)


class Bottleneck(nn.Module):
    """A convolution between two of one pixel, and a shortcut."""

    expansion = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        conv_builder: Callable[..., nn.Module],
        stride: int = 1,
        downsample: nn.Module | None = None,
    ) -> None:
        super().__init__()
        middle, wide = _midplanes(inplanes, planes), planes * self.expansion
        narrow = nn.Conv3d(inplanes, planes, kernel_size=1, bias=False)
        self.conv1 = _normed(narrow, planes, nn.ReLU(inplace=True))
        inner = conv_builder(planes, planes, middle, stride)
        self.conv2 = _normed(inner, planes, nn.ReLU(inplace=True))
        self.conv3 = _normed(nn.Conv3d(planes, wide, kernel_size=1, bias=False), wide)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(self.conv3(self.conv2(self.conv1(x))) + shortcut)


class BasicStem(nn.Sequential):
    """The first layers, over time and space."""

    def __init__(self) -> None:
        stem = nn.Conv3d(3, 64, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False)
        super().__init__(stem, nn.BatchNorm3d(64), nn.ReLU(inplace=True))


class R2Plus1dStem(nn.Sequential):
    """The first layers, over space and then over time."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv3d(3, 45, (1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3), bias=False),
            nn.BatchNorm3d(45),
            nn.ReLU(inplace=True),
            nn.Conv3d(45, 64, (3, 1, 1), stride=(1, 1, 1), padding=(1, 0, 0), bias=False),
            nn.BatchNorm3d(64),
            nn.ReLU(inplace=True),
        )


class VideoResNet(nn.Module):
    """A residual network over videos (N, 3, T, H, W), of four stages of `layers` blocks each.

    `conv_makers` are the classes of the convolutions in each stage.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        conv_makers: Sequence[Any],
        layers: Sequence[int],
        stem: Callable[..., nn.Module],
        num_classes: int = 400,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        for number, (conv_maker, blocks) in enumerate(zip(conv_makers, layers, strict=True)):
            stride = 2 if number else 1
            stage = self._make_layer(block, conv_maker, 64 << number, blocks, stride)
            setattr(self, f"layer{number + 1}", stage)
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        initialize(self)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, Bottleneck):
                    init.zeros_(module.conv3[1].weight)

    def _make_layer(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        conv_builder: Any,
        planes: int,
        blocks: int,
        stride: int = 1,
    ) -> nn.Sequential:
        width = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != width:
            strides = conv_builder.get_downsample_stride(stride)
            downsample = _normed(nn.Conv3d(self.inplanes, width, 1, strides, bias=False), width)
        stage = [block(self.inplanes, planes, conv_builder, stride, downsample)]
        self.inplanes = width
        stage += [block(width, planes, conv_builder) for _ in range(1, blocks)]
        return nn.Sequential(*stage)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(flatten(self.avgpool(x), 1))


@register_model(R3D_18_Weights, num_classes=400)
def r3d_18(**kwargs: Any) -> VideoResNet:
    """ResNet-18 with convolutions over time and space."""
    return VideoResNet(BasicBlock, [Conv3DSimple] * 4, [2, 2, 2, 2], BasicStem, **kwargs)


@register_model(MC3_18_Weights, num_classes=400)
def mc3_18(**kwargs: Any) -> VideoResNet:
    """ResNet-18 that looks over time in its first stage only."""
    makers = [Conv3DSimple, *[Conv3DNoTemporal] * 3]
    return VideoResNet(BasicBlock, makers, [2, 2, 2, 2], BasicStem, **kwargs)


@register_model(R2Plus1D_18_Weights, num_classes=400)
def r2plus1d_18(**kwargs: Any) -> VideoResNet:
    """ResNet-18 with convolutions over space and then over time."""
    return VideoResNet(BasicBlock, [Conv2Plus1D] * 4, [2, 2, 2, 2], R2Plus1dStem, **kwargs)
