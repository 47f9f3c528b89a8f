"""Tensors of evenly spaced numbers and powers: `arange`, `range`, `linspace`, `logspace`."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Layout
from tensorflow_lite_clone.core.dtypes import FLOAT8, DType, as_dtype, get_default_dtype
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.limits import as_int64, fitting_number
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.create.constructors import finish
from tensorflow_lite_clone.ops.decorators.out import with_new_out
from tensorflow_lite_clone.ops.pointwise._operands import as_number, refuse
from tensorflow_lite_clone.tensor import Tensor

_SUMMED_IN = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}
_WIDE = {dtypes.float32: dtypes.float64, dtypes.complex64: dtypes.complex128}


def _number(name: str, value: Any) -> Any:
    """A real Python number for a number, NumPy scalar or one-element Tensor."""
    number = value.item() if isinstance(value, Tensor) else as_number(value)
    if number is None:
        raise TypeError(f"{name}(): argument must be Number, not {type(value).__name__}")
    return fitting_number(number, dtypes.float64)


def _expect_numbers(name: str, *values: Any) -> None:
    """Raise TypeError for what is neither a Tensor nor a number."""
    for value in values:
        if not isinstance(value, Tensor) and as_number(value) is None:
            raise TypeError(f"{name}(): argument must be Number, not {type(value).__name__}")


@public("torch")
@functools.partial(with_new_out, fills=True)
def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Numbers from `start` up to (not including) `end` in steps; int64 when all are ints."""
    if end is None:
        if start is None:
            raise TypeError('arange() missing 1 required positional arguments: "end"')
        start, end = 0, start
    start, end, step = [_number("arange", v) for v in (0 if start is None else start, end, step)]
    if dtype is None:
        whole = all([isinstance(value, int) for value in (start, end, step)])
        dtype = dtypes.int64 if whole else get_default_dtype()
    else:
        dtype = as_dtype(dtype)
        _refuse("arange", dtype, "bc")
    _check_range(start, end, step)
    backend = backends.load(device)
    count = math.ceil((end - start) / step)
    if dtype.kind in "iu":  # as torch: each of them is cut to an integer
        whole = all([isinstance(value, int) for value in (start, end, step)])
        start, end, step = int(start), int(end), int(step)
        if dtype is dtypes.int64:
            for value in (start, end, step):
                fitting_number(value, dtype)
        if dtype is dtypes.int64 or whole:
            if not step:
                raise ValueError("step must be nonzero")
            count = max(0, -((start - end) // step))
        start, step = as_int64(start), as_int64(step)
    else:
        step = float(step)
    array = backend.guarded(_stepped)(backend.F, count, step, start)
    return finish(backend.F.astype(array, dtype), backend, requires_grad)


@public("torch", names=("range",))
@functools.partial(with_new_out, fills=True)
def closed_range(
    start: Any,
    end: Any,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Numbers from `start` up to and including `end` in steps; `arange` is what PyTorch advises.

    The dtype is the default one.
    """
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        stacklevel=level_outside(),
    )
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    _check_range(start, end, step)
    backend = backends.load(device)
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    _refuse("range", dtype, "bc")
    if dtype.kind in "iu":  # as torch: each of them is cut to an integer
        start, end, step = int(start), int(end), int(step)
        _check_range(start, end, step)
        count = (end - start) // step + 1
    else:  # as torch: for two-byte floats in float32
        host = backends.load("cpu")
        wide = host.native[_SUMMED_IN.get(dtype, dtypes.float64)]
        first, last, by = [host.constant(v, wide) for v in (start, end, step)]
        count = int((last - first) / by) + 1
    array = backend.guarded(_stepped)(backend.F, count, step, start)
    return finish(backend.F.astype(array, dtype), backend, requires_grad)


def _check_range(start: Any, end: Any, step: Any) -> None:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _refuse(name: str, dtype: DType | None, kinds: str) -> None:
    if dtype is not None and (as_dtype(dtype).kind in kinds or dtype in FLOAT8):
        refuse(f"{name}_cpu", as_dtype(dtype))


def _stepped(F: Any, count: int, step: float, start: float) -> Any:
    return F.arange(count) * step + start


def _whole(start: Any, end: Any, steps: Any, dtype: DType) -> tuple[int, int]:
    """The ends that are used as integers of `dtype`; negative ones wrap around in unsigned dtypes.

    RuntimeError for those that it does not hold.
    """
    first = fitting_number(start, dtype) if steps else 0
    return first, fitting_number(end, dtype) if steps and steps > 1 else first


def _spaced(start: Any, end: Any, steps: int, dtype: DType | None, backend: Any) -> tuple:
    try:
        steps = operator.index(steps)
    except TypeError:
        raise TypeError(f"argument 'steps' must be int, not {type(steps).__name__}") from None
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    start, end = (v.item() if isinstance(v, Tensor) else v for v in (start, end))
    dtype = None if dtype is None else as_dtype(dtype)
    if dtype is None:
        dtype = get_default_dtype()
        if isinstance(start, complex) or isinstance(end, complex):
            dtype = dtype.to_complex()
    F = backend.F
    if dtype.kind in "iu":
        start, end = _whole(start, end, steps, dtype)
        step = (end - start) / max(steps - 1, 1)
        return F.trunc(_from_both_ends(F, start, end, step, steps, F.float64)), dtype
    # as torch: the step in the dtype itself, and product and sum rounded once
    work = backend.native[dtype]
    first, last, count = [backend.constant(v, work) for v in (start, end, max(steps - 1, 1))]
    step = (last - first) / count
    wide = backend.native[_WIDE.get(dtype, dtype)]
    first, last, step = [F.astype(v, wide) for v in (first, last, step)]
    return _from_both_ends(F, first, last, step, steps, wide), dtype


def _whole_exponents(start: Any, end: Any, steps: int, dtype: DType, backend: Any) -> tuple:
    """Exponents between integers, in float32 whatever the dtype, as torch has them."""
    start, end = _whole(_number("logspace", start), _number("logspace", end), steps, dtype)
    F, single = backend.F, backend.native[dtypes.float32]
    first, last, count = [backend.constant(v, single) for v in (start, end, max(steps - 1, 1))]
    return _from_both_ends(F, first, last, (last - first) / count, steps, single), dtype


def _from_both_ends(F: Any, first: Any, last: Any, step: Any, steps: int, dtype: Any) -> Any:
    """The first half counted from `first`, the second from `last`."""
    index = F.arange(steps)
    forth, back = F.astype(index, dtype), F.astype(steps - 1 - index, dtype)
    return F.where(index < max(steps // 2, 1), first + step * forth, last - step * back)


@public("torch")
@functools.partial(with_new_out, fills=True)
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included."""
    backend = backends.load(device)
    _refuse("linspace", dtype, "b")
    _expect_numbers("linspace", start, end)
    values, dtype = backend.guarded(_spaced)(start, end, steps, dtype, backend)
    return finish(backend.F.astype(values, dtype), backend, requires_grad)


@public("torch")
@functools.partial(with_new_out, fills=True)
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """``base ** linspace(start, end, steps)``."""
    backend = backends.load(device)
    _refuse("logspace", dtype, "b")
    _expect_numbers("logspace", start, end)
    final = get_default_dtype() if dtype is None else as_dtype(dtype)
    spaced = backend.guarded(_whole_exponents if final.kind in "iu" else _spaced)
    exponents, _ = spaced(start, end, steps, final, backend)
    powers = backend.F.pow(backend.constant(base, exponents.dtype), exponents)
    return finish(backend.F.astype(powers, final), backend, requires_grad)
