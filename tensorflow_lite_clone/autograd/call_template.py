"""The life of a call, written once: look the op up, run it, wrap what it gives, record the node.

This text is compiled into every function that runs ops on tensors: `apply` and its forms for a
fixed number of inputs (`autograd/apply.py`), the public functions of pointwise ops, of reductions,
of softmax (`ops`). What is in front of it there reads arguments, as each of them must: it leaves
``x_storage`` and ``x_array`` for each input ``x``, and `backend`. See the functions' source, as
tracebacks and debuggers do:

>>> import inspect
>>> "call = prepared(op, backend)" in inspect.getsource(torch.exp)
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone.core.templates import define_later, fill

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

_AS_ARRAY = """
if result.__class__ is not backend.array_type:
    result = backend.asarray(result)"""

_STORAGE = """
made = new(Storage)
made.array = result
made.backend = backend
made.version = 0
made.root = None"""

_OUTPUT = """
output = new(Tensor)
output._storage = made
output._edge = None
output._view = None"""

#: One result in row-major order, as most ops' are.
ROW_MAJOR = f"""{_AS_ARRAY}
elif result.ndim > 1 and not backend.is_contiguous(result):
    result = in_order(op, backend, result, (), {{parameters}}){_STORAGE}{_OUTPUT}"""

#: One result that lies as the operands do: in row-major order if the first that is no number is.
ELEMENTWISE = f"""
if {{lead}}_array.ndim > 1 and not backend.is_contiguous({{lead}}_array):
    result = in_order(op, backend, result, {{arrays}}, {{parameters}}){_AS_ARRAY}{_STORAGE}
if {{lead}}_storage.__class__ is LazyStorage:
    made = lazily_contiguous(result, backend, {{storages}}){_OUTPUT}"""

#: The first of several results; the others are for the gradient alone.
FIRST = f"""
if not backend.is_contiguous(x_array):
    result = in_order(op, backend, result, {{arrays}}, {{parameters}})
result, *others = result{_AS_ARRAY}{_STORAGE}{_OUTPUT}"""

#: Whatever an op of any number of inputs gives.
ANY = f"""
if not op.view:
    result = in_order(op, backend, result, arrays, parameters)
if result.__class__ is tuple:
    return wrap_outputs(op, inputs, backend, result, storages, parameters)
if op.view:
    return view_of(op, inputs[0], result, parameters){_AS_ARRAY}
if op.layout_agnostic:
    made = lazily_contiguous(result, backend, storages)
else:
    made = Storage(result, backend){_OUTPUT}"""

#: A result that is a view of the one input, and remembers how it was taken.
VIEW = f"""
root = x_storage.root
if root is None:
    root = x_storage{_STORAGE}
made.root = root
if root.__class__ is ReleasableStorage:
    root.views.add(made){_OUTPUT}
if op.differentiable:
    output._view = view = new(View)
    view.version = root.version
    parent = x._view
    step = op, {{parameters}}, None
    if parent is None:
        x_edge = x._edge
        view.base, view.last, view.restriction = x, (None, step), None
    else:
        x_edge = current_edge(x) if mode.grad else None
        view.base, view.last = parent.base, (parent.last, step)
        view.restriction = parent.restriction
    if not mode.grad:
        view.restriction = view.restriction or "no_grad"
    elif x_edge is not None:
        mask = 1
        {{node}}
"""

#: Whether to record. It costs more to read the mode than an edge, so it is asked last.
_RECORD = """
{edges}
if ({wanted}) and {differentiable}mode.grad:
    mask = {mask}
    {node}
"""
_EDGE = "{x}._edge if {x}._view is None or not mode.grad else current_edge({x})"

_NODE_OF_FIRST = """
outputs = [made, *[Storage(array, backend) for array in others]]
node = record_outputs(outputs, op, backend, {edges}, mask, {storages}, {parameters})
output._edge = node, 0
"""

_RECORD_ANY = """
if op.differentiable and mode.grad:
    edges, mask = edges_of(inputs)
    if mask:
        {node}
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
    {constants}
    storages = {storages}
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
if node_hooks:
    for hook in node_hooks:
        hook(node)
"""


def call_text(
    inputs: Sequence[str],
    wrap: str,
    *,
    parameters: str | Mapping[str, str] = "",
    optional: Sequence[str] = (),
    calls: str = "op.calls",
    run: str = "{call}",
    refused: str = "",
    differentiable: str = "",
    finish: str = "",
) -> str:
    """The text for tensors named `inputs`, from where they are read to the end of the function.

    `wrap` is one of the texts above. `parameters` are those of the op: the name of a dictionary, or
    names and expressions. The storages of `optional` inputs may be None. `run` is how the op is run
    where that is not the plain ``{call}``, which is ``call({arguments})``. `differentiable` says
    whether to record at all. More is done with `refused` before `calculated` is asked, with
    `finish` before `output` is returned.
    """
    arguments = [f"{x}_array" for x in inputs]
    parts = {part: _tuple([f"{x}_{part[:-1]}" for x in inputs]) for part in ("arrays", "storages")}
    edges = _tuple([f"{x}_edge" for x in inputs])
    if wrap is ANY:
        arguments, edges, parts = ["*arrays"], "edges", {part: part for part in parts}
    if isinstance(parameters, Mapping):
        arguments += [f"{name}={value}" for name, value in parameters.items()]
        pairs = [f"{name!r}: {value}" for name, value in parameters.items()]
        parameters = f"{{{', '.join(pairs)}}}"
    elif parameters:
        arguments.append(f"**{parameters}")
    parts["parameters"] = parameters or "NO_PARAMETERS"
    absent = {x: f"None if {x}_storage is None else " if x in optional else "" for x in inputs}
    if wrap is FIRST:
        node = fill(_NODE_OF_FIRST, edges=edges, **parts)
    else:
        held = "step[1]" if wrap is VIEW else parts["parameters"]
        node = node_text(edges, parts["storages"], held, optional)
    given = ", ".join(arguments)
    lead = next((x for x in inputs if x not in optional), "")
    bits = [f"(0 if {x}_edge is None else {1 << i})" for i, x in enumerate(inputs)]
    return fill(
        _CALL,
        calls=calls,
        run=run.format(call=f"call({given})", arguments=given),
        refused=refused,
        wrap=fill(wrap, node=node, lead=lead, **parts),
        record=fill(
            {VIEW: "", ANY: _RECORD_ANY}.get(wrap, _RECORD),
            differentiable=differentiable and f"{differentiable} and ",
            edges="\n".join([f"{x}_edge = {absent[x]}{_EDGE.format(x=x)}" for x in inputs]),
            wanted=" or ".join([f"{x}_edge is not None" for x in inputs]),
            mask=" + ".join(bits),
            node=node,
        ),
        finish=finish,
        **parts,
    )


def node_text(
    edges: str = "edges",
    storages: str = "storages",
    parameters: str = "parameters",
    numbers: Sequence[str] = (),
    several: bool = False,
) -> str:
    """The text that makes the node of `output`, or with `several` that of the storages `outputs`.

    The inputs `numbers` are constants where they have no storage.
    """
    one = "tuple([made.physical.{} for made in outputs])" if several else "made.physical.{}"
    constant = "if {x}_storage is None:\n    {x}_storage = Storage({x}_array, backend)"
    return fill(
        _NODE,
        kind="MultiOutputNode" if several else "Node",
        edges=edges,
        parameters=parameters,
        shapes=one.format("shape"),
        dtypes=one.format("dtype"),
        place="" if several else "output._edge = node, 0",
        constants="\n".join([constant.format(x=x) for x in numbers]),
        storages=storages,
        saved_output="outputs[~position]" if several else "made",
    )


def define_call(
    name: str, parameters: str, document: str, *body: str, scope: dict[str, Any]
) -> Any:
    """The function ``name(parameters)`` with this docstring and body."""
    text = "\n".join([f'"""{document}"""', *[part.strip("\n") for part in body if part]])
    text = fill("def {head}:\n    {body}", head=f"{name}({parameters})", body=text)
    return define_later(name, text, __name__, scope)


def define_form(
    name: str,
    inputs: str,
    wrap: str,
    document: str,
    parameters: str | Sequence[str] = "",
    *,
    optional: str = "",
    unless: Sequence[str] = (),
    scope: dict[str, Any],
) -> Any:
    """A form of `apply` for as many inputs as there are letters, of which some may be None.

    Its `parameters` are one dictionary, ``**`` a dictionary, or these of the op by name. `apply`
    is asked where the inputs are on several devices, or where something in `unless` holds.
    """
    names = [parameters] * bool(parameters) if isinstance(parameters, str) else [*parameters]
    values: Any = "parameters" * bool(parameters)
    if not isinstance(parameters, str):
        values = {name: name for name in names}
    storages, arrays, elsewhere = [], [], [*unless]
    for x in inputs:
        absent = f"None if {x} is None else " if x in optional else ""
        storages.append(f"{x}_storage = {absent}{x}._storage")
        arrays.append(f"{x}_array = {absent}{x}_storage.array")
        if x != "x":
            present = f"{x} is not None and " if x in optional else ""
            elsewhere.append(f"({present}{x}_storage.backend is not backend)")
    general = ", ".join(["op", *inputs, *["**parameters"] * bool(parameters)])
    general = f"return apply({general}){'[0]' * (wrap is FIRST)}"
    leave = f"if {' or '.join(elsewhere)}:\n    {general}" if elsewhere else ""
    call = call_text(inputs, wrap, parameters=values, optional=optional)
    text = [document, *storages, "backend = x_storage.backend", leave, *arrays, call]
    return define_call(name, ", ".join(["op", *inputs, *names]), *text, scope=scope)


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)}{',' * (len(names) == 1)})"
