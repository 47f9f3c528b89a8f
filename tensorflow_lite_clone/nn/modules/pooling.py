"""Pooling as modules."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.nn.modules.utils import _ntuple, _single
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Stateless):
    """The largest element of every window; `return_indices` also says where it was."""

    repr_fields = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """Max pooling of (N, C, L) or (C, L); see `functional.max_pool1d`."""

    function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """Max pooling of (N, C, H, W) or (C, H, W); see `functional.max_pool2d`."""

    function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """Max pooling of (N, C, D, H, W) or (C, D, H, W); see `functional.max_pool3d`."""

    function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Stateless):
    """Puts what max pooling kept back to its `indices`, among zeros.

    `output_size` says which of the sizes that pool to the input's is meant.
    """

    dimensions: ClassVar[int]
    repr_fields = ("kernel_size", "stride", "padding")

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        per_axis = _ntuple(self.dimensions)
        self.kernel_size = per_axis(kernel_size)
        self.stride = per_axis(kernel_size if stride is None else stride)
        self.padding = per_axis(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return type(self).function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool1d`; see `functional.max_unpool1d`."""

    dimensions = 1
    function = staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool2d`; see `functional.max_unpool2d`."""

    dimensions = 2
    function = staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool3d`; see `functional.max_unpool3d`."""

    dimensions = 3
    function = staticmethod(F.max_unpool3d)


class _AvgPoolNd(Stateless):
    """The mean of every window."""

    repr_fields = ("kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd):
    """Mean pooling of (N, C, L) or (C, L); see `functional.avg_pool1d`."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolWithDivisor(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolWithDivisor):
    """Mean pooling of (N, C, H, W) or (C, H, W); see `functional.avg_pool2d`."""

    function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolWithDivisor):
    """Mean pooling of (N, C, D, H, W) or (C, D, H, W); see `functional.avg_pool3d`."""

    function = staticmethod(F.avg_pool3d)


class _LPPoolNd(Stateless):
    """The p-norm of every window, p being `norm_type`."""

    repr_fields = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )


class LPPool1d(_LPPoolNd):
    """Pooling by norm of (N, C, L) or (C, L); see `functional.lp_pool1d`."""

    function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """Pooling by norm of (N, C, H, W) or (C, H, W); see `functional.lp_pool2d`."""

    function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPoolNd):
    """Pooling by norm of (N, C, D, H, W) or (C, D, H, W); see `functional.lp_pool3d`."""

    function = staticmethod(F.lp_pool3d)


class _AdaptiveAvgPoolNd(Stateless):
    """Means over as many windows as `output_size` says."""

    repr_fields = ("output_size",)

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean pooling to a given length; see `functional.adaptive_avg_pool1d`."""

    function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean pooling to a given size; see `functional.adaptive_avg_pool2d`."""

    function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean pooling to a given size; see `functional.adaptive_avg_pool3d`."""

    function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPoolNd(Stateless):
    """The largest elements of as many windows as `output_size` says."""

    repr_fields = ("output_size",)

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        return type(self).function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling to a given length; see `functional.adaptive_max_pool1d`."""

    function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling to a given size; see `functional.adaptive_max_pool2d`."""

    function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling to a given size; see `functional.adaptive_max_pool3d`."""

    function = staticmethod(F.adaptive_max_pool3d)


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
