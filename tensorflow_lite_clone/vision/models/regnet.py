"""RegNets: Radosavovic et al., Designing Network Design Spaces, 2020."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models._api import WeightsEnum, bicubic, imagenet, register_model
from tensorflow_lite_clone.vision.models._utils import _make_divisible, start_norm, zero_bias
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = [
    "RegNet",
    "RegNet_X_1_6GF_Weights",
    "RegNet_X_3_2GF_Weights",
    "RegNet_X_8GF_Weights",
    "RegNet_X_16GF_Weights",
    "RegNet_X_32GF_Weights",
    "RegNet_X_400MF_Weights",
    "RegNet_X_800MF_Weights",
    "RegNet_Y_1_6GF_Weights",
    "RegNet_Y_3_2GF_Weights",
    "RegNet_Y_8GF_Weights",
    "RegNet_Y_16GF_Weights",
    "RegNet_Y_32GF_Weights",
    "RegNet_Y_128GF_Weights",
    "RegNet_Y_400MF_Weights",
    "RegNet_Y_800MF_Weights",
    "regnet_x_400mf",
    "regnet_x_800mf",
    "regnet_x_1_6gf",
    "regnet_x_3_2gf",
    "regnet_x_8gf",
    "regnet_x_16gf",
    "regnet_x_32gf",
    "regnet_y_400mf",
    "regnet_y_800mf",
    "regnet_y_1_6gf",
    "regnet_y_3_2gf",
    "regnet_y_8gf",
    "regnet_y_16gf",
    "regnet_y_32gf",
    "regnet_y_128gf",
]


class RegNet_X_1_6GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_x_1_6gf-e3633e7f.pth", 9_190_136)
    IMAGENET1K_V2 = imagenet("regnet_x_1_6gf-a12f2b72.pth", 9_190_136, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_X_3_2GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_x_3_2gf-f342aeae.pth", 15_296_552)
    IMAGENET1K_V2 = imagenet("regnet_x_3_2gf-7071aa85.pth", 15_296_552, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_X_8GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_x_8gf-03ceed89.pth", 39_572_648)
    IMAGENET1K_V2 = imagenet("regnet_x_8gf-2b70d774.pth", 39_572_648, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_X_16GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_x_16gf-2007eb11.pth", 54_278_536)
    IMAGENET1K_V2 = imagenet("regnet_x_16gf-ba3796d7.pth", 54_278_536, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_X_32GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_x_32gf-9d47f8d0.pth", 107_811_560)
    IMAGENET1K_V2 = imagenet("regnet_x_32gf-6eb8fdc6.pth", 107_811_560, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_X_400MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_x_400mf-adf1edd5.pth", 5_495_976)
    IMAGENET1K_V2 = imagenet("regnet_x_400mf-62229a5f.pth", 5_495_976, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_X_800MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_x_800mf-ad17e45c.pth", 7_259_656)
    IMAGENET1K_V2 = imagenet("regnet_x_800mf-94a99ebd.pth", 7_259_656, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_1_6GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_y_1_6gf-b11a554e.pth", 11_202_430)
    IMAGENET1K_V2 = imagenet("regnet_y_1_6gf-0d7bc02a.pth", 11_202_430, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_3_2GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_y_3_2gf-b5a9779c.pth", 19_436_338)
    IMAGENET1K_V2 = imagenet("regnet_y_3_2gf-9180c971.pth", 19_436_338, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_8GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_y_8gf-d0d0e4a8.pth", 39_381_472)
    IMAGENET1K_V2 = imagenet("regnet_y_8gf-dc2b1b54.pth", 39_381_472, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_16GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_y_16gf-9e6ed7dd.pth", 83_590_140)
    IMAGENET1K_V2 = imagenet("regnet_y_16gf-3e4a00f9.pth", 83_590_140, resize_size=232)
    IMAGENET1K_SWAG_E2E_V1 = bicubic("regnet_y_16gf_swag-43afe44d.pth", 83_590_140, size=384)
    IMAGENET1K_SWAG_LINEAR_V1 = bicubic(
        "regnet_y_16gf_lc_swag-f3ec0043.pth", 83_590_140, resize_size=224
    )
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_32GF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_y_32gf-4dee3f7a.pth", 145_046_770)
    IMAGENET1K_V2 = imagenet("regnet_y_32gf-8db6d4b5.pth", 145_046_770, resize_size=232)
    IMAGENET1K_SWAG_E2E_V1 = bicubic("regnet_y_32gf_swag-04fdfa75.pth", 145_046_770, size=384)
    IMAGENET1K_SWAG_LINEAR_V1 = bicubic(
        "regnet_y_32gf_lc_swag-e1583746.pth", 145_046_770, resize_size=224
    )
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_128GF_Weights(WeightsEnum):
    IMAGENET1K_SWAG_E2E_V1 = bicubic("regnet_y_128gf_swag-c8ce3e52.pth", 644_812_894, size=384)
    IMAGENET1K_SWAG_LINEAR_V1 = bicubic(
        "regnet_y_128gf_lc_swag-cbe8ce12.pth", 644_812_894, resize_size=224
    )
    DEFAULT = IMAGENET1K_SWAG_E2E_V1


class RegNet_Y_400MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_y_400mf-c65dace8.pth", 4_344_144)
    IMAGENET1K_V2 = imagenet("regnet_y_400mf-e6988f5f.pth", 4_344_144, resize_size=232)
    DEFAULT = IMAGENET1K_V2


class RegNet_Y_800MF_Weights(WeightsEnum):
    IMAGENET1K_V1 = imagenet("regnet_y_800mf-1b27b58c.pth", 6_432_512)
    IMAGENET1K_V2 = imagenet("regnet_y_800mf-58fc7688.pth", 6_432_512, resize_size=232)
    DEFAULT = IMAGENET1K_V2


Layer = Callable[..., nn.Module]


class SimpleStemIN(Conv2dNormActivation):
    """A 3 x 3 convolution of stride 2."""

    def __init__(
        self, width_in: int, width_out: int, norm_layer: Layer, activation_layer: Layer
    ) -> None:
        super().__init__(
            width_in, width_out, kernel_size=3, stride=2, norm_layer=norm_layer,
            activation_layer=activation_layer,
        )  # fmt: skip


class BottleneckTransform(nn.Sequential):
    """1 x 1, 3 x 3 in groups, squeeze and excitation if there is a ratio, 1 x 1."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        norm_layer: Layer,
        activation_layer: Layer,
        group_width: int,
        bottleneck_multiplier: float,
        se_ratio: float | None,
    ) -> None:
        width = int(round(width_out * bottleneck_multiplier))
        conv = partial(Conv2dNormActivation, norm_layer=norm_layer)
        wide = partial(conv, activation_layer=activation_layer)
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["a"] = wide(width_in, width, kernel_size=1, stride=1)
        layers["b"] = wide(width, width, kernel_size=3, stride=stride, groups=width // group_width)
        if se_ratio:
            squeezed = int(round(se_ratio * width_in))
            layers["se"] = SqueezeExcitation(width, squeezed, activation=activation_layer)
        layers["c"] = conv(width, width_out, kernel_size=1, stride=1, activation_layer=None)
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """A bottleneck and a shortcut, projected where the shape changes."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        norm_layer: Layer,
        activation_layer: Layer,
        group_width: int = 1,
        bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
    ) -> None:
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(
                width_in, width_out, kernel_size=1, stride=stride, norm_layer=norm_layer,
                activation_layer=None,
            )  # fmt: skip
        self.f = BottleneckTransform(
            width_in, width_out, stride, norm_layer, activation_layer, group_width,
            bottleneck_multiplier, se_ratio,
        )  # fmt: skip
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.proj is None else self.proj(x)
        return self.activation(shortcut + self.f(x))


class AnyStage(nn.Sequential):
    """Blocks of one width, the first of which strides."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        stride: int,
        depth: int,
        block_constructor: Layer,
        norm_layer: Layer,
        activation_layer: Layer,
        group_width: int,
        bottleneck_multiplier: float,
        se_ratio: float | None = None,
        stage_index: int = 0,
    ) -> None:
        super().__init__()
        for index in range(depth):
            block = block_constructor(
                width_in if index == 0 else width_out,
                width_out,
                stride if index == 0 else 1,
                norm_layer,
                activation_layer,
                group_width,
                bottleneck_multiplier,
                se_ratio,
            )
            self.add_module(f"block{stage_index}-{index}", block)


class BlockParams:
    """The stages' depths, widths, group widths, bottleneck multipliers and strides."""

    def __init__(
        self,
        depths: Sequence[int],
        widths: Sequence[int],
        group_widths: Sequence[int],
        bottleneck_multipliers: Sequence[float],
        strides: Sequence[int],
        se_ratio: float | None = None,
    ) -> None:
        self.depths = depths
        self.widths = widths
        self.group_widths = group_widths
        self.bottleneck_multipliers = bottleneck_multipliers
        self.strides = strides
        self.se_ratio = se_ratio

    @classmethod
    def from_init_params(
        cls,
        depth: int,
        w_0: int,
        w_a: float,
        w_m: float,
        group_width: int,
        bottleneck_multiplier: float = 1.0,
        se_ratio: float | None = None,
        **kwargs: Any,
    ) -> BlockParams:
        """The stages that the paper's four numbers mean (its equations 2 to 4).

        Block j is `w_0 w_m^s` wide with `s = round(log((w_0 + w_a j) / w_0) / log(w_m))`, made
        divisible by 8; blocks of one width are a stage, whose width its groups must divide.
        Raises ValueError unless w_a >= 0, w_0 > 0, w_m > 1 and 8 divides w_0.
        """
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8:
            raise ValueError("Invalid RegNet settings")
        steps = [round(math.log((w_0 + w_a * j) / w_0) / math.log(w_m)) for j in range(depth)]
        widths = [round(w_0 * w_m**step / 8) * 8 for step in steps]
        stages = [(width, len(list(blocks))) for width, blocks in groupby(widths)]
        groups = [min(group_width, int(width * bottleneck_multiplier)) for width, _ in stages]
        inner = [
            _make_divisible(width * bottleneck_multiplier, group)
            for (width, _), group in zip(stages, groups)
        ]
        return cls(
            depths=[count for _, count in stages],
            widths=[int(width / bottleneck_multiplier) for width in inner],
            group_widths=groups,
            bottleneck_multipliers=[bottleneck_multiplier] * len(stages),
            strides=[2] * len(stages),
            se_ratio=se_ratio,
        )

    def _get_expanded_params(self) -> Iterator[tuple[int, int, int, int, float]]:
        """Width, stride, depth, group width and bottleneck multiplier of each stage."""
        return zip(
            self.widths, self.strides, self.depths, self.group_widths, self.bottleneck_multipliers
        )


class RegNet(nn.Module):
    """A stem and stages over pictures (N, 3, H, W)."""

    def __init__(
        self,
        block_params: BlockParams,
        num_classes: int = 1000,
        stem_width: int = 32,
        stem_type: Layer | None = None,
        block_type: Layer | None = None,
        norm_layer: Layer | None = None,
        activation: Layer | None = None,
    ) -> None:
        super().__init__()
        stem_type = stem_type or SimpleStemIN
        block_type = block_type or ResBottleneckBlock
        norm_layer = norm_layer or nn.BatchNorm2d
        activation = activation or nn.ReLU
        self.stem = stem_type(3, stem_width, norm_layer, activation)
        stages: OrderedDict[str, nn.Module] = OrderedDict()
        width = stem_width
        for index, row in enumerate(block_params._get_expanded_params(), 1):
            width_out, stride, depth, group_width, multiplier = row
            stages[f"block{index}"] = AnyStage(
                width, width_out, stride, depth, block_type, norm_layer, activation, group_width,
                multiplier, block_params.se_ratio, stage_index=index,
            )  # fmt: skip
            width = width_out
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(in_features=width, out_features=num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan_out = module.kernel_size[0] * module.kernel_size[1] * module.out_channels
                init.normal_(module.weight, mean=0.0, std=math.sqrt(2.0 / fan_out))
            elif isinstance(module, nn.BatchNorm2d):
                start_norm(module)
            elif isinstance(module, nn.Linear):
                init.normal_(module.weight, mean=0.0, std=0.01)
                zero_bias(module)

    def forward(self, x: Tensor) -> Tensor:
        x = self.trunk_output(self.stem(x))
        return self.fc(self.avgpool(x).flatten(start_dim=1))


def _regnet(
    depth: int, w_0: int, w_a: float, w_m: float, group_width: int, se_ratio: float | None = None,
    **kwargs: Any,
) -> RegNet:  # fmt: skip
    params = BlockParams.from_init_params(depth, w_0, w_a, w_m, group_width, se_ratio=se_ratio)
    norm = partial(nn.BatchNorm2d, eps=1e-05, momentum=0.1)
    return RegNet(params, **{"norm_layer": norm, **kwargs})


@register_model(RegNet_X_400MF_Weights)
def regnet_x_400mf(**kwargs: Any) -> RegNet:
    """RegNetX-400MF."""
    return _regnet(22, 24, 24.48, 2.54, 16, **kwargs)


@register_model(RegNet_X_800MF_Weights)
def regnet_x_800mf(**kwargs: Any) -> RegNet:
    """RegNetX-800MF."""
    return _regnet(16, 56, 35.73, 2.28, 16, **kwargs)


@register_model(RegNet_X_1_6GF_Weights)
def regnet_x_1_6gf(**kwargs: Any) -> RegNet:
    """RegNetX-1.6GF."""
    return _regnet(18, 80, 34.01, 2.25, 24, **kwargs)


@register_model(RegNet_X_3_2GF_Weights)
def regnet_x_3_2gf(**kwargs: Any) -> RegNet:
    """RegNetX-3.2GF."""
    return _regnet(25, 88, 26.31, 2.25, 48, **kwargs)


@register_model(RegNet_X_8GF_Weights)
def regnet_x_8gf(**kwargs: Any) -> RegNet:
    """RegNetX-8GF."""
    return _regnet(23, 80, 49.56, 2.88, 120, **kwargs)


@register_model(RegNet_X_16GF_Weights)
def regnet_x_16gf(**kwargs: Any) -> RegNet:
    """RegNetX-16GF."""
    return _regnet(22, 216, 55.59, 2.1, 128, **kwargs)


@register_model(RegNet_X_32GF_Weights)
def regnet_x_32gf(**kwargs: Any) -> RegNet:
    """RegNetX-32GF."""
    return _regnet(23, 320, 69.86, 2.0, 168, **kwargs)


@register_model(RegNet_Y_400MF_Weights)
def regnet_y_400mf(**kwargs: Any) -> RegNet:
    """RegNetY-400MF."""
    return _regnet(16, 48, 27.89, 2.09, 8, se_ratio=0.25, **kwargs)


@register_model(RegNet_Y_800MF_Weights)
def regnet_y_800mf(**kwargs: Any) -> RegNet:
    """RegNetY-800MF."""
    return _regnet(14, 56, 38.84, 2.4, 16, se_ratio=0.25, **kwargs)


@register_model(RegNet_Y_1_6GF_Weights)
def regnet_y_1_6gf(**kwargs: Any) -> RegNet:
    """RegNetY-1.6GF."""
    return _regnet(27, 48, 20.71, 2.65, 24, se_ratio=0.25, **kwargs)


@register_model(RegNet_Y_3_2GF_Weights)
def regnet_y_3_2gf(**kwargs: Any) -> RegNet:
    """RegNetY-3.2GF."""
    return _regnet(21, 80, 42.63, 2.66, 24, se_ratio=0.25, **kwargs)


@register_model(RegNet_Y_8GF_Weights)
def regnet_y_8gf(**kwargs: Any) -> RegNet:
    """RegNetY-8GF."""
    return _regnet(17, 192, 76.82, 2.19, 56, se_ratio=0.25, **kwargs)


@register_model(RegNet_Y_16GF_Weights)
def regnet_y_16gf(**kwargs: Any) -> RegNet:
    """RegNetY-16GF."""
    return _regnet(18, 200, 106.23, 2.48, 112, se_ratio=0.25, **kwargs)


@register_model(RegNet_Y_32GF_Weights)
def regnet_y_32gf(**kwargs: Any) -> RegNet:
    """RegNetY-32GF."""
    return _regnet(20, 232, 115.89, 2.53, 232, se_ratio=0.25, **kwargs)


@register_model(RegNet_Y_128GF_Weights)
def regnet_y_128gf(**kwargs: Any) -> RegNet:
    """RegNetY-128GF."""
    return _regnet(27, 456, 160.83, 2.52, 264, se_ratio=0.25, **kwargs)
