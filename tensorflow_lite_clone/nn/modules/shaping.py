"""Modules that rearrange: flatten, pad, fold, upsample; and distances between tensors."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.stateless import Stateless, required, stateless
from tensorflow_lite_clone.tensor import Tensor


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension `dim` into `unflattened_size`."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _Pad(Stateless):
    """Padding of the last `dimensions` dimensions; `padding` becomes a tuple of amounts."""

    dimensions: ClassVar[int]
    mode: ClassVar[str]
    padding: Any
    arguments: ClassVar[dict[str, Any]] = {"padding": required}

    def check(self) -> None:
        padding = self.padding
        count = 2 * self.dimensions
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    arguments: ClassVar[dict[str, Any]] = {"padding": required, "value": required}
    mode = "constant"

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_Pad):
    mode = "constant"

    def _saved_state(self) -> dict[str, Any]:
        return {**super()._saved_state(), "value": 0.0}


def _pad(name: str, base: type[_Pad], dimensions: int, mode: str) -> Any:
    body = {
        "dimensions": dimensions,
        "mode": mode,
        "__doc__": f"Pads the last {dimensions} dimension(s); see `functional.pad`, '{mode}'.",
        "__module__": "tensorflow_lite_clone.nn.modules",
    }
    return type(name, (base,), body)


ConstantPad1d = _pad("ConstantPad1d", _ConstantPad, 1, "constant")
ConstantPad2d = _pad("ConstantPad2d", _ConstantPad, 2, "constant")
ConstantPad3d = _pad("ConstantPad3d", _ConstantPad, 3, "constant")
ZeroPad1d = _pad("ZeroPad1d", _ZeroPad, 1, "constant")
ZeroPad2d = _pad("ZeroPad2d", _ZeroPad, 2, "constant")
ZeroPad3d = _pad("ZeroPad3d", _ZeroPad, 3, "constant")
ReflectionPad1d = _pad("ReflectionPad1d", _Pad, 1, "reflect")
ReflectionPad2d = _pad("ReflectionPad2d", _Pad, 2, "reflect")
ReflectionPad3d = _pad("ReflectionPad3d", _Pad, 3, "reflect")
ReplicationPad1d = _pad("ReplicationPad1d", _Pad, 1, "replicate")
ReplicationPad2d = _pad("ReplicationPad2d", _Pad, 2, "replicate")
ReplicationPad3d = _pad("ReplicationPad3d", _Pad, 3, "replicate")
CircularPad1d = _pad("CircularPad1d", _Pad, 1, "circular")
CircularPad2d = _pad("CircularPad2d", _Pad, 2, "circular")
CircularPad3d = _pad("CircularPad3d", _Pad, 3, "circular")

_WINDOWS = {"kernel_size": required, "dilation": 1, "padding": 0, "stride": 1}
Unfold = stateless("Unfold", F.unfold, _WINDOWS)
Fold = stateless("Fold", F.fold, {"output_size": required, **_WINDOWS})


class Upsample(Module):
    """Resizes the spatial dimensions; see `functional.interpolate`."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        if isinstance(scale_factor, tuple):
            scale_factor = tuple(map(float, scale_factor))
        elif scale_factor:
            scale_factor = float(scale_factor)
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


CosineSimilarity = stateless(
    "CosineSimilarity", F.cosine_similarity, {"dim": 1, "eps": 1e-8}, shown=()
)
PairwiseDistance = stateless(
    "PairwiseDistance", F.pairwise_distance, {"p": 2.0, "eps": 1e-6, "keepdim": False}, shown=()
)
