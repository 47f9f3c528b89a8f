"""GoogLeNet: Szegedy et al., Going Deeper with Convolutions, 2014."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._presets import MEAN, STD
from tensorflow_lite_clone.vision.models._utils import start_norm

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "GoogLeNet_Weights", "_GoogLeNetOutputs", "googlenet"]


class GoogLeNet_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("googlenet-1378be20.pth", 6_624_904, min_size=15)
    DEFAULT = IMAGENET1K_V1


class GoogLeNetOutputs(NamedTuple):
    """What the network gives in training: its classes, and those of the two auxiliary heads."""

    logits: Tensor
    aux_logits2: Tensor | None
    aux_logits1: Tensor | None


_GoogLeNetOutputs = GoogLeNetOutputs


class BasicConv2d(nn.Module):
    """A convolution, a norm and a ReLU."""

    def __init__(self, in_channels: int, out_channels: int, **kwargs: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    """1 x 1, two 3 x 3 (the second in the place of the paper's 5 x 5) and pooling, side by side."""

    def __init__(
        self,
        in_channels: int,
        ch1x1: int,
        ch3x3red: int,
        ch3x3: int,
        ch5x5red: int,
        ch5x5: int,
        pool_proj: int,
        conv_block: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(
            conv(in_channels, ch3x3red, kernel_size=1),
            conv(ch3x3red, ch3x3, kernel_size=3, padding=1),
        )
        self.branch3 = nn.Sequential(
            conv(in_channels, ch5x5red, kernel_size=1),
            conv(ch5x5red, ch5x5, kernel_size=3, padding=1),
        )
        self.branch4 = nn.Sequential(
            nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
            conv(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """A classifier in the middle of the network, which helps it to learn."""

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        conv_block: Callable[..., nn.Module] | None = None,
        dropout: float = 0.7,
    ) -> None:
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = flatten(self.conv(F.adaptive_avg_pool2d(x, (4, 4))), 1)
        return self.fc2(self.dropout(F.relu(self.fc1(x), inplace=True)))


def asked_to_initialize(name: str, init_weights: bool | None) -> bool:
    """Whether to draw the paper's first values; warns if nobody said so."""
    if init_weights is None:
        warnings.warn(
            f"The default weight initialization of {name} will be changed in future releases of "
            "torchvision. To keep the old behavior, set init_weights=True.",
            FutureWarning,
            stacklevel=level_outside(),
        )
        return True
    return init_weights


def initialize(model: nn.Module, std: Callable[[nn.Module], float]) -> None:
    """Truncated normal weights, of the deviation that `std` says."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            init.trunc_normal_(module.weight, mean=0.0, std=std(module), a=-2, b=2)
        elif isinstance(module, nn.BatchNorm2d):
            start_norm(module)


def to_halves(x: Tensor) -> Tensor:
    """Pictures normalized with ImageNet's statistics, as if with mean and deviation 0.5."""
    channels = [x[:, i] * (STD[i] / 0.5) + (MEAN[i] - 0.5) / 0.5 for i in range(3)]
    return stack(channels, 1)


def without_unused(state: Mapping[str, Any], model: nn.Module) -> dict[str, Any]:
    """The downloaded files have auxiliary heads, the model perhaps not."""
    unused = {"aux1", "aux2", "AuxLogits"} - {name for name, _ in model.named_children()}
    return {name: value for name, value in state.items() if name.split(".")[0] not in unused}


def set_arguments(kwargs: dict[str, Any], aux_logits: bool) -> None:
    """How pretrained networks are built."""
    kwargs.setdefault("transform_input", True)
    kwargs.setdefault("aux_logits", aux_logits)
    kwargs["init_weights"] = False


class GoogLeNet(nn.Module):
    """Nine inception blocks over pictures (N, 3, H, W); in training with two auxiliary heads.

    `transform_input` says that pictures come normalized with ImageNet's statistics. Raises
    ValueError if `blocks` is not three.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        aux_logits: bool = True,
        transform_input: bool = False,
        init_weights: bool | None = None,
        blocks: Sequence[Callable[..., nn.Module]] | None = None,
        dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:
        super().__init__()
        initializing = asked_to_initialize("GoogleNet", init_weights)
        blocks = blocks or [BasicConv2d, Inception, InceptionAux]
        if len(blocks) != 3:
            raise ValueError(f"blocks length should be 3 instead of {len(blocks)}")
        conv, inception, aux = blocks
        self.aux_logits = aux_logits
        self.transform_input = transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception3a = inception(192, 64, 96, 128, 16, 32, 32)
        self.inception3b = inception(256, 128, 128, 192, 32, 96, 64)
        self.maxpool3 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.inception4a = inception(480, 192, 96, 208, 16, 48, 64)
        self.inception4b = inception(512, 160, 112, 224, 24, 64, 64)
        self.inception4c = inception(512, 128, 128, 256, 24, 64, 64)
        self.inception4d = inception(512, 112, 144, 288, 32, 64, 64)
        self.inception4e = inception(528, 256, 160, 320, 32, 128, 128)
        self.maxpool4 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.inception5a = inception(832, 256, 160, 320, 32, 128, 128)
        self.inception5b = inception(832, 384, 192, 384, 48, 128, 128)
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        if initializing:
            initialize(self, lambda module: 0.01)

    def forward(self, x: Tensor) -> Tensor | GoogLeNetOutputs:
        if self.transform_input:
            x = to_halves(x)
        x = self.maxpool1(self.conv1(x))
        x = self.maxpool2(self.conv3(self.conv2(x)))
        x = self.maxpool3(self.inception3b(self.inception3a(x)))
        x = self.inception4a(x)
        aux1 = self.aux1(x) if self.aux1 is not None and self.training else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        aux2 = self.aux2(x) if self.aux2 is not None and self.training else None
        x = self.maxpool4(self.inception4e(x))
        x = self.avgpool(self.inception5b(self.inception5a(x)))
        x = self.fc(self.dropout(flatten(x, 1)))
        return GoogLeNetOutputs(x, aux2, aux1) if self.training and self.aux_logits else x


def _arguments(kwargs: dict[str, Any], weights: WeightsEnum) -> None:
    set_arguments(kwargs, aux_logits=False)
    if kwargs["aux_logits"]:
        warnings.warn(
            "auxiliary heads in the pretrained googlenet model are NOT pretrained, so make sure "
            "to train them",
            stacklevel=level_outside(),
        )


@register_model(GoogLeNet_Weights, arguments=_arguments, convert=without_unused)
def googlenet(**kwargs: Any) -> GoogLeNet:
    """GoogLeNet with batch norm; pretrained, it has auxiliary heads only if they are asked for."""
    return GoogLeNet(**kwargs)
