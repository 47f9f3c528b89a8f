"""DenseNet: Huang et al., Densely Connected Convolutional Networks, 2016."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.views import flatten
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils.checkpoint import checkpoint
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import start_norm, zero_bias

__all__ = [
    "DenseNet",
    "DenseNet121_Weights",
    "DenseNet161_Weights",
    "DenseNet169_Weights",
    "DenseNet201_Weights",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
]


class DenseNet121_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("densenet121-a639ec97.pth", 7_978_856, min_size=29)
    DEFAULT = IMAGENET1K_V1


class DenseNet161_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("densenet161-8d451a50.pth", 28_681_000, min_size=29)
    DEFAULT = IMAGENET1K_V1


class DenseNet169_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("densenet169-b2777c0a.pth", 14_149_480, min_size=29)
    DEFAULT = IMAGENET1K_V1


class DenseNet201_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("densenet201-c1103571.pth", 20_013_928, min_size=29)
    DEFAULT = IMAGENET1K_V1


class _DenseLayer(nn.Module):
    """A 1 x 1 and a 3 x 3 convolution over all that came before, norm and ReLU first."""

    def __init__(
        self,
        num_input_features: int,
        growth_rate: int,
        bn_size: int,
        drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        width = bn_size * growth_rate
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, width, kernel_size=1, stride=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, growth_rate, kernel_size=3, stride=1, padding=1, bias=False)
        self.drop_rate = float(drop_rate)
        self.memory_efficient = memory_efficient

    def _bottleneck(self, *features: Tensor) -> Tensor:
        return self.conv1(self.relu1(self.norm1(cat(features, 1))))

    def forward(self, input: Tensor | Sequence[Tensor]) -> Tensor:
        features = [input] if isinstance(input, Tensor) else input
        if self.memory_efficient and any(feature.requires_grad for feature in features):
            x = checkpoint(self._bottleneck, *features, use_reentrant=False)
        else:
            x = self._bottleneck(*features)
        x = self.conv2(self.relu2(self.norm2(x)))
        return F.dropout(x, p=self.drop_rate, training=self.training) if self.drop_rate else x


class _DenseBlock(nn.ModuleDict):
    """Layers each of which sees the outputs of all before it."""

    def __init__(
        self,
        num_layers: int,
        num_input_features: int,
        bn_size: int,
        growth_rate: int,
        drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        for index in range(num_layers):
            self[f"denselayer{index + 1}"] = _DenseLayer(
                num_input_features + index * growth_rate,
                growth_rate=growth_rate,
                bn_size=bn_size,
                drop_rate=drop_rate,
                memory_efficient=memory_efficient,
            )

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return cat(features, 1)


class _Transition(nn.Sequential):
    """Halves the sides and narrows."""

    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Dense blocks with transitions between them over pictures (N, 3, H, W).

    `memory_efficient` computes parts twice in training instead of keeping them.
    """

    def __init__(
        self,
        growth_rate: int = 32,
        block_config: Sequence[int] = (6, 12, 24, 16),
        num_init_features: int = 64,
        bn_size: int = 4,
        drop_rate: float = 0,
        num_classes: int = 1000,
        memory_efficient: bool = False,
    ) -> None:
        super().__init__()
        width = num_init_features
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["conv0"] = nn.Conv2d(3, width, kernel_size=7, stride=2, padding=3, bias=False)
        layers["norm0"] = nn.BatchNorm2d(width)
        layers["relu0"] = nn.ReLU(inplace=True)
        layers["pool0"] = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for index, depth in enumerate(block_config, 1):
            layers[f"denseblock{index}"] = _DenseBlock(
                depth, width, bn_size, growth_rate, drop_rate, memory_efficient
            )
            width += depth * growth_rate
            if index < len(block_config):
                layers[f"transition{index}"] = _Transition(width, width // 2)
                width //= 2
        layers["norm5"] = nn.BatchNorm2d(width)
        self.features = nn.Sequential(layers)
        self.classifier = nn.Linear(width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight)
            elif isinstance(module, nn.BatchNorm2d):
                start_norm(module)
            elif isinstance(module, nn.Linear):
                zero_bias(module)

    def forward(self, x: Tensor) -> Tensor:
        features = F.relu(self.features(x), inplace=True)
        return self.classifier(flatten(F.adaptive_avg_pool2d(features, (1, 1)), 1))


def _renamed(state: Mapping[str, Any], model: DenseNet) -> dict[str, Any]:
    """The downloaded files write `norm.1` for `norm1` inside the dense layers."""
    old = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12])\.")
    return {old.sub(r"\1\2.", name): value for name, value in state.items()}


@register_model(DenseNet121_Weights, convert=_renamed)
def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet-121."""
    return DenseNet(32, (6, 12, 24, 16), 64, **kwargs)


@register_model(DenseNet161_Weights, convert=_renamed)
def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet-161."""
    return DenseNet(48, (6, 12, 36, 24), 96, **kwargs)


@register_model(DenseNet169_Weights, convert=_renamed)
def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet-169."""
    return DenseNet(32, (6, 12, 32, 32), 64, **kwargs)


@register_model(DenseNet201_Weights, convert=_renamed)
def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet-201."""
    return DenseNet(32, (6, 12, 48, 32), 64, **kwargs)
