"""From Tensors to arrays and back: run an op, wrap what it returns, record it if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.autograd.hooks import move_retained
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.namespaces import appliers
from tensorflow_lite_clone.autograd.node import (
    Leaf,
    Node,
    SeveralNode,
    creation_hooks,
    next_sequence_number,
)
from tensorflow_lite_clone.autograd.saved import active as saved_hooks
from tensorflow_lite_clone.autograd.saved import pack_all
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import in_order
from tensorflow_lite_clone.dispatch.stored import REFUSALS, calculated
from tensorflow_lite_clone.dispatch.table import prepared
from tensorflow_lite_clone.storage import Lent, Storage, as_laid, freely
from tensorflow_lite_clone.tensor import Tensor, View, new_tensor

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Array, Backend

_new = object.__new__
_NO_PARAMETERS: dict = {}
_NOTHING: list = []


def wrap(array: Any, backend: Any) -> Tensor:
    """A new tensor over an array of `backend`, outside of any graph."""
    if type(array) is not backend.array_type:
        array = backend.asarray(array)
    return new_tensor(Storage(array, backend))


def wrap_freely(array: Array, backend: Backend, inputs: Any = ()) -> Tensor:
    """`wrap` for what an op of any layout made of `inputs`, and for gradients; see `Free`."""
    if type(array) is not backend.array_type:
        array = backend.asarray(array)
    return new_tensor(freely(array, backend, inputs))


def wrap_gradients(found: list, backends: list, told: list, given: Any) -> list:
    """`wrap_freely` for gradients (or None) that may lie in the memory of `given` storages.

    Writes to these are counted together, as those to one array found twice.
    """
    holders: dict[int, Storage] = {}
    for storage in given:
        root = storage.root or storage
        holders[id(_memory(root.laid))] = root
    results = [g if isinstance(g, Tensor) else None for g in found]  # a sparse gradient is one
    # What owns its memory comes before its views, whatever the order they were asked for in.
    present = [
        place for place, array in enumerate(found) if array is not None and results[place] is None
    ]
    if len(present) > 1:
        present.sort(key=lambda place: _memory(found[place]) is not found[place])
    for place in present:
        array = found[place]
        tensor = wrap_freely(array, backends[place], told[place])
        made = tensor._storage
        memory = _memory(array)
        root = holders.get(id(memory))
        if root is None:
            # A part of memory that nobody was given holds nothing but itself. What it is part of
            # may be no array.
            whole = memory is array or getattr(memory, "size", None) == array.size
            root = holders.setdefault(id(memory if whole else array), made)
        if root is not made:
            made.root = root
            if type(root) is Lent:
                root.views.add(made)
        results[place] = tensor
    return results


def _memory(array: Array) -> Any:
    """What a view and the array it is of have in common."""
    base = getattr(array, "base", None)
    return array if base is None else base


def apply(op: type[Op], *inputs: Tensor | None, **parameters: Any) -> Any:
    """Run `op` on tensors of one device and record it when an input wants a gradient.

    Optional inputs may be None. Returns a Tensor, or a tuple of them. Raises RuntimeError when
    the tensors lie on different devices.
    """
    backend = None
    storages: list[Any] = []
    arrays: list[Any] = []
    for tensor in inputs:
        if tensor is None:
            storages.append(None)
            arrays.append(None)
            continue
        storage = tensor._storage
        if storage.backend is not backend:
            if backend is not None:
                return apply(op, *together(inputs, op), **parameters)
            backend = storage.backend
        storages.append(storage)
        arrays.append(storage.laid)
    if backend is None:
        raise RuntimeError(f"'{op.name}' expected at least one tensor")
    any_layout = False
    if backend.lays:
        any_layout = op.any_layout
        if any_layout:
            arrays = as_laid(storages)
        else:
            arrays = [None if storage is None else storage.array for storage in storages]
    try:
        call = op.calls[backend]
    except KeyError:
        call = prepared(op, backend)
    try:
        result = call(*arrays, **parameters)
    except REFUSALS:
        result = calculated(op, backend, call, arrays, parameters)
    if not op.view:
        result = in_order(op, backend, result, arrays, parameters)
    if type(result) is not tuple:
        if op.view:
            return view_of(op, inputs[0], result, parameters)
        if any_layout:
            output = wrap_freely(result, backend, storages)
        else:
            if type(result) is not backend.array_type:
                result = backend.asarray(result)
            output = new_tensor(Storage(result, backend))
        if op.differentiable and mode.grad:
            edges, mask = edges_of(inputs)
            if mask:
                record(output, op, backend, edges, mask, storages, parameters)
        return output
    root = None
    if op.view:
        source = storages[0]
        assert source is not None
        root = source.root or source
    if any_layout:
        outputs = tuple([wrap_freely(array, backend, storages) for array in result])
    else:
        outputs = tuple([_wrap_output(array, backend, root) for array in result])
    if op.differentiable and mode.grad:
        edges, mask = edges_of(inputs)
        if mask:
            made = [output._storage for output in outputs]
            node = several(made, op, backend, edges, mask, storages, parameters)
            for index, output in enumerate(outputs):
                if index not in op.nondifferentiable:
                    output._edge = (node, index)
    if root is not None and op.differentiable:
        _remember_views(inputs[0], outputs, op, parameters)
    return outputs


appliers["apply"] = apply


def apply_view(op: type[Op], input: Tensor, **parameters: Any) -> Tensor:
    """`apply` for an op with one input whose one output is a view of it."""
    storage = input._storage
    backend = storage.backend
    try:
        call = op.calls[backend]
    except KeyError:
        call = prepared(op, backend)
    array = storage.array
    try:
        part = call(array, **parameters)
    except REFUSALS:
        part = calculated(op, backend, call, (array,), parameters)
    return view_of(op, input, part, parameters)


def view_of(op: type[Op], input: Any, array: Any, parameters: dict) -> Tensor:
    """The tensor of a view of `input` that `op` made; recorded if the input wants a gradient."""
    storage = input._storage
    backend = storage.backend
    root = storage.root
    if root is None:
        root = storage
    made = _new(Storage)
    made.array = array
    made.backend = backend
    made.version = 0
    made.root = root
    if root.__class__ is Lent:
        root.views.add(made)
    output = _new(Tensor)
    output._storage = made
    output._edge = None
    if not op.differentiable:
        output._view = None
        return output
    output._view = remembered = _new(View)
    remembered.version = root.version
    parent = input._view
    if parent is None:
        edge = input._edge
        remembered.base = input
        remembered.last = (None, (op, parameters, None))
        remembered.restriction = None
    else:
        edge = current_edge(input) if mode.grad else None
        remembered.base = parent.base
        remembered.last = (parent.last, (op, parameters, None))
        remembered.restriction = parent.restriction
    if not mode.grad:
        remembered.restriction = remembered.restriction or "no_grad"
    elif edge is not None:
        record(output, op, backend, (edge,), 1, (storage,), parameters)
    return output


def common_backend(storages: tuple, op: type[Op]) -> Any:
    """The one backend of all storages; None when there are several."""
    backend = None
    for storage in storages:
        if storage is not None and storage.backend is not backend:
            if backend is not None:
                return None
            backend = storage.backend
    if backend is None:
        raise RuntimeError(f"'{op.name}' expected at least one tensor")
    return backend


#: Brings tensors to one backend, or answers None; entered by `func`, for what `vmap` maps over.
lifters: list[Any] = []


def together(inputs: tuple, op: type[Op]) -> tuple:
    """Inputs of several backends on one; RuntimeError when they lie on different devices."""
    for lifter in lifters:
        lifted: tuple | None = lifter(inputs)
        if lifted is not None:
            return lifted
    first, second = list(
        dict.fromkeys([tensor._storage.backend for tensor in inputs if tensor is not None])
    )[:2]
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{first.device} and {second.device}! (in '{op.name}')"
    )


def edges_of(inputs: tuple) -> tuple[tuple, int]:
    """Per input its (node, output number) or None, and the mask of those that want a gradient."""
    edges = []
    mask = 0
    bit = 1
    for tensor in inputs:
        edge = None
        if tensor is not None:
            edge = tensor._edge if tensor._view is None else current_edge(tensor)
            if edge is not None:
                mask |= bit
        edges.append(edge)
        bit += bit
    return tuple(edges), mask


def record(
    output: Tensor,
    op: type[Op],
    backend: Any,
    edges: tuple,
    mask: int,
    storages: Sequence[Any],
    parameters: dict = _NO_PARAMETERS,
) -> None:
    """Record `op` as the maker of its one `output`; `storages` are those of its inputs."""
    node = _new(Node)
    node.op = op
    node.backend = backend
    node.edges = edges
    node.mask = mask
    node.parameters = parameters
    node.sequence = next_sequence_number()
    output._edge = (node, 0)
    array = output._storage.laid
    node.shapes = array.shape
    node.dtypes = array.dtype
    saves = op.plans[mask].saves
    if saves:
        node.saved = saved = []
        node.versions = versions = []
        for place in saves:
            storage = storages[place] if place >= 0 else output._storage
            saved.append(storage)
            versions.append(-1 if storage is None else (storage.root or storage).version)
        if saved_hooks:
            pack_all(saved)
    else:
        node.saved = node.versions = _NOTHING
    if creation_hooks:
        for hook in creation_hooks:
            hook(node)


def several(
    made: list[Storage],
    op: type[Op],
    backend: Any,
    edges: tuple,
    mask: int,
    storages: Sequence[Any],
    parameters: dict,
) -> SeveralNode:
    """The node of an op that has made several storages; see `record`."""
    node = _new(SeveralNode)
    node.op = op
    node.backend = backend
    node.edges = edges
    node.mask = mask
    node.parameters = parameters
    node.sequence = next_sequence_number()
    node.saved = saved = [storages[i] if i >= 0 else made[~i] for i in op.plans[mask].saves]
    if saved_hooks:
        pack_all(saved)
    node.versions = [-1 if s is None else (s.root or s).version for s in saved]
    node.shapes = tuple([storage.laid.shape for storage in made])
    node.dtypes = tuple([storage.laid.dtype for storage in made])
    for hook in creation_hooks:
        hook(node)
    return node


def current_edge(tensor: Tensor) -> Any:
    """The edge of a tensor that may be a view whose base was written in place since."""
    view = tensor._view
    if view is None:
        return tensor._edge
    storage = tensor._storage
    version = (storage.root or storage).version
    if view.version != version and view.restriction != "no_grad":
        base_edge, edge = view.base._edge, tensor._edge
        if base_edge is not None and view.restriction is not None:
            what = "its base or another view of its base has been"
            raise RuntimeError(restriction_message(view.restriction, edge, what))
        view.version = version
        own_leaf = edge is not None and type(edge[0]) is Leaf
        if base_edge is not None or not own_leaf:
            twin = view.base
            with recording(True):
                for op, parameters, number in view.chain:
                    twin = apply(op, twin, **parameters)
                    if number is not None:
                        twin = twin[number]
            tensor._edge = twin._edge
            if tensor._retains_grad and twin._edge is not None:
                move_retained(tensor, edge)
    return tensor._edge


def restriction_message(restriction: str, edge: Any, what: str) -> str:
    """Why a view must not take part in a recorded write; `what` "is being" modified."""
    if restriction == "multiple":
        name, number = "a view function", 0
        if edge is not None:
            name, number = edge[0].name().removesuffix("Backward0"), edge[1]
        return (
            f"Output {number} of {name} is a view and {what} modified inplace. This view is the "
            "output of a function that returns multiple views. Such functions do not allow the "
            "output views to be modified inplace. You should replace the inplace operation by an "
            "out-of-place one."
        )
    if restriction == "function":
        name, number = "a Function", 0
        if edge is not None:
            name, number = edge[0].name().removesuffix("Backward"), edge[1]
        return (
            f"Output {number} of {name} is a view and {what} modified inplace. This view was "
            "created inside a custom Function (or because an input was returned as-is) and the "
            "autograd logic to handle view+inplace would override the custom backward associated "
            "with the custom Function, leading to incorrect gradients. This behavior is forbidden. "
            "You can fix this by cloning the output of the custom Function."
        )
    return (
        f"A view was created in no_grad mode and {what} modified inplace with grad mode enabled. "
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the no_grad block "
        "(if you don't want the inplace to be tracked) or both outside (if you want the inplace "
        "to be tracked)."
    )


def current_node(tensor: Tensor) -> Any:
    """The node that made `tensor`, its `Leaf`, or None."""
    edge = tensor._edge if tensor._view is None else current_edge(tensor)
    return None if edge is None else edge[0]


class recording:
    """Switch recording for a block (cheaper than the public context managers)."""

    __slots__ = ("_enabled", "_previous")

    def __init__(self, enabled: bool) -> None:
        self._enabled = enabled

    def __enter__(self) -> None:
        self._previous = mode.grad
        mode.grad = self._enabled

    def __exit__(self, *exception: object) -> None:
        mode.grad = self._previous


def _wrap_output(array: Any, backend: Any, root: Storage | None) -> Tensor:
    if type(array) is not backend.array_type:
        array = backend.asarray(array)
    return new_tensor(Storage(array, backend, root))


def _remember_views(source: Any, outputs: tuple, op: type[Op], parameters: dict) -> None:
    parent = source._view
    base, before = (source, None) if parent is None else (parent.base, parent.last)
    version = outputs[0]._storage.current_version()
    restriction = None if parent is None else parent.restriction
    restriction = restriction or ("multiple" if mode.grad else "no_grad")
    number = 0
    for output in outputs:
        output._view = View(base, (before, (op, parameters, number)), version, restriction)
        number += 1
