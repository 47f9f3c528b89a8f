"""From Tensors to arrays and back: run an op, wrap what it returns, record it if wanted.

The functions that do so are made from the text in `call_template.py`, at the end of this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.autograd.call_template import (
    ANY,
    FIRST,
    ROW_MAJOR,
    VIEW,
    call_text,
    define_call,
    define_form,
    node_text,
)
from tensorflow_lite_clone.autograd.hooks import move_retained
from tensorflow_lite_clone.autograd.interpreters import interpreters
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.node import (
    Leaf,
    MultiOutputNode,
    Node,
    next_sequence_number,
)
from tensorflow_lite_clone.autograd.saved import active as saved_hooks
from tensorflow_lite_clone.autograd.saved import pack_all
from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.core.templates import fill
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import in_order
from tensorflow_lite_clone.dispatch.stored import REFUSALS, calculated
from tensorflow_lite_clone.dispatch.table import prepared
from tensorflow_lite_clone.storage import (
    LazyStorage,
    ReleasableStorage,
    Storage,
    in_physical_layout,
    lazily_contiguous,
)
from tensorflow_lite_clone.tensor import Tensor, View, new_tensor

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Array, Backend


def wrap(array: Array, backend: Backend, root: Storage | None = None) -> Tensor:
    """A new tensor over an array of `backend`, outside of any graph; it may view that of `root`."""
    if type(array) is not backend.array_type:
        array = backend.asarray(array)
    return new_tensor(Storage(array, backend, root))


def wrap_freely(array: Array, backend: Backend, inputs: Any = ()) -> Tensor:
    """`wrap` for what a layout-agnostic op made of `inputs`, and gradients; see `LazyStorage`."""
    if type(array) is not backend.array_type:
        array = backend.asarray(array)
    return new_tensor(lazily_contiguous(array, backend, inputs))


def wrap_gradients(found: list, backends: list, told: list, given: Any) -> list:
    """`wrap_freely` for gradients (or None) that may lie in the memory of `given` storages.

    Writes to these are counted together, as those to one array found twice.
    """
    holders: dict[int, Storage] = {}
    for storage in given:
        root = storage.root or storage
        holders[id(_memory(root.physical))] = root
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
            if type(root) is ReleasableStorage:
                root.views.add(made)
        results[place] = tensor
    return results


def _memory(array: Array) -> Any:
    """What a view and the array it is of have in common."""
    base = getattr(array, "base", None)
    return array if base is None else base


def wrap_outputs(
    op: type[Op], inputs: tuple, backend: Backend, results: tuple, storages: Any, parameters: dict
) -> tuple:
    """The tensors of an op's several results; recorded if an input wants a gradient."""
    root = None
    if op.view:
        root = storages[0].root or storages[0]
    if op.layout_agnostic:
        outputs = tuple([wrap_freely(array, backend, storages) for array in results])
    else:
        outputs = tuple([wrap(array, backend, root) for array in results])
    if op.differentiable and mode.grad:
        edges, mask = edges_of(inputs)
        if mask:
            made = [output._storage for output in outputs]
            node = record_outputs(made, op, backend, edges, mask, storages, parameters)
            for index, output in enumerate(outputs):
                if index not in op.nondifferentiable:
                    output._edge = (node, index)
    if root is not None and op.differentiable:
        _remember_views(inputs[0], outputs, op, parameters)
    return outputs


def together(inputs: tuple, op: type[Op]) -> tuple:
    """Inputs of several backends on one; RuntimeError when they lie on different devices."""
    lifted = interpreters.lift(inputs)
    if lifted is not None:
        return lifted
    first, second = list(
        dict.fromkeys([tensor._storage.backend for tensor in inputs if tensor is not None])
    )[:2]
    if "meta" in (first.device.type, second.device.type):
        raise RuntimeError(
            f"Tensor on device {second.device} is not on the expected device {first.device}!"
        )
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
            outside, mode.grad = mode.grad, True
            try:
                for op, parameters, number in view.chain:
                    twin = apply(op, twin, **parameters)
                    if number is not None:
                        twin = twin[number]
            finally:
                mode.grad = outside
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


#: What the text of a call names.
NAMES: dict[str, Any] = {
    each.__name__: each
    for each in (
        LazyStorage, MultiOutputNode, Node, ReleasableStorage, Storage, Tensor, View, calculated,
        current_edge, edges_of, in_order, in_physical_layout, lazily_contiguous, pack_all,
        prepared, together, wrap_outputs,
    )
} | {
    "NOTHING": [],
    "NO_PARAMETERS": {},
    "REFUSALS": REFUSALS,
    "__name__": __name__,
    "mode": mode,
    "new": object.__new__,
    "next_sequence_number": next_sequence_number,
    "node_hooks": hooks.on_node,
    "saved_hooks": saved_hooks,
}  # fmt: skip

_READ_ANY = """
backend = None
storages = []
arrays = []
for tensor in inputs:
    storage = array = None
    if tensor is not None:
        storage = tensor._storage
        if storage.backend is not backend:
            if backend is not None:
                return apply(op, *together(inputs, op), **parameters)
            backend = storage.backend
        array = storage.physical
    storages.append(storage)
    arrays.append(array)
if backend is None:
    raise RuntimeError(f"'{op.name}' expected at least one tensor")
if backend.lays:
    if op.layout_agnostic:
        arrays = in_physical_layout(storages)
    else:
        arrays = [None if storage is None else storage.array for storage in storages]
"""

record = define_call(
    "record",
    "output, op, backend, edges, mask, storages, parameters=NO_PARAMETERS",
    "Record `op` as the maker of its one `output`; `storages` are those of its inputs.",
    "made = output._storage",
    node_text(),
    scope=NAMES,
)
record_outputs = define_call(
    "record_outputs",
    "outputs, op, backend, edges, mask, storages, parameters",
    "The node of an op that has several results, the storages `outputs`; see `record`.",
    node_text(several=True),
    "return node",
    scope=NAMES,
)
view_of = define_call(
    "view_of",
    "op, x, result, parameters",
    "The tensor of a view of `x` that `op` made; recorded if `x` wants a gradient.",
    "x_storage = x._storage",
    "backend = x_storage.backend",
    fill(VIEW, parameters="parameters", node=node_text("(x_edge,)", "(x_storage,)", "step[1]")),
    "return output",
    scope=NAMES,
)
apply = define_call(
    "apply",
    "op, *inputs, **parameters",
    """Run `op` on tensors of one device and record it when an input wants a gradient.

Optional inputs may be None. Returns a Tensor, or a tuple of them. Raises RuntimeError when the
tensors lie on different devices.
""",
    _READ_ANY,
    call_text((), ANY, parameters="parameters"),
    scope=NAMES,
)
late_bound.apply.provide(apply)
apply_unary = define_form(
    "apply_unary",
    "x",
    ROW_MAJOR,
    "`apply` for a differentiable op with one input and one row-major output that is no view.",
    "parameters",
    unless=["x_storage.__class__ is LazyStorage"],
    scope=NAMES,
)
apply_binary = define_form(
    "apply_binary", "xy", ROW_MAJOR, "`apply_unary` for two, without parameters.", scope=NAMES
)
apply_ternary = define_form(
    "apply_ternary", "xyz", ROW_MAJOR, "`apply_unary` for three, without parameters.", scope=NAMES
)
apply_first_output = define_form(
    "apply_first_output",
    "xyz",
    FIRST,
    """The first output of a differentiable op with three inputs; `y` and `z` may be None.

Its other outputs are for its gradient alone.
""",
    "parameters",
    optional="yz",
    unless=["backend.lays"],
    scope=NAMES,
)


def view_form(name: str, *parameters: str) -> Any:
    """The form of `apply` for ops with these parameters whose one output is a view of `x`."""
    document = "`apply` for an op with one input whose one output is a view of it."
    return define_form(name, "x", VIEW, document, parameters or "**parameters", scope=NAMES)


apply_view = view_form("apply_view")
