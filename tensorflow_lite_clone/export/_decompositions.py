"""What operations are composed of, down to the core of aten's.

Each function has the arguments of an operation, and calls others by `call`: they run, or while a
program is captured they become nodes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

from tensorflow_lite_clone.core.device import Device, strided
from tensorflow_lite_clone.core.dtypes import bool_
from tensorflow_lite_clone.core.strides import contiguous_format, preserve_format, view_strides
from tensorflow_lite_clone.export._symbolic import SymInt
from tensorflow_lite_clone.ops.namespaces import OpOverload, aten
from tensorflow_lite_clone.python_dispatch import schemas
from tensorflow_lite_clone.tensor import Tensor


class _State(threading.local):
    capture: Any = None


_state = _State()


@contextmanager
def into(capture: Any) -> Iterator[None]:
    """Let `call` add nodes to a capture for a block."""
    before, _state.capture = _state.capture, capture
    try:
        yield
    finally:
        _state.capture = before


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the operation of aten's that takes these arguments."""
    if _state.capture is not None:
        return _state.capture.call(name, *args, **kwargs)
    found = schemas.resolve(name, args, kwargs)
    if found is None:
        raise TypeError(f"no overload of aten.{name} takes these arguments")
    return getattr(getattr(aten, name), found.overload)(*found.args, **found.kwargs)


def call_overload(func: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Call just this one."""
    return (
        func(*args, **kwargs) if _state.capture is None else _state.capture.emit(func, args, kwargs)
    )


def shape_of(x: Tensor) -> Any:
    """The sizes, symbolic while a program is captured."""
    return x.shape if _state.capture is None else _state.capture.shape(x)


_rules: dict[str, Callable[..., Any]] = {}


def rule(*names: str) -> Callable[[Any], Any]:
    """Let the decorated function compose these operations ("linear", "softmax.int")."""

    def register(function: Any) -> Any:
        _rules.update(dict.fromkeys(names, function))
        return function

    return register


class CustomDecompTable(dict[OpOverload, Callable[..., Any]]):
    """Operation -> what composes it of fewer ones: all that is known, to be changed."""

    def __init__(self) -> None:
        super().__init__()
        for name, function in _rules.items():
            packet, _, overload = name.partition(".")
            self[getattr(getattr(aten, packet), overload or "default")] = function

    def copy(self) -> CustomDecompTable:
        """Another table with the same entries."""
        other = CustomDecompTable()
        other.clear()
        other.update(self)
        return other

    def materialize(self) -> dict[OpOverload, Callable[..., Any]]:
        """The entries as a dictionary."""
        return dict(self)


def device_of(x: Tensor) -> Any:
    """Where a tensor is, or is in the program that is captured."""
    return x.device if _state.capture is None else _state.capture.traced(x).device


def scalar(value: Any, like: Tensor) -> Tensor:
    """A number as a tensor of another's dtype and device."""
    options = {"dtype": like.dtype, "layout": strided, "device": Device("cpu")}
    return call_overload(aten.scalar_tensor.default, value, **options)


def is_own(function: Any) -> bool:
    """Whether a function is one of those here, which calls by `call`."""
    return function in _rules.values()


# -- views -----------------------------------------------------------------------------------------


@rule("reshape", "view", "_unsafe_view")
def _reshape(x: Tensor, shape: Any) -> Tensor:
    sizes = list(shape)
    if -1 in [size for size in sizes if not isinstance(size, SymInt)]:
        place = sizes.index(-1)
        known = prod([size for i, size in enumerate(sizes) if i != place], start=1)
        sizes[place] = prod(shape_of(x), start=1) // known
    hints = tuple([s.hint if isinstance(s, SymInt) else s for s in sizes])
    if view_strides(x.shape, x.stride(), hints) is None:
        x = call("clone", x, memory_format=contiguous_format)
    return call("view", x, sizes)


@rule("flatten.using_ints")
def _flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    shape = shape_of(x)
    if not x.ndim:
        return call("view", x, [1])
    start, end = start_dim % x.ndim, end_dim % x.ndim
    if start == end:
        return x
    return _reshape(x, [*shape[:start], prod(shape[start : end + 1], start=1), *shape[end + 1 :]])


@rule("unflatten.int")
def _unflatten(x: Tensor, dim: int, sizes: Any) -> Tensor:
    shape, dim = shape_of(x), dim % x.ndim
    parts = list(sizes)
    if -1 in parts:
        known = prod([size for size in parts if size != -1])
        parts[parts.index(-1)] = shape[dim] // known
    return _reshape(x, [*shape[:dim], *parts, *shape[dim + 1 :]])


@rule("transpose.int")
def _transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    order = list(range(x.ndim))
    one, two = dim0 % max(x.ndim, 1), dim1 % max(x.ndim, 1)
    if order:
        order[one], order[two] = order[two], order[one]
    return call("permute", x, order)


@rule("t", "mT")
def _t(x: Tensor) -> Tensor:
    return x if x.ndim < 2 else _transpose(x, -2, -1)


@rule("numpy_T")
def _numpy_t(x: Tensor) -> Tensor:
    return call("permute", x, [*range(x.ndim)[::-1]])


@rule("movedim.int")
def _movedim(x: Tensor, source: int, destination: int) -> Tensor:
    order = [dim for dim in range(x.ndim) if dim != source % x.ndim]
    order.insert(destination % x.ndim, source % x.ndim)
    return call("permute", x, order)


@rule("squeeze.dim")
def _squeeze(x: Tensor, dim: int) -> Tensor:
    return call("squeeze", x, [dim])


@rule("squeeze")
def _squeeze_all(x: Tensor) -> Tensor:
    return call("squeeze", x, [dim for dim, size in enumerate(x.shape) if size == 1])


@rule("expand_as")
def _expand_as(x: Tensor, other: Tensor) -> Tensor:
    return call("expand", x, list(shape_of(other)))


@rule("contiguous")
def _contiguous(x: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    return call("clone", x, memory_format=memory_format)


@rule("lift_fresh_copy")
def _lift(x: Tensor) -> Tensor:
    return call("clone", x)


@rule("detach", "alias")
def _detach(x: Tensor) -> Tensor:
    return call("alias", x)


@rule("split.Tensor")
def _split(x: Tensor, split_size: Any, dim: int = 0) -> Any:
    length = shape_of(x)[dim]
    count = -(-int(x.shape[dim]) // int(split_size)) or 1
    sizes = [split_size] * (count - 1)
    return call("split_with_sizes", x, [*sizes, length - split_size * (count - 1)], dim)


@rule("chunk")
def _chunk(x: Tensor, chunks: int, dim: int = 0) -> Any:
    return _split(x, -(-shape_of(x)[dim] // chunks), dim)


@rule("unbind.int")
def _unbind(x: Tensor, dim: int = 0) -> Any:
    return tuple([call("select", x, dim, i) for i in range(x.shape[dim])])


@rule("stack")
def _stack(tensors: Any, dim: int = 0) -> Tensor:
    dim %= tensors[0].ndim + 1
    return call("cat", [call("unsqueeze", x, dim) for x in tensors], dim)


# -- products --------------------------------------------------------------------------------------


@rule("linear")
def _linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    if x.ndim == 1:
        return call("squeeze", _linear(call("unsqueeze", x, 0), w, b), [0])
    shape = shape_of(x)
    if x.ndim > 2 and (b is None or not x.is_contiguous()):
        y = _matmul(x, call("permute", w, [1, 0]))
        return y if b is None else call("add", y, b)
    rows = x if x.ndim == 2 else _reshape(x, [prod(shape[:-1], start=1), shape[-1]])
    wt = call("permute", w, [1, 0])
    y = call("mm", rows, wt) if b is None else call("addmm", b, rows, wt)
    return y if x.ndim == 2 else call("view", y, [*shape[:-1], w.shape[0]])


@rule("matmul")
def _matmul(x: Tensor, y: Tensor) -> Tensor:
    if x.ndim == 1 and y.ndim == 1:
        return call("sum", call("mul", x, y))
    if x.ndim == 1:
        return call("squeeze", _matmul(call("unsqueeze", x, 0), y), [-2])
    if y.ndim == 1:
        if x.ndim == 2:
            return call("mv", x, y)
        return call("squeeze", _matmul(x, call("unsqueeze", y, 1)), [-1])
    if x.ndim == y.ndim == 2:
        return call("mm", x, y)
    one, two = shape_of(x), shape_of(y)
    if y.ndim == 2 and x.is_contiguous():
        rows = _reshape(x, [prod(one[:-1], start=1), one[-1]])
        return call("view", call("mm", rows, y), [*one[:-1], two[-1]])
    batch = broadcast(one[:-2], two[:-2])
    size = prod(batch, start=1)
    left = _reshape(call("expand", x, [*batch, *one[-2:]]), [size, *one[-2:]])
    right = _reshape(call("expand", y, [*batch, *two[-2:]]), [size, *two[-2:]])
    return call("view", call("bmm", left, right), [*batch, one[-2], two[-1]])


def broadcast(one: Any, two: Any) -> list[Any]:
    rank = max(len(one), len(two))
    pairs = zip((1,) * (rank - len(one)) + tuple(one), (1,) * (rank - len(two)) + tuple(two))
    return [b if not isinstance(a, SymInt) and a == 1 else a for a, b in pairs]


@rule("baddbmm")
def _baddbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    y = call("bmm", a, b)
    y = y if alpha == 1 else call("mul", y, alpha)
    return call("add", y, x if beta == 1 else call("mul", x, beta))


def _conv(dims: int) -> None:
    def composed(
        x: Tensor, w: Tensor, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        stride, padding, dilation = [_sizes(each, dims) for each in (stride, padding, dilation)]
        sizes = (stride, padding, dilation, False, [0] * dims, groups)
        return call("convolution", x, w, b, *sizes)

    rule(f"conv{dims}d")(composed)

    @rule(f"conv{dims}d.padding")
    def padded(
        x: Tensor, w: Tensor, b: Any = None, stride: Any = 1, padding: str = "valid",
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        steps = _sizes(dilation, dims)
        totals = [d * (k - 1) for d, k in zip(steps, w.shape[2:])]
        if padding == "valid":
            return composed(x, w, b, stride, 0, dilation, groups)
        if any(total % 2 for total in totals):
            pairs: list[int] = []
            for total in reversed(totals):
                pairs += [0, total % 2]
            x = call("constant_pad_nd", x, pairs)
        return composed(x, w, b, stride, [total // 2 for total in totals], dilation, groups)

    @rule(f"conv_transpose{dims}d" if dims == 1 else f"conv_transpose{dims}d.input")
    def transposed(
        x: Tensor, w: Tensor, b: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        before = [_sizes(each, dims) for each in (stride, padding, dilation)]
        return call("convolution", x, w, b, *before, True, _sizes(output_padding, dims), groups)


def _sizes(value: Any, dims: int) -> list[Any]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    return values * dims if len(values) == 1 else values


for _dims in (1, 2, 3):
    _conv(_dims)


@rule("scaled_dot_product_attention")
def _attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    if enable_gqa:
        raise NotImplementedError("scaled_dot_product_attention with groups is not decomposed")
    factor = (scale if scale is not None else q.shape[-1] ** -0.5) ** 0.5
    queries = call_overload(aten.mul.Scalar, q, factor)
    keys = call_overload(aten.mul.Scalar, _transpose(k, -2, -1), factor)
    scores = _matmul(queries, keys)
    rows, columns = shape_of(q)[-2], shape_of(k)[-2]
    if is_causal:
        ones = call("full", [rows, columns], True, dtype=bool_)
        attn_mask = call("tril", ones)
    if attn_mask is not None and attn_mask.dtype.kind == "b":
        attn_mask = call("where", attn_mask, scalar(0.0, q), scalar(float("-inf"), q))
    if attn_mask is not None:
        scores = call("add", scores, attn_mask)
    weights = call("_softmax", scores, -1, False)
    some = call("any", call("logical_not", call("eq", scores, float("-inf"))), -1, True)
    empty = call("logical_not", some)  # rows in which nothing is attended to
    nothing = call("full_like", weights, 0, memory_format=preserve_format)
    weights = call("where", empty, nothing, weights)
    if dropout_p > 0:
        weights = call("native_dropout", weights, dropout_p, True)[0]
    result = _matmul(weights, v)
    if result.ndim == 4 and not dropout_p:  # it lies as the kernel of PyTorch leaves it
        result = call(
            "clone", call("permute", result, [2, 0, 1, 3]), memory_format=contiguous_format
        )
        result = call("permute", result, [1, 2, 0, 3])
    return result
