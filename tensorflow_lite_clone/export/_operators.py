"""Operators, norms and casts as the operations of aten's that they are in PyTorch."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.export._capture import Capture
from tensorflow_lite_clone.export._errors import data_dependent
from tensorflow_lite_clone.export._queries import handler
from tensorflow_lite_clone.export._symbolic import SymFloat, SymInt
from tensorflow_lite_clone.ops.namespaces import aten
from tensorflow_lite_clone.tensor import Tensor

# -- operators, norms ------------------------------------------------------------------------------


def _operator(name: str, called: str, reflected: bool = False) -> None:
    @handler(name)
    def run(capture: Capture, x: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, int, float, complex, SymInt, SymFloat)):
            return NotImplemented
        return capture.call(called, *((other, x) if reflected else (x, other)))


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _operator(f"__{_name}__", _name)
_operator("__floordiv__", "floor_divide")
_operator("__ifloordiv__", "floor_divide_")
_operator("__rpow__", "pow", True)
_operator("__rmod__", "remainder", True)
_operator("__rmatmul__", "matmul", True)
_operator("__rsub__", "rsub")
_operator("__rlshift__", "bitwise_left_shift", True)
_operator("__rrshift__", "bitwise_right_shift", True)


@handler("__rdiv__", "__rtruediv__")
def _divided_by(capture: Capture, x: Tensor, other: Any) -> Tensor:
    return capture.call("mul", capture.call("reciprocal", x), other)


@handler("__rfloordiv__")
def _floor_divided_by(capture: Capture, x: Tensor, other: Any) -> Tensor:
    return capture.call("floor", _divided_by(capture, x, other))


@handler("norm")
def _norm(
    capture: Capture, input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False,
    out: Any = None, dtype: Any = None,
) -> Tensor:  # fmt: skip
    if p == "nuc":
        axes = (-2, -1) if dim is None else dim
        return capture.call("linalg_matrix_norm", input, p, axes, keepdim, dtype=dtype)
    order = 2 if p in ("fro", None) else p
    return capture.call("linalg_vector_norm", input, order, dim, keepdim, dtype=dtype)


@handler("normalize")
def _normalize(
    capture: Capture, input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12,
    out: Any = None,
) -> Tensor:  # fmt: skip
    length = capture.call("clamp_min", _norm(capture, input, p, dim, True), eps)
    return capture.call("div", input, capture.call("expand_as", length, input))


@handler("tensordot")
def _tensordot(capture: Capture, a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    if isinstance(dims, int):
        dims = [*range(-dims, 0)], [*range(dims)]
    elif isinstance(dims, Tensor):
        raise data_dependent("of the dimensions of tensordot")
    pairs = [list(each) if isinstance(each, (tuple, list)) else [each] for each in dims]
    return capture.call("tensordot", a, b, *pairs)


# -- casts -----------------------------------------------------------------------------------------


@handler("to")
def _to(capture: Capture, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    others = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    if others:
        like = others[0]
        _assert_metadata(capture, x)
        return capture.call("to", x, capture.traced(like).device, like.dtype)
    device, dtype, options = _casts(args, kwargs)
    if device is not None or dtype is not None:
        _assert_metadata(capture, x)
    if device is not None and dtype is None:
        layout = {"dtype": x.dtype, "layout": x.layout, "device": device}
        return capture.call("to", x, **layout, **options)
    if device is not None:
        return capture.call("to", x, device, dtype, **options)
    return x if dtype is None else capture.call("to", x, dtype, **options)


def _assert_metadata(capture: Capture, x: Tensor) -> None:
    """Note what a tensor is before it is cast, as PyTorch does."""
    traced = capture.traced(x)
    options = {"dtype": x.dtype, "device": traced.device, "layout": x.layout}
    capture.add(aten._assert_tensor_metadata.default, (x,), options, named=False)


def _casts(args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    device, dtype, options = None, None, {}
    names = iter(("non_blocking", "copy"))
    for value in args:
        if isinstance(value, DType):
            dtype = value
        elif isinstance(value, (Device, str)):
            device = Device(value)
        elif isinstance(value, bool):
            options[next(names)] = value
    for name, value in kwargs.items():
        if name == "dtype":
            dtype = value
        elif name == "device":
            device = None if value is None else Device(value)
        else:
            options[name] = value
    return device, dtype, {k: v for k, v in options.items() if v not in (False, None)}


_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool_", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip


def _cast(name: str, dtype: Any) -> None:
    @handler(name)
    def run(capture: Capture, x: Tensor, memory_format: Any = None) -> Tensor:
        return _to(capture, x, dtype)


for _name, _dtype in _DTYPES.items():
    _cast(_name, getattr(dtypes, _dtype))


@handler("type")
def _type(capture: Capture, x: Tensor, dtype: Any = None, **options: Any) -> Any:
    return x.type() if dtype is None else _to(capture, x, dtype)


@handler("cpu", "cuda")
def _move(capture: Capture, x: Tensor, device: Any = None, **options: Any) -> Tensor:
    target = "cpu" if device is None else device
    return _to(capture, x, device=target)
