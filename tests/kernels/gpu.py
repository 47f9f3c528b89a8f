"""Runs an override on the GPU beside the generic form, both measured from float64 on the CPU."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

#: The dtypes under test; compute-sanitizer is slow, and two widths of elements show it enough.
ALL = tuple(os.environ.get("KERNEL_DTYPES", "float32,float16,bfloat16,float64").split(","))
HALF = tuple(name for name in ("float16", "bfloat16") if name in ALL)
_UNITS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}


def why_not() -> str | None:
    """Why nothing can be launched here, or None."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    import cupy  # an optional extra

    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "CuPy finds no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU: {error}"


_REASON = why_not()
needs_gpu = [pytest.mark.cuda, pytest.mark.skipif(bool(_REASON), reason=str(_REASON))]


class Laid(NamedTuple):
    """A host array that is to lie on the device in another layout."""

    array: np.ndarray
    layout: str  # channels_last, transposed, sliced, offset, expanded


def on_device(value: Any, dtype: str | None) -> Any:
    """The CUDA array of a host array in its layout; floats in `dtype`."""
    import cupy

    from tensorflow_lite_clone.backends.cupy.native import NATIVE

    if value is None:
        return None
    host, layout = value if isinstance(value, Laid) else (value, "contiguous")
    host = np.asarray(host)
    x = cupy.asarray(host)
    if host.dtype.kind == "f" and dtype is not None:
        native = next(native for kind, native in NATIVE.items() if kind.name == dtype)
        x = x.astype(native)
    if layout == "channels_last":
        back = (0, x.ndim - 1, *range(1, x.ndim - 1))
        return cupy.ascontiguousarray(cupy.moveaxis(x, 1, -1)).transpose(back)
    if layout == "transposed":
        return cupy.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "sliced":
        wide = cupy.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if layout == "offset":  # contiguous, and aligned to no more than one element
        flat = cupy.zeros(x.size + 1, x.dtype)
        flat[1:] = x.ravel()
        return flat[1:].reshape(x.shape)
    if layout == "expanded":
        return cupy.broadcast_to(x[:1], x.shape)
    return x


def run_override(name: str, arrays: Sequence[Any], parameters: dict) -> Any:
    """The override's own result on arrays of cuda:0, its outputs in poisoned memory."""
    import cupy

    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch import table

    primitives = backends.load("cuda:0").F
    poison(cupy)
    return table.overrides[name, "cupy"](primitives, *arrays, **parameters)


def run_formula(name: str, arrays: Sequence[Any], parameters: dict) -> Any:
    """The result of the one kernel that is generated for a pointwise op or composite."""
    import cupy

    from tensorflow_lite_clone.backends.cupy.fusion.formula import formula
    from tensorflow_lite_clone.dispatch.op import TABLE

    def refuse(*arrays: Any, **parameters: Any) -> Any:
        raise AssertionError(f"{name} is not taken for a pointwise formula")

    entry: Any = TABLE[name]
    body = getattr(entry, "forward", entry)
    poison(cupy)
    return formula(name, body, refuse)(*arrays, **parameters)


def poison(cupy: Any) -> None:
    """Fill what the pool hands out next with NaNs, so that unwritten outputs show."""
    held = [cupy.cuda.alloc(1 << i) for i in (*range(9, 25), *range(9, 23))]
    for memory in held:
        memory.memset(0xFF, memory.mem.size)
    del held


def check(
    name: str,
    arrays: Sequence[Any],
    parameters: dict[str, Any],
    dtypes: Sequence[str] = ALL,
    *,
    slack: float = 8.0,
    compare: Callable[[Any], Any] | None = None,
    run: Callable[[str, Sequence[Any], dict], Any] = run_override,
) -> None:
    """Assert that the override `name` serves the call in each dtype, and is as good as the generic.

    `arrays` are host arrays, `Laid` ones, or None; floating ones are given in each of `dtypes`.
    err(override) <= 2 err(generic) + `slack` units in the last place of the largest value, both
    against the generic form in float64 on the CPU. `compare` picks the outputs to look at; with
    `run` something else than the override gives them.
    """
    import cupy

    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch.op import TABLE

    entry: Any = TABLE[name]
    generic: Any = getattr(entry, "forward", entry)  # an op, or a composite
    host_f, device_f = backends.load("cpu").F, backends.load("cuda:0").F
    adapted = backends.load("cuda:0").adapted(entry, lambda *a, **p: generic(device_f, *a, **p))
    for dtype in [dtype for dtype in dtypes if dtype in ALL]:
        given = [on_device(value, dtype) for value in arrays]
        before = [None if x is None else x.copy() for x in given]
        mine = run(name, given, parameters)
        assert mine is not NotImplemented, f"{name} declined {dtype}"
        cupy.cuda.Device().synchronize()
        for x, old in zip(given, before):
            assert x is None or bool(((x == old) | (x != x)).all()), "an input was written"
        exact = [
            None if x is None else _host(x, np.float64 if x.dtype.kind in "fV" else None)
            for x in given
        ]
        true = generic(host_f, *exact, **parameters)
        plain = adapted(*given, **parameters)
        if compare is not None:
            mine, plain, true = compare(mine), compare(plain), compare(true)
        outputs = zip(_flat(mine), _flat(plain), _flat(true), strict=True)
        for number, (m, p, t) in enumerate(outputs):
            if t is None:
                assert m is None, f"{name} {dtype}: output {number} should be None"
                continue
            where = f"{name} {dtype}, output {number}"
            assert (m.shape, m.dtype) == (p.shape, p.dtype), where
            as_good(where, m, _host(m), _host(p), np.asarray(t), slack)


def as_good(
    where: str, array: Any, mine: np.ndarray, plain: np.ndarray, true: np.ndarray, slack: float
) -> None:
    """Assert err(mine) <= 2 err(plain) + `slack` units in the last place of the largest value."""
    if array.dtype.kind not in "fV":
        np.testing.assert_array_equal(mine, true, where)
        return
    mine, plain = mine.astype(np.float64), plain.astype(np.float64)
    finite = np.isfinite(plain) & np.isfinite(true)
    np.testing.assert_array_equal(mine[~finite], plain[~finite], where)
    if not finite.any():
        return
    unit = _UNITS[array.dtype.name]
    allowed = 2 * np.abs(plain - true)[finite].max()
    allowed += slack * unit * np.abs(true[finite]).max()
    wrong = np.abs(mine - true)[finite].max()
    assert wrong <= allowed, f"{where}: error {wrong:.3g}, allowed {allowed:.3g}"


def _host(x: Any, dtype: Any = None) -> np.ndarray:
    array = x.get() if hasattr(x, "get") else np.asarray(x)
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return array if dtype is None else array.astype(dtype)


def _flat(result: Any) -> list:
    return list(result) if isinstance(result, (tuple, list)) else [result]
