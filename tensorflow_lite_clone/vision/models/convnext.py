"""ConvNeXt: Liu et al., A ConvNet for the 2020s, 2022."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.ops.create.constructors import full
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import zero_bias
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation, Permute
from tensorflow_lite_clone.vision.ops.stochastic_depth import StochasticDepth

__all__ = [
    "ConvNeXt",
    "ConvNeXt_Base_Weights",
    "ConvNeXt_Large_Weights",
    "ConvNeXt_Small_Weights",
    "ConvNeXt_Tiny_Weights",
    "convnext_tiny",
    "convnext_small",
    "convnext_base",
    "convnext_large",
]


class ConvNeXt_Base_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("convnext_base-6075fbad.pth", 88_591_464, min_size=32, resize_size=232)
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Large_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "convnext_large-ea097f82.pth", 197_767_336, min_size=32, resize_size=232
    )
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Small_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet(
        "convnext_small-0c510722.pth", 50_223_688, min_size=32, resize_size=230
    )
    DEFAULT = IMAGENET1K_V1


class ConvNeXt_Tiny_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("convnext_tiny-983f1562.pth", 28_589_128, min_size=32, resize_size=236)
    DEFAULT = IMAGENET1K_V1


class LayerNorm2d(nn.LayerNorm):
    """Layer norm over the channels of x (N, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A 7 x 7 filter of each channel, then an MLP over the channels, scaled, with a shortcut."""

    def __init__(
        self,
        dim: int,
        layer_scale: float,
        stochastic_depth_prob: float,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim, bias=True),
            Permute([0, 2, 3, 1]),
            norm_layer(dim),
            nn.Linear(dim, 4 * dim, bias=True),
            nn.GELU(),
            nn.Linear(4 * dim, dim, bias=True),
            Permute([0, 3, 1, 2]),
        )
        self.layer_scale = nn.Parameter(full((dim, 1, 1), float(layer_scale)))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input: Tensor) -> Tensor:
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


class CNBlockConfig:
    """A stage: its width, the width behind it (None for the last), and its depth."""

    def __init__(self, input_channels: int, out_channels: int | None, num_layers: int) -> None:
        self.input_channels = input_channels
        self.out_channels = out_channels
        self.num_layers = num_layers

    def __repr__(self) -> str:
        return (
            f"CNBlockConfig(input_channels={self.input_channels}, "
            f"out_channels={self.out_channels}, num_layers={self.num_layers})"
        )


class ConvNeXt(nn.Module):
    """Stages of blocks with strided convolutions between them, over pictures (N, 3, H, W).

    Raises ValueError for an empty setting, TypeError for one of other things than configurations.
    """

    def __init__(
        self,
        block_setting: Sequence[CNBlockConfig],
        stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6,
        num_classes: int = 1000,
        block: Callable[..., nn.Module] | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not all(isinstance(stage, CNBlockConfig) for stage in block_setting):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block = block or CNBlock
        norm_layer = norm_layer or partial(LayerNorm2d, eps=1e-6)
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                3,
                block_setting[0].input_channels,
                kernel_size=4,
                stride=4,
                padding=0,
                norm_layer=norm_layer,
                activation_layer=None,
                bias=True,
            )
        ]
        total = sum(stage.num_layers for stage in block_setting)
        done = 0
        for stage in block_setting:
            blocks = []
            for _ in range(stage.num_layers):
                probability = stochastic_depth_prob * done / (total - 1.0)
                blocks.append(block(stage.input_channels, layer_scale, probability))
                done += 1
            layers.append(nn.Sequential(*blocks))
            if stage.out_channels is not None:
                shrink = nn.Conv2d(stage.input_channels, stage.out_channels, 2, stride=2)
                layers.append(nn.Sequential(norm_layer(stage.input_channels), shrink))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        width = block_setting[-1].out_channels or block_setting[-1].input_channels
        self.classifier = nn.Sequential(
            norm_layer(width), nn.Flatten(1), nn.Linear(width, num_classes)
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                init.trunc_normal_(module.weight, std=0.02)
                zero_bias(module)

    def _forward_impl(self, x: Tensor) -> Tensor:
        return self.classifier(self.avgpool(self.features(x)))

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)


def _convnext(
    widths: Sequence[int], depths: Sequence[int], probability: float, **kwargs: Any
) -> ConvNeXt:
    setting = [CNBlockConfig(*stage) for stage in zip(widths, [*widths[1:], None], depths)]
    return ConvNeXt(setting, **{"stochastic_depth_prob": probability, **kwargs})


@register_model(ConvNeXt_Tiny_Weights)
def convnext_tiny(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, tiny."""
    return _convnext([96, 192, 384, 768], [3, 3, 9, 3], 0.1, **kwargs)


@register_model(ConvNeXt_Small_Weights)
def convnext_small(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, small."""
    return _convnext([96, 192, 384, 768], [3, 3, 27, 3], 0.4, **kwargs)


@register_model(ConvNeXt_Base_Weights)
def convnext_base(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, base."""
    return _convnext([128, 256, 512, 1024], [3, 3, 27, 3], 0.5, **kwargs)


@register_model(ConvNeXt_Large_Weights)
def convnext_large(**kwargs: Any) -> ConvNeXt:
    """ConvNeXt, large."""
    return _convnext([192, 384, 768, 1536], [3, 3, 27, 3], 0.5, **kwargs)
