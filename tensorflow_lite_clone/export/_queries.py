"""What programs ask of tensors while they are exported, and indexing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.export._capture import (
    Capture,
    data_dependent_runs,
    handlers,
)
from tensorflow_lite_clone.export._errors import data_dependent
from tensorflow_lite_clone.export._expressions import Expression
from tensorflow_lite_clone.export._symbolic import SymBool, SymFloat, SymInt
from tensorflow_lite_clone.ops.create.constructors import as_tensor, empty, tensor
from tensorflow_lite_clone.ops.namespaces import aten
from tensorflow_lite_clone.tensor import Tensor

_END = 2**63 - 1  # the end of a slice that has none


def handler(*names: str) -> Callable[[Any], Any]:
    """Let the decorated function answer calls of the functions of these names."""

    def register(function: Any) -> Any:
        handlers.update(dict.fromkeys(names, function))
        return function

    return register


# -- geometry --------------------------------------------------------------------------------------


@handler("shape.__get__")
def _shape(capture: Capture, x: Tensor) -> Any:
    return capture.shape(x)


@handler("size")
def _size(capture: Capture, x: Tensor, dim: int | None = None) -> Any:
    shape = capture.shape(x)
    return shape if dim is None else shape[dim]


@handler("__len__")
def _length(capture: Capture, x: Tensor) -> int:
    return int(capture.shape(x)[0]) if x.ndim else len(x)


@handler("numel", "nelement")
def _numel(capture: Capture, x: Tensor) -> Any:
    return functools.reduce(lambda one, two: one * two, capture.shape(x), 1)


@handler("dim", "ndimension")
def _dim(capture: Capture, x: Tensor) -> int:
    return x.ndim


@handler("stride")
def _stride(capture: Capture, x: Tensor, dim: int | None = None) -> Any:
    found = capture.numbers([lane.stride() for lane in capture.traced(x).lanes])
    return tuple(found) if dim is None else found[dim]


@handler("device.__get__")
def _device(capture: Capture, x: Tensor) -> Any:
    return capture.traced(x).device


def _of_device(kind: str) -> None:
    handlers[f"is_{kind}.__get__"] = lambda capture, x: capture.traced(x).device.type == kind


for _name in ("cpu", "cuda", "meta"):
    _of_device(_name)


@handler("T.__get__")
def _reversed(capture: Capture, x: Tensor) -> Tensor:
    return capture.call("numpy_T", x)


def _property(name: str) -> None:
    handlers[f"{name}.__get__"] = lambda capture, x: capture.call(name, x)


for _name in ("mT", "mH", "H", "real", "imag"):
    _property(_name)


@handler("contiguous")
def _contiguous(capture: Capture, x: Tensor, **options: Any) -> Tensor:
    if not options and x.is_contiguous():
        return x
    return capture.call("contiguous", x, **options)


@handler("data.__get__")
def _data(capture: Capture, x: Tensor) -> Tensor:
    return capture.call("detach", x)


@handler("grad.__get__")
def _gradient(capture: Capture, x: Tensor) -> None:
    return None


# -- values ----------------------------------------------------------------------------------------


@handler("item")
def _item(capture: Capture, x: Tensor) -> Any:
    known = capture.traced(x)
    if known.constant is not None or not capture.is_traced(x):
        return (known.constant if known.constant is not None else x).item()
    node = capture.add(aten.item.default, (x,))
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
    number = len(capture.sizes.unbacked)
    found: Any
    if x.dtype.kind in "iu":
        name = f"u{number}"
        found = SymInt(capture, capture.sizes.add_unbacked(name), node)
    else:
        capture.sizes.unbacked.add(f"zuf{number}")
        lanes = range(len(capture.sizes.lanes))
        found = SymFloat(capture, [1.5 + lane for lane in lanes], node)
    node.meta["val"] = found
    return found


@handler("__bool__", "__int__", "__float__", "__index__", "__complex__", "equal", "allclose",
         "tolist", "__contains__")  # fmt: skip
def _value(capture: Capture, x: Tensor, *others: Any, **options: Any) -> Any:
    known = capture.traced(x)
    if known.constant is not None and not others:
        return known.constant.tolist()
    raise data_dependent(f"of {known.node.name}")


@handler("numpy", "__array__")
def _numpy(capture: Capture, x: Tensor, *others: Any, **options: Any) -> Any:
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")


@handler("tensor")
def _written(capture: Capture, data: Any, **options: Any) -> Tensor:
    return capture.lifted(_constant(tensor, data, options), True)


@handler("as_tensor", "asarray", "scalar_tensor")
def _given(capture: Capture, data: Any, **options: Any) -> Tensor:
    if isinstance(data, Tensor):
        kept = {name: options[name] for name in ("dtype", "device") if options.get(name)}
        return capture.call("to", data, **kept) if kept else data
    return capture.lifted(_constant(as_tensor, data, options), False)


def _constant(function: Any, data: Any, options: dict[str, Any]) -> Tensor:
    if isinstance(data, (SymFloat,)):
        raise data_dependent(f"of {data}")
    found: Tensor = function(data, **{k: v for k, v in options.items() if k != "device"})
    return found


# -- shapes that depend on values ------------------------------------------------------------------


def _of_unbacked(capture: Capture, node: Any, most: float, shapes: Callable[[int], Any], like: Any,
                 dtype: Any) -> Tensor:  # fmt: skip
    name = f"u{len(capture.sizes.unbacked)}"
    capture.sizes.add_unbacked(name, most)
    lanes = [
        empty(shapes(lane)(sizes[name]), dtype=dtype, device="meta")
        for lane, sizes in enumerate(capture.sizes.lanes)
    ]
    result: Tensor = capture.enter(node, lanes, capture.traced(like).device)
    capture.sources.append((Expression.of(name), node, 0))
    return result


def _nonzero_run(capture: Capture, node: Any, x: Tensor) -> Tensor:
    return _of_unbacked(capture, node, x.numel(), lambda lane: lambda n: (n, x.ndim), x,
                        _INT64)  # fmt: skip


def _masked_select_run(capture: Capture, node: Any, x: Tensor, mask: Tensor) -> Tensor:
    return _of_unbacked(capture, node, x.numel(), lambda lane: lambda n: (n,), x, x.dtype)


def _index_run(capture: Capture, node: Any, x: Tensor, indices: list[Any]) -> Tensor:
    masks = [each for each in indices if each is not None and each.dtype.kind == "b"]
    if not masks:
        call = aten.index.Tensor
        lanes = [
            capture.run_lane(call, (x, indices), {}, lane)
            for lane in range(len(capture.sizes.lanes))
        ]
        return capture.enter(node, lanes, capture.traced(x).device)
    before = indices.index(masks[0]) if len(indices) == 1 or indices[0] is None else 0

    def shapes(lane: int) -> Callable[[int], tuple]:
        shape = tuple(capture.traced(x).lanes[lane].shape)
        taken = sum([1 if each is None else max(each.ndim, 1) for each in indices])
        return lambda n: (*shape[:before], n, *shape[taken:])

    return _of_unbacked(capture, node, x.numel(), shapes, x, x.dtype)


def _assert_run(capture: Capture, node: Any, condition: SymBool, message: str) -> None:
    condition.assume()


_INT64 = as_tensor(0).dtype
data_dependent_runs["aten._assert_scalar.default"] = _assert_run
data_dependent_runs["aten.nonzero.default"] = _nonzero_run
data_dependent_runs["aten.masked_select.default"] = _masked_select_run
data_dependent_runs["aten.index.Tensor"] = _index_run


# -- indexing --------------------------------------------------------------------------------------


@handler("__getitem__")
def _getitem(capture: Capture, x: Tensor, index: Any) -> Tensor:
    view, tensors = _views(capture, x, index)
    return capture.call("index", view, tensors) if tensors else view


@handler("__setitem__")
def _setitem(capture: Capture, x: Tensor, index: Any, value: Any) -> None:
    if not isinstance(value, (Tensor, SymInt, SymFloat)):
        value = capture.lifted(tensor(value, dtype=x.dtype), False)
    view, tensors = _views(capture, x, index)
    if tensors:
        capture.call("index_put_", view, tensors, value)
    elif isinstance(value, Tensor) and value.ndim:
        capture.call("copy_", view, value)
    else:
        capture.call("fill_", view, value)


def _views(capture: Capture, x: Tensor, index: Any) -> tuple[Tensor, list[Any]]:
    """The view that integers, slices and None make, and the tensors to index it with."""
    items = list(index) if isinstance(index, tuple) else [index]
    taken = sum([_dims_of(item) for item in items])
    if Ellipsis not in [item for item in items if not isinstance(item, Tensor)]:
        items.append(Ellipsis)
    dim = 0
    tensors: list[Any] = []
    for item in items:
        if item is Ellipsis:
            skipped = (
                x.ndim - dim - sum([_dims_of(each) for each in items[_place(items, item) + 1 :]])
            )
            skipped = max(skipped, 0)
            tensors += [None] * skipped
            dim += skipped
        elif item is None:
            x = capture.call("unsqueeze", x, dim)
            tensors.append(None)
            dim += 1
        elif isinstance(item, slice):
            if item != slice(None):
                start, stop, step = item.start, item.stop, item.step
                if not isinstance(start, SymInt) and not isinstance(stop, SymInt):
                    start = 0 if start is None else start
                    stop = _END if stop is None else stop
                step = 1 if step is None else step
                if isinstance(stop, SymInt):
                    bool(stop <= capture.shape(x)[dim])  # a guard
                x = capture.call("slice", x, dim, start, stop, step)
            tensors.append(None)
            dim += 1
        elif isinstance(item, (int, SymInt)) and not isinstance(item, bool):
            if isinstance(item, int):
                _expect_in_bounds(item, dim, x)
            x = capture.call("select", x, dim, item)
        else:
            if not isinstance(item, Tensor):
                item = capture.lifted(tensor(item), False)
            tensors.append(item)
            dim += item.ndim if item.dtype.kind == "b" else 1
    while tensors and tensors[-1] is None:
        tensors.pop()
    if taken > x.ndim + sum([isinstance(item, (int, SymInt)) for item in items]):
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    return x, tensors


def _place(items: list[Any], item: Any) -> int:
    return next(place for place, each in enumerate(items) if each is item)


def _dims_of(item: Any) -> int:
    """How many dimensions an index takes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, Tensor) and item.dtype.kind == "b" else 1


def _expect_in_bounds(item: int, dim: int, x: Tensor) -> None:
    if dim < x.ndim and not -x.shape[dim] <= item < x.shape[dim]:
        raise IndexError(
            f"index {item} is out of bounds for dimension {dim} with size {x.shape[dim]}"
        )
