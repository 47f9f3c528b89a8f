"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.stateless import Stateless, required, stateless


class _Pool(Stateless):
    """Pooling over windows, whose stride is the window's size unless given."""

    kernel_size: Any
    stride: Any

    def check(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size


_MAX: dict[str, Any] = {
    "kernel_size": required,
    "stride": None,
    "padding": 0,
    "dilation": 1,
    "return_indices": False,
    "ceil_mode": False,
}
_MAX_SHOWN = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")


class _MaxPool(_Pool):
    def forward(self, input: Any) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


MaxPool1d = stateless("MaxPool1d", F.max_pool1d, _MAX, _MAX_SHOWN, base=_MaxPool)
MaxPool2d = stateless("MaxPool2d", F.max_pool2d, _MAX, _MAX_SHOWN, base=_MaxPool)
MaxPool3d = stateless("MaxPool3d", F.max_pool3d, _MAX, _MAX_SHOWN, base=_MaxPool)

_MEAN: dict[str, Any] = {
    "kernel_size": required,
    "stride": None,
    "padding": 0,
    "ceil_mode": False,
    "count_include_pad": True,
}
_MEAN_SHOWN = ("kernel_size", "stride", "padding")


class _AvgPool1d(_Pool):
    """torch shows, and keeps, the one-dimensional arguments as tuples."""

    def check(self) -> None:
        super().check()
        for name in _MEAN_SHOWN:
            value = getattr(self, name)
            setattr(self, name, (value,) if isinstance(value, int) else tuple(value))


AvgPool1d = stateless("AvgPool1d", F.avg_pool1d, _MEAN, _MEAN_SHOWN, base=_AvgPool1d)
_MEAN_DIVISOR = {**_MEAN, "divisor_override": None}
AvgPool2d = stateless("AvgPool2d", F.avg_pool2d, _MEAN_DIVISOR, _MEAN_SHOWN, base=_Pool)
AvgPool3d = stateless("AvgPool3d", F.avg_pool3d, _MEAN_DIVISOR, _MEAN_SHOWN, base=_Pool)


class _Adaptive(Stateless):
    """Pooling to a given output size."""

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


_SIZE = {"output_size": required}
_SIZE_INDICES = {"output_size": required, "return_indices": False}
AdaptiveAvgPool1d = stateless("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, _SIZE, base=_Adaptive)
AdaptiveAvgPool2d = stateless("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, _SIZE, base=_Adaptive)
AdaptiveAvgPool3d = stateless("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, _SIZE, base=_Adaptive)
AdaptiveMaxPool1d = stateless(
    "AdaptiveMaxPool1d", F.adaptive_max_pool1d, _SIZE_INDICES, base=_Adaptive
)
AdaptiveMaxPool2d = stateless(
    "AdaptiveMaxPool2d", F.adaptive_max_pool2d, _SIZE_INDICES, base=_Adaptive
)
AdaptiveMaxPool3d = stateless(
    "AdaptiveMaxPool3d", F.adaptive_max_pool3d, _SIZE_INDICES, base=_Adaptive
)


class _FractionalMaxPool(Module):
    """Max pooling over windows at random places; `output_size` or `output_ratio` is given."""

    ndim: int
    function: Any

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        per_axis = lambda value: (value,) * self.ndim if isinstance(value, (int, float)) else value
        self.kernel_size = per_axis(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else per_axis(output_size)
        self.output_ratio = None if output_ratio is None else per_axis(output_ratio)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """`functional.fractional_max_pool2d` as a module."""

    ndim = 2
    function = staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """`functional.fractional_max_pool3d` as a module."""

    ndim = 3
    function = staticmethod(F.fractional_max_pool3d)
