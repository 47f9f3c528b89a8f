"""The standard's Fourier transform extension, ``F.fft``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.ops.fft import frequencies
from tensorflow_lite_clone.ops.fft import transforms as _fft
from tensorflow_lite_clone.tensor import Tensor

#: The records of this namespace by the functions' names.
_RECORDS = {
    name.removeprefix("fft."): record
    for name, record in PRIMITIVES.items()
    if name.startswith("fft.")
}
__all__ = sorted(_RECORDS)  # noqa: PLE0605

Norm = Literal["backward", "ortho", "forward"]


def _along_axis(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward"
    ) -> Tensor:
        return transform(x, n, axis, norm)

    return function


def _along_axes(transform: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: Norm = "backward",
    ) -> Tensor:
        return transform(x, s, axes, norm)

    return function


_FORMS = {kinds.transform: (_along_axis, "axis"), kinds.transforms: (_along_axes, "axes")}
for _name, _record in _RECORDS.items():
    if _record.kind in _FORMS:
        _form, _axis = _FORMS[_record.kind]
        _transform = getattr(_fft, _name)
        _function = _form(_transform)
        _function.__name__ = _function.__qualname__ = _name
        _function.__doc__ = re.sub(r"\bdim\b", _axis, _transform.__doc__)
        globals()[_name] = _function


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of `fft`."""
    return frequencies.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(
    n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """The frequencies of the elements of `rfft`."""
    return frequencies.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """With the frequency 0 in the middle of `axes`, by default of all."""
    return frequencies.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return frequencies.ifftshift(x, axes)
