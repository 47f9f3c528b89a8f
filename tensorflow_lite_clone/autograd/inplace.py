"""In-place writes: into tensors, into views of tensors in a graph, with version counting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.autograd.apply import (
    current_edge,
    edges_of,
    record,
    restriction_message,
    together,
    wrap,
)
from tensorflow_lite_clone.autograd.hooks import move_retained
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.autograd.node import Leaf
from tensorflow_lite_clone.core.dtypes import can_cast, uncastable
from tensorflow_lite_clone.core.strides import extent, preserve_format
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.table import run
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, View

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Array, Backend, Namespace


class Restride(Op):
    """A copy whose elements lie in memory with the given strides (in elements)."""

    layout = None
    label = "Clone"

    def forward(F: Any, x: Any, *, strides: Any) -> Any:
        backend = F.backend
        memory = backend.empty((max(extent(x.shape, strides), 1),), backend.dtypes[x.dtype])
        out = F.as_strided(memory, x.shape, strides)
        backend.write(out, x)
        return out

    def backward_x(F: Any, g: Any, *, strides: Any) -> Any:
        return g


class ViewScatter(Op):
    """`base` with the part that `chain` views replaced by `part`.

    It is how an in-place write into a view enters the graph of the view's base. `strides` are
    those of the tensor the views were taken of: whether a shape can be viewed as another one, and
    what `as_strided` shows, depends on them.
    """

    layout = None
    label = "torch::autograd::CopySlices"

    def forward(F: Any, base: Any, part: Any, *, chain: Any, strides: Any) -> Any:
        out = F.restride(base, strides=strides)
        F.backend.write(_follow(F, chain, out), part)
        return out

    def backward_base(F: Any, g: Any, *, chain: Any, strides: Any) -> Any:
        part = _follow(F, chain, g, strides)
        return F.view_scatter(g, F.zeros_like(part), chain=chain, strides=strides)

    def backward_part(F: Any, g: Any, *, chain: Any, strides: Any) -> Any:
        return _follow(F, chain, g, strides)


def _follow(F: Namespace, chain: tuple, x: Any, strides: tuple | None = None) -> Any:
    if strides is not None and any([link[0].stride_dependent for link in chain]):
        x = F.restride(x, strides=strides)
    for op, parameters, _ in chain:
        x = F.run(op, x, **parameters)
    return x


def apply_inplace(
    op: type[Op], target: Tensor, *others: Tensor | None, **parameters: Any
) -> Tensor:
    """Write ``op(target, *others)`` into `target` and record that.

    Raises RuntimeError when `target` is a leaf that requires a gradient, when the result's shape
    differs from its shape, or when the result's dtype is of a higher category than its dtype.
    """
    inputs = (target, *others)
    inputs, storages = on_one_backend(target, inputs, op)
    backend = target._storage.backend
    edges, mask = edges_of(inputs) if mode.grad else ((), 0)
    check_inplace(target, bool(mask))
    mask = mask if op.differentiable else 0
    arrays = tuple([None if storage is None else storage.array for storage in storages])
    direct = op.write
    if direct is None:
        result = run(op, backend, arrays, parameters)
        check_result(op.name, target, result, backend)
    if mask and 0 in op.plans[mask].saves:  # backward wants the value that is overwritten now
        storages = (Storage(copied(arrays[0], backend), backend), *storages[1:])
    if direct is None:
        write(target, result)
    else:
        if not op.allows_overlapping_writes:
            check_writable(arrays[0])
        call = backend.guarded(backend.foreign(direct))
        call = partial(call, backend.F, *arrays, **parameters)
        hooks.writing(op, call, arrays, parameters)
        target._storage.bump()
    if mask:
        record_inplace(op, target, backend, edges, mask, storages, parameters)
    return target


def copied(array: Any, backend: Any) -> Any:
    """A copy of what is about to be overwritten, which modes see as aten's clone."""
    if not mode.dispatch_modes:
        return backend.F.copy(array)
    return run(Restride, backend, (array,), {"strides": backend.strides(array)})


def into(target: Tensor, inputs: tuple) -> tuple:
    """Inputs lifted to one backend, of which `target` is the first; RuntimeError if it was lifted.

    A tensor that `vmap` does not map over has no room for the values of all samples.
    """
    if inputs[0]._storage.backend is not target._storage.backend:
        raise RuntimeError(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a "
            "Tensor `other` in extra_args that has more elements than `self`. This happened due to "
            "`other` being vmapped over but `self` not being vmapped over in a vmap. Please try to "
            "use out-of-place operators instead of inplace arithmetic. If said operator is being "
            "called inside the PyTorch framework, please file a bug report instead."
        )
    return inputs


def on_one_backend(target: Tensor, inputs: Any, op: type[Op]) -> tuple[Any, tuple]:
    """The inputs (or None) of a write into `target`, `into` which they are lifted; and storages."""
    storages = tuple([None if tensor is None else tensor._storage for tensor in inputs])
    backend = target._storage.backend
    if all([storage is None or storage.backend is backend for storage in storages]):
        return inputs, storages
    inputs = into(target, together(tuple(inputs), op))
    return inputs, tuple([None if tensor is None else tensor._storage for tensor in inputs])


def beside(target: Tensor, value: Tensor, op: type[Op]) -> Tensor:
    """`value` on the backend of `target`, which it is written to; RuntimeError if it cannot be."""
    (_, lifted), _ = on_one_backend(target, (target, value), op)
    beside: Tensor = lifted
    return beside


def copy_beside(input: Any, *others: Any, memory_format: Any = preserve_format) -> Tensor:
    """A copy of `input` to write `others` into: with their samples, under `func.vmap`."""
    lifted: Any = input
    for other in others:
        for value in other if isinstance(other, (tuple, list)) else (other,):
            if isinstance(value, Tensor) and value._storage.backend.batched:
                backends = {value._storage.backend, lifted._storage.backend}
                lifted = together((lifted, value), Op)[0] if len(backends) > 1 else lifted
    copy: Tensor
    if lifted is input:
        copy = input.clone(memory_format=memory_format)
    else:
        copy = recorded(lifted._storage.backend).empty_like(lifted.detach()).copy_(lifted)
    return copy


def check_inplace(target: Tensor, recorded: bool) -> None:
    """Raise RuntimeError when PyTorch forbids writing into `target`.

    `recorded` says whether a value that is written requires a gradient.
    """
    if not mode.grad:
        return
    view = target._view
    edge = target._edge if view is None else current_edge(target)
    base_edge = None if view is None else view.base._edge
    if edge is None and base_edge is None and not recorded:
        return
    if view is not None:
        if view.restriction is not None:
            raise RuntimeError(restriction_message(view.restriction, edge, "is being"))
        if edge is not None and (base_edge is None or isinstance(base_edge[0], Leaf)):
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            )
    if edge is not None and isinstance(edge[0], Leaf):
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def check_result(name: str, target: Tensor, result: Any, backend: Backend) -> None:
    """Raise RuntimeError when `result` does not fit into `target`."""
    array = target._storage.physical
    if result.shape != array.shape:
        raise RuntimeError(
            f"{name}_: output with shape {list(array.shape)} doesn't match the broadcast shape "
            f"{list(result.shape)}"
        )
    have, want = backend.dtypes[result.dtype], backend.dtypes[array.dtype]
    if not can_cast(have, want):
        raise uncastable(have, want)


def check_writable(array: Any) -> None:
    """Raise RuntimeError when several elements of `array` are one place in memory."""
    if (
        0 in array.strides
        and array.size
        and any([s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)])
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def write(target: Tensor, value: Any) -> None:
    """Copy an array or number into the tensor's memory and count the write."""
    storage = target._storage
    check_writable(storage.physical)
    write_array(storage.backend, storage.physical, value)
    storage.bump()


def write_array(backend: Backend, array: Array, value: Any) -> None:
    """Copy an array or number into an array of `backend`."""
    if hooks.around_write:
        hooks.writing(None, partial(backend.write, array, value), (array, value), {})
    else:
        backend.write(array, value)


def record_inplace(
    op: type[Op],
    target: Tensor,
    backend: Backend,
    edges: tuple,
    mask: int,
    storages: tuple,
    parameters: dict,
) -> None:
    """Make `op` the maker of `target`'s new value, in its base's graph too if it is a view."""
    view = target._view
    if view is None:
        before = target._edge
        record(target, op, backend, edges, mask, storages, parameters)
        _invalidate_aliases(target)
        if target._retains_grad:
            move_retained(target, before)
        return
    part = wrap(target._storage.physical, backend)
    part._storage = target._storage  # a saved output must see later writes
    record(part, op, backend, edges, mask, storages, parameters)
    _invalidate_aliases(part)
    record_in_base(view, part)


def record_in_base(view: View, part: Tensor) -> None:
    """Make `part`, the new value of what `view` describes, enter the graph of the view's base."""
    base = view.base
    backend = base._storage.backend
    base_edges, base_mask = edges_of((base, part))
    where = {"chain": view.chain, "strides": backend.strides(base._storage.array)}
    inputs = (base._storage, part._storage)
    before = base._edge
    record(base, ViewScatter, backend, base_edges, base_mask, inputs, where)
    if base._retains_grad:
        move_retained(base, before)
    view.version = -1  # its edge is stale now


def _invalidate_aliases(target: Tensor) -> None:
    """Let backward notice saved inputs that the write has changed, as ``x`` in ``y.mul_(x)``
    where `x` shares memory with `y`."""
    storage = target._storage
    root = storage.root or storage
    node = target._edge[0]  # type: ignore[index]
    for position, place in enumerate(node.op.plans[node.mask].saves):
        saved = node.saved[position]
        if place > 0 and saved is not None and (saved.root or saved) is root:
            node.versions[position] -= 1
