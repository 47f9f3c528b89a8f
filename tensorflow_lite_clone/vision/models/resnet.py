"""Residual networks.

Sources: He et al., Deep Residual Learning, 2015; Xie et al., Aggregated Residual Transformations
(ResNeXt), 2016; Zagoruyko and Komodakis, Wide Residual Networks, 2016. The stride of a bottleneck
is in its 3 x 3 convolution (known as ResNet v1.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import initialize

__all__ = [
    "ResNet",
    "ResNet18_Weights",
    "ResNet34_Weights",
    "ResNet50_Weights",
    "ResNet101_Weights",
    "ResNet152_Weights",
    "ResNeXt50_32X4D_Weights",
    "ResNeXt101_32X8D_Weights",
    "ResNeXt101_64X4D_Weights",
    "Wide_ResNet50_2_Weights",
    "Wide_ResNet101_2_Weights",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "wide_resnet50_2",
    "wide_resnet101_2",
]


class ResNet18_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnet18-f37072fd.pth", 11_689_512)
    DEFAULT = IMAGENET1K_V1


class ResNet34_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnet34-b627a593.pth", 21_797_672)
    DEFAULT = IMAGENET1K_V1


class ResNet50_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnet50-0676ba61.pth", 25_557_032)
    IMAGENET1K_V2 = imagenet("resnet50-11ad3fa6.pth", 25_557_032, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class ResNet101_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnet101-63fe2227.pth", 44_549_160)
    IMAGENET1K_V2 = imagenet("resnet101-cd907fc2.pth", 44_549_160, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class ResNet152_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnet152-394f9c45.pth", 60_192_808)
    IMAGENET1K_V2 = imagenet("resnet152-f82ba261.pth", 60_192_808, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class ResNeXt50_32X4D_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnext50_32x4d-7cdf4587.pth", 25_028_904)
    IMAGENET1K_V2 = imagenet("resnext50_32x4d-1a0047aa.pth", 25_028_904, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class ResNeXt101_32X8D_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnext101_32x8d-8ba56ff5.pth", 88_791_336)
    IMAGENET1K_V2 = imagenet("resnext101_32x8d-110c445d.pth", 88_791_336, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class ResNeXt101_64X4D_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("resnext101_64x4d-173b62eb.pth", 83_455_272, resize_size=232)
    DEFAULT = IMAGENET1K_V1


class Wide_ResNet50_2_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("wide_resnet50_2-95faca4d.pth", 68_883_240)
    IMAGENET1K_V2 = imagenet("wide_resnet50_2-9ba9bcbe.pth", 68_883_240, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class Wide_ResNet101_2_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("wide_resnet101_2-32ee1156.pth", 126_886_696)
    IMAGENET1K_V2 = imagenet("wide_resnet101_2-d733dc28.pth", 126_886_696, resize_size=232)
    DEFAULT = IMAGENET1K_V2


def conv3x3(
    in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """A 3 x 3 convolution without bias that keeps the size at stride 1."""
    return nn.Conv2d(
        in_planes, out_planes, kernel_size=3, stride=stride, padding=dilation, groups=groups,
        bias=False, dilation=dilation,
    )  # fmt: skip


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A 1 x 1 convolution without bias."""
    return nn.Conv2d(in_planes, out_planes, kernel_size=1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a shortcut."""

    expansion: ClassVar[int] = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        norm_layer = norm_layer or nn.BatchNorm2d
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class Bottleneck(nn.Module):
    """A 3 x 3 convolution between two of 1 x 1 that narrow and widen, and a shortcut."""

    expansion: ClassVar[int] = 4

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class ResNet(nn.Module):
    """Four stages of residual blocks over pictures (N, 3, H, W).

    `replace_stride_with_dilation` says for each of the last three stages whether it keeps the
    size and widens its kernels' reach instead. Raises ValueError if that is not three values.
    """

    def __init__(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        dilate = replace_stride_with_dilation or [False, False, False]
        if len(dilate) != 3:
            raise ValueError(
                "replace_stride_with_dilation should be None or a 3-element tuple, got "
                f"{replace_stride_with_dilation}"
            )
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._initialize(zero_init_residual)

    def _initialize(self, zero_init_residual: bool) -> None:
        initialize(self, linear=None)
        if zero_init_residual:
            # Every block starts as its shortcut: Goyal et al., Accurate, Large Minibatch SGD, 2017.
            for module in self.modules():
                last = {Bottleneck: "bn3", BasicBlock: "bn2"}.get(type(module))
                weight = getattr(getattr(module, last), "weight", None) if last else None
                if weight is not None:
                    init.zeros_(weight)

    def _make_layer(
        self,
        block: type[BasicBlock] | type[Bottleneck],
        planes: int,
        blocks: int,
        stride: int = 1,
        dilate: bool = False,
    ) -> nn.Sequential:
        first_dilation = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        width = planes * block.expansion
        downsample = None
        if stride != 1 or self.inplanes != width:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, width, stride), self._norm_layer(width)
            )
        common: dict[str, Any] = {
            "groups": self.groups,
            "base_width": self.base_width,
            "norm_layer": self._norm_layer,
        }
        stage = [
            block(self.inplanes, planes, stride, downsample, dilation=first_dilation, **common)
        ]
        self.inplanes = width
        for _ in range(1, blocks):
            stage.append(block(width, planes, dilation=self.dilation, **common))
        return nn.Sequential(*stage)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(flatten(self.avgpool(x), 1))

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)


@register_model(ResNet18_Weights)
def resnet18(**kwargs: Any) -> ResNet:
    """ResNet-18."""
    return ResNet(BasicBlock, [2, 2, 2, 2], **kwargs)


@register_model(ResNet34_Weights)
def resnet34(**kwargs: Any) -> ResNet:
    """ResNet-34."""
    return ResNet(BasicBlock, [3, 4, 6, 3], **kwargs)


@register_model(ResNet50_Weights)
def resnet50(**kwargs: Any) -> ResNet:
    """ResNet-50."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **kwargs)


@register_model(ResNet101_Weights)
def resnet101(**kwargs: Any) -> ResNet:
    """ResNet-101."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **kwargs)


@register_model(ResNet152_Weights)
def resnet152(**kwargs: Any) -> ResNet:
    """ResNet-152."""
    return ResNet(Bottleneck, [3, 8, 36, 3], **kwargs)


@register_model(ResNeXt50_32X4D_Weights)
def resnext50_32x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-50 of 32 groups with 4 channels."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"groups": 32, "width_per_group": 4, **kwargs})


@register_model(ResNeXt101_32X8D_Weights)
def resnext101_32x8d(**kwargs: Any) -> ResNet:
    """ResNeXt-101 of 32 groups with 8 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 32, "width_per_group": 8, **kwargs})


@register_model(ResNeXt101_64X4D_Weights)
def resnext101_64x4d(**kwargs: Any) -> ResNet:
    """ResNeXt-101 of 64 groups with 4 channels."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"groups": 64, "width_per_group": 4, **kwargs})


@register_model(Wide_ResNet50_2_Weights)
def wide_resnet50_2(**kwargs: Any) -> ResNet:
    """ResNet-50 with blocks twice as wide inside."""
    return ResNet(Bottleneck, [3, 4, 6, 3], **{"width_per_group": 128, **kwargs})


@register_model(Wide_ResNet101_2_Weights)
def wide_resnet101_2(**kwargs: Any) -> ResNet:
    """ResNet-101 with blocks twice as wide inside."""
    return ResNet(Bottleneck, [3, 4, 23, 3], **{"width_per_group": 128, **kwargs})
