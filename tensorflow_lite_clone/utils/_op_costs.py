"""What calls of ops and their gradients cost: floating-point operations and bytes.

The formula of an op says it (`Op.cost`), which may be that of its kind or its primitive's. An op
without one is counted: its text is run over arrays of the meta device, and what the primitives and
ops cost that it calls is added up, once for each set of shapes, dtypes and parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.engine import current
from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.meta.backend import MetaBackend
from tensorflow_lite_clone.backends.meta.primitives import counter
from tensorflow_lite_clone.dispatch.costs import Formula
from tensorflow_lite_clone.dispatch.op import is_op
from tensorflow_lite_clone.dispatch.raw import Raw
from tensorflow_lite_clone.dispatch.table import resolve
from tensorflow_lite_clone.storage import Storage

#: Why an op ("name") or a gradient ("name_backward") could not be counted, and so counts nothing.
uncounted: dict[str, str] = {}
_kept: dict[tuple, int] = {}
_MOST = 10_000


def get_shape(value: Any) -> Any:
    """The shape of an array or Tensor; a tuple of them for several; anything else as it is."""
    if type(value) is tuple and value and hasattr(value[0], "shape"):
        return tuple([get_shape(part) for part in value])
    return getattr(value, "shape", value)


# -- counting -------------------------------------------------------------------------------------


class _Namespace(Raw):
    """What runs here is not the program's: hooks are not asked."""

    def run(self, op: Any, *arrays: Any, **parameters: Any) -> Any:
        return resolve(op, self.backend)(*arrays, **parameters)


class _CountingBackend(MetaBackend):
    """The meta device, on which an op that has a formula counts what that says."""

    def __init__(self) -> None:
        super().__init__()
        self.F = _Namespace(self)

    def adapted(self, op: Any, generic: Callable[..., Any]) -> Callable[..., Any]:
        formula = op.cost.flops if is_op(op) else None
        if formula is None:
            return generic

        def counted(*arrays: Any, **parameters: Any) -> Any:
            before = counter.flops
            result = generic(*arrays, **parameters)
            if before is not None:
                counter.flops = before + formula(get_shape(result), *arrays, **parameters)
            return result

        return counted


_counting = _CountingBackend()


def _as_meta(value: Any) -> Any:
    """The same with meta arrays in place of arrays, also of those in lists."""
    if isinstance(value, list):
        return [_as_meta(part) for part in value]
    return MetaArray(tuple(value.shape), value.dtype) if hasattr(value, "dtype") else value


def _facts(values: Iterable[Any]) -> tuple:
    """What operations depend on, as (part of) a key."""
    found: list[Any] = []
    for value in values:
        if value.__class__ is tuple or value.__class__ is list:
            value = _facts(value)
        elif hasattr(value, "dtype"):
            value = value.shape, value.dtype
        found.append(value)
    return tuple(found)


def _counted(name: str, key: tuple, call: Callable[[], Any]) -> int:
    """The operations of a call over meta arrays, kept by `key`; 0 where it depends on values."""
    try:
        return _kept[key]
    except KeyError:
        if len(_kept) == _MOST:
            _kept.clear()
    except TypeError:  # a parameter that cannot be part of a key
        key = ()
    before, counter.flops = counter.flops, 0.0
    try:
        call()
        found = int(counter.flops)
    except Exception as error:  # whatever it is, it must not end the program that is watched
        uncounted[name] = f"{type(error).__name__}: {error}"
        found = 0
    finally:
        counter.flops = before
    if key:
        _kept[key] = found
    return found


def _shadow(node: Any) -> Any:
    """The node with meta arrays in place of what it saved."""
    shadow = copy(node)
    shadow.backend, shadow.edges = _counting, (None,) * len(node.edges)
    saved = [_as_meta(_array(value)) for value in node.saved or ()]
    shadow.saved = [None if array is None else Storage(array, _counting) for array in saved]
    shadow.versions = [0] * len(saved)
    return shadow


def count(op: Any, arrays: tuple, parameters: dict[str, Any]) -> int:
    """What the primitives and ops cost that the text of an op calls."""
    call = lambda: resolve(op, _counting)(*map(_as_meta, arrays), **parameters)  # noqa: E731
    return _counted(op.name, (op, _facts(arrays), _facts(parameters.items())), call)


def count_gradient(node: Any, grads: Any, needs: tuple[bool, ...]) -> int:
    """`count` for the gradients of a node's inputs that `needs` says."""
    call = lambda: _shadow(node).gradients(_as_meta(list(grads)), False, needs)  # noqa: E731
    saved = _facts(map(_array, node.saved or ()))
    options = _facts(node.parameters.items())
    key = (node.op, needs, node.mask, node.shapes, _facts(grads), saved, options)
    return _counted(f"{node.op.name}_backward", key, call)


# -- operations -----------------------------------------------------------------------------------


def flops_of(op: Any, arrays: tuple, parameters: dict[str, Any], result: Any) -> int:
    """What a call of an op costs, of arrays or descriptions of them."""
    formula: Formula | None = op.cost.flops
    if formula is not None:
        return int(formula(get_shape(result), *arrays, **parameters))
    return 0 if op.view else count(op, arrays, parameters)


def flops_of_gradient(node: Any, grads: Any, needs: tuple[bool, ...]) -> int:
    """What a node's gradients cost of those inputs that `needs` says; before its values are freed.

    0 for a node of a user's function and in a pass that is recorded: there the ops that the
    gradient's formula calls have costs of their own.
    """
    op = getattr(node, "op", None)
    if op is None or is_recorded():
        return 0
    formula: Formula | None = op.cost.gradient_flops
    if formula is None:
        return count_gradient(node, grads, needs)
    g, *arrays = known_of(node)
    return int(formula(needs, g, *arrays, **node.parameters))


def is_recorded() -> bool:
    """Whether gradients are calculated by ops that run, and are recorded, themselves."""
    return current.walk is not None and current.walk.create_graph


def known_of(node: Any) -> list[Any]:
    """The first result of a node's op and its inputs, None where the node knows nothing of one."""
    saves = node.op.plans[node.mask].saves
    found: list[Any] = [MetaArray(node.shape_of(0), node.dtype_of(0))]
    for position, edge in enumerate(node.edges):
        if edge is not None:
            found.append(MetaArray(edge[0].shape_of(edge[1]), edge[0].dtype_of(edge[1])))
        elif position in saves and node.saved:
            found.append(_array(node.saved[saves.index(position)]))
        else:
            found.append(None)
    return found


def _array(saved: Any) -> Any:
    """What was saved for a gradient; what hooks packed has noted its shape: it stays packed."""
    return saved.physical if isinstance(saved, Storage) else saved


# -- bytes ----------------------------------------------------------------------------------------


def bytes_of(op: Any, arrays: tuple, result: Any) -> int:
    """Bytes that an ideal implementation reads and writes: each input and each result once.

    Views cost nothing; elements that are expanded are read once.
    """
    if op.view:
        return 0
    written = _sizes(result) if isinstance(result, tuple | list) else _size(result)
    reads = op.cost.reads
    first = {"all": _sizes(arrays[:1]), "as returned": written, "none": 0}[reads]
    return written + first + _sizes(arrays[1:])


def bytes_of_gradient(node: Any, grads: Any, results: Any) -> int:
    """`bytes_of` for a node's gradients: what arrives and what was saved is read."""
    written, read = _sizes(results), _sizes(grads)
    op = getattr(node, "op", None)
    if op is None or (op.view and written == read):
        return 0
    saved = [storage.physical for storage in node.saved or () if isinstance(storage, Storage)]
    return written + read + _sizes(saved)


def _sizes(arrays: Any) -> int:
    return sum(map(_size, arrays))


def _size(array: Any) -> int:
    """Bytes in memory that the array, or the arrays of a list, show; 0 for what is no array."""
    if isinstance(array, list):
        return _sizes(array)
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        return 0
    lengths = array.shape
    strides = getattr(array, "strides", ())
    if 0 in strides:
        lengths = [length for length, stride in zip(lengths, strides) if stride or not length]
    size: int = prod(lengths) * dtype.itemsize
    return size
