"""The life of a call, written once: look the op up, run it, wrap what it gives, record the node.

This text is compiled into every function that runs ops on tensors: `apply` and its forms for a
fixed number of inputs (`autograd/apply.py`), the public functions of pointwise ops, of reductions,
of softmax (`ops`). What is in front of it there reads arguments, as each of them must: it leaves
``x_storage`` and ``x_array`` for each input ``x``, and `backend`. See the functions' source, as
tracebacks and debuggers do:

>>> import inspect
>>> from tensorflow_lite_clone.autograd.apply import apply_unary
>>> inspect.getsource(apply_unary).splitlines()[0]
'def apply_unary(op, x, parameters):'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone.core.templates import define, fill

_CALL = """
try:
    call = {calls}[backend]
except KeyError:
    call = prepared(op, backend)
try:
    result = {run}
except REFUSALS:
    {refused}
    result = calculated(op, backend, call, {arrays}, {parameters})
{wrap}
{record}
{finish}
return output
"""

_STORAGE = """
made = new(Storage)
made.array = result
made.backend = backend
made.version = 0
made.root = {root}
"""

_OUTPUT = """
output = new(Tensor)
output._storage = made
output._edge = None
output._view = {view}
"""

#: One result in row-major order, as most ops' are.
ROW_MAJOR = """
if result.__class__ is not backend.array_type:
    result = backend.asarray(result)
elif result.ndim > 1 and not backend.is_contiguous(result):
    result = in_order(op, backend, result, (), {parameters})
{storage}
{output}
"""

#: One result that lies as the operands do: in row-major order if the first tensor, `lead`, is.
ELEMENTWISE = """
if {lead}_array.ndim > 1 and not backend.is_contiguous({lead}_array):
    result = in_order(op, backend, result, {arrays}, {parameters})
if result.__class__ is not backend.array_type:
    result = backend.asarray(result)
if {lead}_storage.__class__ is Free:
    made = freely(result, backend, {storages})
else:
    {storage}
{output}
"""

#: The first of several results; the others are for the gradient alone.
FIRST = """
if not backend.is_contiguous(x_array):
    result = in_order(op, backend, result, {arrays}, {parameters})
result, *others = result
if result.__class__ is not backend.array_type:
    result = backend.asarray(result)
{storage}
{output}
"""

#: A result that is a view of the one input, and remembers how it was taken.
VIEW = """
{remember}
root = x_storage.root
if root is None:
    root = x_storage
{storage}
if root.__class__ is Lent:
    root.views.add(made)
view = None
if op.differentiable:
    view = new(View)
    view.version = root.version
    parent = x._view
    if parent is None:
        x_edge = x._edge
        view.base = x
        view.last = None, (op, parameters, None)
        view.restriction = None
    else:
        x_edge = current_edge(x) if mode.grad else None
        view.base = parent.base
        view.last = parent.last, (op, parameters, None)
        view.restriction = parent.restriction
{output}
if view is not None:
    if not mode.grad:
        view.restriction = view.restriction or "no_grad"
    elif x_edge is not None:
        mask = 1
        {node}
"""

#: Whatever an op of any number of inputs gives.
ANY = """
if not op.view:
    result = in_order(op, backend, result, arrays, parameters)
if result.__class__ is tuple:
    return wrap_outputs(op, inputs, backend, result, storages, parameters)
if op.view:
    return view_of(op, inputs[0], result, parameters)
if result.__class__ is not backend.array_type:
    result = backend.asarray(result)
made = freely(result, backend, storages) if op.any_layout else Storage(result, backend)
{output}
"""

#: Whether to record. It costs more to read the mode than an edge, so it is asked last.
_RECORD = """
{edges}
if {wanted} and mode.grad:
    mask = {mask}
    {outputs}
    {node}
"""
_EDGE = "{x}_edge = {x}._edge if {x}._view is None or not mode.grad else current_edge({x})"

_RECORD_ANY = """
if op.differentiable and mode.grad:
    edges, mask = edges_of(inputs)
    if mask:
        {node}
"""

#: Hidden results, which gradients read, beside `made`.
_OUTPUTS = """
outputs = [made]
for result in others:
    {storage}
    outputs.append(made)
"""

_NODE = """
node = new({kind})
node.op = op
node.backend = backend
node.edges = {edges}
node.mask = mask
node.parameters = {parameters}
node.sequence = next_sequence_number()
node.shapes = {shapes}
node.dtypes = {dtypes}
{place}
saves = op.plans[mask].saves
if saves:
    {keep}
    {gather}
    node.saved = saved = []
    node.versions = versions = []
    for position in saves:
        storage = storages[position] if position >= 0 else {saved_output}
        saved.append(storage)
        versions.append(-1 if storage is None else (storage.root or storage).version)
    if saved_hooks:
        pack_all(saved)
else:
    node.saved = node.versions = NOTHING
if creation_hooks:
    for hook in creation_hooks:
        hook(node)
"""


def call_text(
    inputs: Sequence[str],
    wrap: str,
    *,
    parameters: str | Mapping[str, str] = "",
    optional: Sequence[str] = (),
    lead: str = "x",
    calls: str = "op.calls",
    run: str = "{call}",
    refused: str = "",
    differentiable: str = "",
    keep: str = "",
    finish: str = "",
) -> str:
    """The text for tensors named `inputs`, from where they are read to the end of the function.

    `wrap` is one of the texts above. `parameters` are those of the op: the name of a dictionary, or
    names and expressions. The storages of `optional` inputs may be None. `run` is how the op is run
    where that is not the plain ``{call}``, which is ``call({arguments})``. `differentiable` says
    whether to look at edges. More is done with `refused` before `calculated` is asked, with `keep`
    before inputs are saved, with `finish` before `output` is returned.
    """
    storages = _tuple([f"{x}_storage" for x in inputs])
    arrays = _tuple([f"{x}_array" for x in inputs])
    arguments = [f"{x}_array" for x in inputs]
    if wrap is ANY:
        storages, arrays, arguments = "storages", "arrays", ["*arrays"]
    if isinstance(parameters, Mapping):
        arguments += [f"{name}={value}" for name, value in parameters.items()]
        parameters = f"{{{', '.join([f'{name!r}: {v}' for name, v in parameters.items()])}}}"
    elif parameters:
        arguments.append(f"**{parameters}")
    given = ", ".join(arguments)
    multiple = wrap is FIRST
    parts = {
        "arrays": arrays,
        "parameters": parameters or "NO_PARAMETERS",
        "storages": storages,
        "lead": lead,
        "storage": fill(_STORAGE, root="None"),
        "output": fill(_OUTPUT, view="None"),
    }
    edges = [
        _EDGE.format(x=x) if x not in optional
        else f"{x}_edge = None\nif {x}_storage is not None:\n    {_EDGE.format(x=x)}"
        for x in inputs
    ]  # fmt: skip
    wanted = " or ".join([f"{x}_edge is not None" for x in inputs])
    wanted = f"({wanted})" if len(inputs) > 1 else wanted
    bits = [f"(0 if {x}_edge is None else {1 << i})" for i, x in enumerate(inputs)]
    node = node_text(
        "edges" if wrap is ANY else _tuple([f"{x}_edge" for x in inputs]),
        storages,
        parts["parameters"],
        "outputs" if multiple else "",
        "output._edge = node, 0",
        keep,
    )
    record = fill(
        _RECORD_ANY if wrap is ANY else _RECORD,
        edges="\n".join(edges),
        wanted=wanted,
        mask=" + ".join(bits) if len(inputs) > 1 else "1",
        outputs=fill(_OUTPUTS, **parts) if multiple else "",
        node=node,
    )
    if differentiable:
        record = fill("if {test}:\n    {record}", test=differentiable, record=record)
    return fill(
        _CALL,
        calls=calls,
        run=run.format(call=f"call({given})", arguments=given),
        refused=refused,
        wrap=view_text(parameters) if wrap is VIEW else fill(wrap, **parts),
        record="" if wrap is VIEW else record,
        finish=finish,
        **parts,
    )


def view_text(parameters: str = "parameters") -> str:
    """The text that makes `output` of the array `result`, a view of ``x``, and records it."""
    return fill(
        VIEW,
        remember="" if parameters == "parameters" else f"parameters = {parameters}",
        storage=fill(_STORAGE, root="root"),
        output=fill(_OUTPUT, view="view"),
        node=node_text("(x_edge,)", "(x_storage,)", place="output._edge = node, 0"),
    )


def node_text(
    edges: str,
    storages: str = "storages",
    parameters: str = "parameters",
    outputs: str = "",
    place: str = "",
    keep: str = "",
) -> str:
    """The text that makes and fills a node, for the storage `made` or several `outputs` of an op.

    `place` gives tensors their place in the graph, `keep` is done before inputs are saved.
    """
    one, each = "made", "made.laid.{}"
    if outputs:
        one, each = f"{outputs}[~position]", f"tuple([one.laid.{{}} for one in {outputs}])"
    return fill(
        _NODE,
        kind="MultiOutputNode" if outputs else "Node",
        gather="" if storages == "storages" else f"storages = {storages}",
        parameters=parameters,
        edges=edges,
        shapes=each.format("shape"),
        dtypes=each.format("dtype"),
        saved_output=one,
        place=place,
        keep=keep,
    )


_READ = """
{storages}
backend = x_storage.backend
{elsewhere}
{arrays}
"""


def read_text(
    inputs: Sequence[str], unless: str = "", otherwise: str = "", optional: Sequence[str] = ()
) -> str:
    """The text that takes the arrays out of tensors named `inputs`; those `optional` may be None.

    Where they are on several devices, or `unless` holds, `otherwise` is done.
    """
    conditions = [unless] if unless else []
    for x in inputs[1:]:
        there = f"{x}_storage.backend is not backend"
        conditions.append(f"({x}_storage is not None and {there})" if x in optional else there)
    absent = {x: f"None if {x} is None else " if x in optional else "" for x in inputs}
    return fill(
        _READ,
        storages="\n".join([f"{x}_storage = {absent[x]}{x}._storage" for x in inputs]),
        elsewhere=f"if {' or '.join(conditions)}:\n    {otherwise}" if conditions else "",
        arrays="\n".join([f"{x}_array = {absent[x]}{x}_storage.array" for x in inputs]),
    )


def define_call(
    name: str, parameters: str, document: str, *body: str, scope: dict[str, Any]
) -> Any:
    """The function ``name(parameters)`` with this docstring and body."""
    text = fill(
        "def {name}({parameters}):\n    {document}\n    {body}",
        name=name,
        parameters=parameters,
        document=f'"""{document}"""',
        body="\n".join([part.strip("\n") for part in body]),
    )
    return define(name, text, "autograd/call_template.py", scope)


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
