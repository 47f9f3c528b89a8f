"""Python's number types where PyTorch takes a dtype: the same results and kinds of errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda lib, x, d: lib.sum(x, dtype=d),
    "sum over a dim": lambda lib, x, d: x.sum(0, dtype=d),
    "sum with NumPy's names": lambda lib, x, d: x.sum(axis=0, keepdims=True, dtype=d),
    "mean": lambda lib, x, d: lib.mean(x, dtype=d),
    "prod": lambda lib, x, d: lib.prod(x, 0, dtype=d),
    "nansum": lambda lib, x, d: lib.nansum(x, dtype=d),
    "cumsum": lambda lib, x, d: x.cumsum(0, dtype=d),
    "cumprod": lambda lib, x, d: x.cumprod(0, dtype=d),
    "softmax": lambda lib, x, d: lib.softmax(x, 0, dtype=d),
    "softmax by position": lambda lib, x, d: lib.softmax(x, 0, d),
    "log_softmax": lambda lib, x, d: lib.nn.functional.log_softmax(x, 0, dtype=d),
    "softmin": lambda lib, x, d: lib.nn.functional.softmin(x, 0, dtype=d),
    "linspace": lambda lib, x, d: lib.linspace(0, 4, 5, dtype=d),
    "logspace": lambda lib, x, d: lib.logspace(0, 1, 3, dtype=d),
    "arange": lambda lib, x, d: lib.arange(3, dtype=d),
    "range": lambda lib, x, d: lib.range(0, 3, dtype=d),
    "randperm": lambda lib, x, d: (lib.manual_seed(0), lib.randperm(5, dtype=d))[1],
    "tril_indices": lambda lib, x, d: lib.tril_indices(2, 3, dtype=d),
    "norm": lambda lib, x, d: lib.norm(x, dtype=d),
    "norm over a dim": lambda lib, x, d: x.norm(2, 0, dtype=d),
    "nuclear norm": lambda lib, x, d: lib.norm(x, "nuc", dtype=d),
    "linalg.norm": lambda lib, x, d: lib.linalg.norm(x, dtype=d),
    "matrix_norm": lambda lib, x, d: lib.linalg.matrix_norm(x, dtype=d),
    "hann_window": lambda lib, x, d: lib.hann_window(5, dtype=d),
    "kaiser_window": lambda lib, x, d: lib.kaiser_window(5, dtype=d),
    "to": lambda lib, x, d: x.to(d),
    "to a device and": lambda lib, x, d: x.to("cpu", d),
    "type": lambda lib, x, d: x.type(d),
    "zeros": lambda lib, x, d: lib.zeros(2, dtype=d),
    "full": lambda lib, x, d: lib.full((2,), 1, dtype=d),
    "tensor": lambda lib, x, d: lib.tensor([1, 0], dtype=d),
    "ones_like": lambda lib, x, d: lib.ones_like(x, dtype=d),
    "new_tensor": lambda lib, x, d: x.new_tensor([1, 0], dtype=d),
    "frombuffer": lambda lib, x, d: lib.frombuffer(bytearray(16), dtype=d),
    "finfo": lambda lib, x, d: repr(lib.finfo(d)),
    "iinfo": lambda lib, x, d: repr(lib.iinfo(d)),
    "promote_types": lambda lib, x, d: str(lib.promote_types(d, lib.int32)),
    "can_cast": lambda lib, x, d: lib.can_cast(d, lib.float64),
    "Linear": lambda lib, x, d: str(lib.nn.Linear(2, 2, dtype=d).weight.dtype),
}


def result(lib: Any, name: str, dtype: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3) + 1
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # range is deprecated
            value = CALLS[name](lib, x, dtype)
    except (RuntimeError, TypeError, ValueError) as error:
        return RuntimeError if isinstance(error, RuntimeError) else type(error)
    if not isinstance(value, lib.Tensor):
        return value
    return str(value.dtype), pytest.approx(value.tolist(), rel=1e-6) if value.ndim < 2 else (
        pytest.approx(value.flatten().tolist(), rel=1e-6)
    )


def plain(lib: Any, name: str, dtype: Any) -> Any:
    value = result(lib, name, dtype)
    return (value[0], value[1].expected) if isinstance(value, tuple) else value


@pytest.mark.parametrize("dtype", [float, int, bool, complex])
@pytest.mark.parametrize("name", CALLS)
def test_a_python_type_is_its_dtype(name: str, dtype: Any) -> None:
    assert plain(tlc, name, dtype) == result(torch, name, dtype)


@pytest.mark.parametrize("dtype", [str, 3, "float32", type(None)])
@pytest.mark.parametrize("name", ["sum", "mean", "softmax", "cumsum", "norm", "zeros", "linspace"])
def test_other_things_are_no_dtypes(name: str, dtype: Any) -> None:
    assert plain(tlc, name, dtype) is result(torch, name, dtype) is TypeError


@pytest.mark.parametrize(
    "name", ["sum", "randperm", "tril_indices", "norm", "hann_window", "range"]
)
def test_none_is_the_default(name: str) -> None:
    assert plain(tlc, name, None) == result(torch, name, None)
