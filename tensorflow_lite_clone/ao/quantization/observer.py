"""Observers: they look at tensors and say which scale and zero point these should have."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from tensorflow_lite_clone.core.dtypes import (
    QUANTIZED,
    DType,
    float32,
    int64,
    qint8,
    quint8,
)
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.limits import finfo, iinfo
from tensorflow_lite_clone.core.qscheme import (
    QScheme,
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.tensor import Tensor


class Partial:
    """A class with some of its arguments, as ``QConfig`` holds observers; prints as in PyTorch."""

    def __init__(self, constructor: Any) -> None:
        self.p = constructor

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.p(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{self.p!r}{{}}"

    def with_args(self, **kwargs: Any) -> Partial:
        """The same with further arguments."""
        return Partial(functools.partial(self.p, **kwargs))


class ObserverBase(Module):
    """Looks at tensors that are to be of `dtype`, and passes them on."""

    def __init__(self, dtype: DType, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @classmethod
    def with_args(cls, **kwargs: Any) -> Partial:
        """A constructor of the class with these arguments, for a `QConfig`."""
        return Partial(functools.partial(cls, **kwargs))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and zero point for what was seen."""
        raise NotImplementedError(f"{type(self).__name__} chooses no scale")


class PlaceholderObserver(ObserverBase):
    """Looks at nothing: it says that a tensor is cast to `dtype`, or quantized at every call."""

    def __init__(
        self,
        dtype: DType = float32,
        custom_op_name: str = "",
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        self.custom_op = custom_op_name
        self.quant_min, self.quant_max = quant_min, quant_max

    def forward(self, x: Tensor) -> Tensor:
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class MinMaxObserver(ObserverBase):
    """The range [low, high] from the least to the largest number seen, over all elements.

    The scale of ``per_tensor_affine`` is ``(high - low) / (quant_max - quant_min)``, as in
    `quantized.quantize.choose_parameters`. That of ``per_tensor_symmetric``, with which a weight's
    zero is the code 0, is ``max(-low, high) / ((quant_max - quant_min) / 2)``. It is at least
    `eps`. `quant_min` and `quant_max` are by default the least and the largest code of `dtype`,
    half of them with `reduce_range`.

    >>> from torch.ao.quantization import MinMaxObserver
    >>> observer = MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
    >>> _ = observer(torch.tensor([-2.55, 1.0]))
    >>> observer.calculate_qparams()
    (tensor([0.0200]), tensor([0]))
    """

    schemes: tuple[QScheme, ...] = per_tensor_affine, per_tensor_symmetric
    ch_axis: int | None = None

    def __init__(
        self,
        dtype: DType = quint8,
        qscheme: QScheme = per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = finfo(float32).eps,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        name = type(self).__name__
        if qscheme not in self.schemes:
            raise NotImplementedError(f"{name}'s qscheme is one of {self.schemes}, got {qscheme}")
        if dtype not in QUANTIZED:
            raise NotImplementedError(f"{name}'s dtype is one of {[*QUANTIZED]}, got {dtype}")
        self.qscheme, self.reduce_range, self.eps = qscheme, reduce_range, eps
        limits, part = iinfo(QUANTIZED[dtype]), 2 if reduce_range else 1
        self.quant_min = limits.min // part if quant_min is None else quant_min
        self.quant_max = limits.max // part if quant_max is None else quant_max
        self._custom_codes = quant_min is not None and quant_max is not None
        self.reset_min_max_vals()

    min_val: Tensor
    max_val: Tensor

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.register_buffer("min_val", tensor(float("inf")))
        self.register_buffer("max_val", tensor(float("-inf")))

    def _range(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.amin(), x.amax()

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel():
            low, high = self._range(x_orig.detach().to(float32))
            seen = self.min_val.numel() > 0
            self.min_val = low.minimum(self.min_val.to(low.device)) if seen else low
            self.max_val = high.maximum(self.max_val.to(low.device)) if seen else high
        return x_orig

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale in float32 and the zero point in int64, vectors."""
        low, high = self.min_val.reshape(-1), self.max_val.reshape(-1)
        if not low.numel() or bool((low > high).any()):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.",
                stacklevel=level_outside(),
            )
            return tensor([1.0]), tensor([0])
        low, high = low.clamp(max=0.0), high.clamp(min=0.0)
        codes = self.quant_max - self.quant_min
        if self.qscheme in (per_tensor_symmetric, per_channel_symmetric):
            scale = (high.maximum(-low) / (codes / 2)).clamp(min=self.eps)
            middle = (self.quant_min + self.quant_max) // 2 if self._custom_codes else 128
            return scale, low.new_zeros(low.shape, dtype=int64) + (
                middle if self.dtype is quint8 else 0
            )
        scale = ((high - low) / codes).clamp(min=self.eps)
        zero_point = self.quant_min - (low / scale).round().to(int64)
        return scale, zero_point.clamp(self.quant_min, self.quant_max)

    def extra_repr(self) -> str:
        return f"min_val={self._shown(self.min_val)}, max_val={self._shown(self.max_val)}"

    def _shown(self, value: Tensor) -> Any:
        return value.item()


class PerChannelMinMaxObserver(MinMaxObserver):
    """`MinMaxObserver` with a range for each index along `ch_axis`."""

    schemes = per_channel_affine, per_channel_symmetric
    ch_axis: int

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: DType = quint8,
        qscheme: QScheme = per_channel_affine,
        **options: Any,
    ) -> None:
        super().__init__(dtype, qscheme, **options)
        self.ch_axis = ch_axis

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.register_buffer("min_val", tensor([]))
        self.register_buffer("max_val", tensor([]))

    def _range(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x.transpose(0, self.ch_axis).flatten(1)
        return rows.amin(1), rows.amax(1)

    def _shown(self, value: Tensor) -> Any:
        return value


default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_weight_observer = MinMaxObserver.with_args(dtype=qint8, qscheme=per_tensor_symmetric)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=qint8, qscheme=per_channel_symmetric
)
default_placeholder_observer = PlaceholderObserver
