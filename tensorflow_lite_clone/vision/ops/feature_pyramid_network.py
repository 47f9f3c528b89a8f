"""Feature pyramids: Lin et al., Feature Pyramid Networks for Object Detection, 2016."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops.misc import Conv2dNormActivation

Levels = tuple[list[Tensor], list[str]]


class ExtraFPNBlock(nn.Module):
    """Makes further levels of the pyramid's results, its inputs, and their names."""

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> Levels:
        raise NotImplementedError


class FeaturePyramidNetwork(nn.Module):
    """Maps of one width of maps of several, each with what the coarser ones know added.

    Takes maps (N, C_i, H_i, W_i) by name, finest first, and returns maps (N, out_channels, H_i,
    W_i) of the same names and those of `extra_blocks`. Raises ValueError for a width of 0.
    """

    def __init__(
        self,
        in_channels_list: Sequence[int],
        out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None,
        norm_layer: Callable[..., nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.inner_blocks = nn.ModuleList()
        self.layer_blocks = nn.ModuleList()
        for channels in in_channels_list:
            if channels == 0:
                raise ValueError("in_channels=0 is currently not supported")
            self.inner_blocks.append(_conv(channels, out_channels, 1, norm_layer))
            self.layer_blocks.append(_conv(out_channels, out_channels, 3, norm_layer))
        _initialize(self)
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(
                f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}"
            )
        self.extra_blocks = extra_blocks

    def forward(self, x: Mapping[str, Tensor]) -> OrderedDict[str, Tensor]:
        names, maps = list(x), list(x.values())
        inner = self.inner_blocks[-1](maps[-1])
        results = [self.layer_blocks[-1](inner)]
        for index in range(len(maps) - 2, -1, -1):
            lateral = self.inner_blocks[index](maps[index])
            inner = lateral + F.interpolate(inner, size=lateral.shape[-2:], mode="nearest")
            results.insert(0, self.layer_blocks[index](inner))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results))


def _conv(
    inp: int, out: int, kernel_size: int, norm_layer: Callable[..., nn.Module] | None
) -> Conv2dNormActivation:
    return Conv2dNormActivation(
        inp, out, kernel_size=kernel_size, norm_layer=norm_layer, activation_layer=None
    )


def _initialize(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            init.kaiming_uniform_(layer.weight, a=1)
            if layer.bias is not None:
                init.zeros_(layer.bias)


class LastLevelMaxPool(ExtraFPNBlock):
    """One more level, every second value of the coarsest."""

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> Levels:
        coarser = F.max_pool2d(results[-1], kernel_size=1, stride=2, padding=0)
        return [*results, coarser], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two more levels by strided convolutions: Lin et al., Focal Loss, 2017."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        _initialize(self)
        self.use_P5 = in_channels == out_channels

    def forward(self, results: list[Tensor], x: list[Tensor], names: list[str]) -> Levels:
        p6 = self.p6(results[-1] if self.use_P5 else x[-1])
        return [*results, p6, self.p7(F.relu(p6))], [*names, "p6", "p7"]
