"""Graphs of aten's operations, of forward and of backward passes, for backends that compile those.

A graph and its gradients are traced as one, and split: what depends on gradients that come in is
the backward graph, all else the forward graph, which also returns what the other one needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone import fx
from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.autograd.gradients import grad
from tensorflow_lite_clone.fx.experimental.proxy_tensor import get_innermost_proxy_mode, make_fx
from tensorflow_lite_clone.fx.graph import CodeGen
from tensorflow_lite_clone.ops.create.constructors import ones_like
from tensorflow_lite_clone.ops.random.generators import fork_rng
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils import _pytree as pytree

#: What compiles a graph: ``compiler(graph_module, example_inputs)``.
Compiler = Callable[[Any, list[Any]], Callable[..., Any]]

#: In a node's ``meta``, as PyTorch has it: that backward passes made it.
_TAG, _BACKWARD = "partitioner_tag", "is_backward"


def make_boxed_func(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` as a function of one list, which a compiler of graphs may return."""

    def boxed(arguments: list[Any]) -> Any:
        return f(*arguments)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Compiler) -> Compiler:
    """A compiler whose functions are boxed, see `make_boxed_func`."""

    def compile_boxed(graph_module: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        compiled = compiler(graph_module, example_inputs)
        return compiled if _is_boxed(compiled) else make_boxed_func(compiled)

    return compile_boxed


def _is_boxed(function: Any) -> bool:
    return bool(getattr(function, "_boxed_call", False))


def _unboxed(function: Callable[..., Any]) -> Callable[..., Any]:
    return (lambda *args: function([*args])) if _is_boxed(function) else function


def default_partition(
    joint_module: Any, _joint_inputs: Any, *, num_fwd_outputs: int
) -> tuple[Any, Any]:
    """The forward and the backward graph of one with inputs named ``primals`` and ``tangents``.

    Its first `num_fwd_outputs` results are those of the forward graph, others of the backward
    graph, to which nodes belong that need tangents, or say so in their ``meta``. The forward graph
    also returns what the backward graph begins with.
    """
    graph = joint_module.graph
    inputs = graph.find_nodes(op="placeholder")
    tangents = [node for node in inputs if node.name.startswith("tangents")]
    backward = {*tangents}
    for node in graph.nodes:
        if node.op != "output" and (
            node.meta.get(_TAG) == _BACKWARD or not backward.isdisjoint(node.all_input_nodes)
        ):
            backward.add(node)
    (results,) = graph.output_node().args
    outputs, gradients = results[:num_fwd_outputs], results[num_fwd_outputs:]
    needed = [node for node in outputs if isinstance(node, fx.Node)]
    while needed:  # views of one memory may have been made in either pass
        node = needed.pop()
        if node in backward and node.op != "placeholder":
            backward.discard(node)
            needed += node.all_input_nodes
    needed = [node for node in gradients if isinstance(node, fx.Node)]
    for node in backward:
        needed += node.all_input_nodes
    missing = {*needed} - backward
    saved = [node for node in graph.nodes if node in missing]
    primals = [node for node in inputs if node not in backward]
    others = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    forward_graph = _extracted(
        primals, [node for node in others if node not in backward], [*outputs, *saved]
    )
    backward_graph = _extracted(
        [*saved, *tangents], [node for node in others if node in backward], [*gradients]
    )
    return fx.GraphModule(joint_module, forward_graph), fx.GraphModule(joint_module, backward_graph)


def _extracted(inputs: Sequence[Any], nodes: Sequence[Any], results: Sequence[Any]) -> fx.Graph:
    """A graph of some nodes of another, with nodes of that as inputs and results."""
    graph = fx.Graph()
    copies: dict[Any, Any] = {}
    for node in inputs:
        copies[node] = copied = graph.placeholder(node.name)
        copied.meta = dict(node.meta)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple([copies[x] if isinstance(x, fx.Node) else x for x in results]))
    return graph


def _copies(values: Sequence[Any]) -> list[Any]:
    """Copies of the tensors among some values, which require gradients as these do."""
    found = []
    for value in values:
        copy = value.detach().clone() if isinstance(value, Tensor) else value
        if isinstance(value, Tensor) and value.requires_grad:
            copy.requires_grad_()
        found.append(copy)
    return found


def _traced(function: Callable[..., Any], decompositions: Any, *arguments: Any) -> Any:
    """The graph of a function that returns a list, with inputs that are not nested."""
    with fork_rng():
        module = make_fx(function, decompositions)(*arguments)
    module.graph.set_codegen(CodeGen())
    (results,) = module.graph.output_node().args
    module.graph.output_node().args = (tuple(results),)
    module.recompile()
    return module


class _Runner(Function):
    """Runs the forward graph of an `_Differentiable`, and its backward graph."""

    @staticmethod
    def forward(ctx: Any, graphs: _Differentiable, *inputs: Any) -> Any:
        results = tuple(graphs.forward(*inputs))
        outputs, saved = results[: graphs.count], results[graphs.count :]
        ctx.graphs, ctx.others = graphs, [x for x in saved if not isinstance(x, Tensor)]
        ctx.order = [isinstance(x, Tensor) for x in saved]
        ctx.save_for_backward(*[x for x in saved if isinstance(x, Tensor)])
        ctx.mark_non_differentiable(
            *[x for n, x in enumerate(outputs) if n not in graphs.wanted and isinstance(x, Tensor)]
        )
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        tensors, others = iter(ctx.saved_tensors), iter(ctx.others)
        saved = [next(tensors) if is_tensor else next(others) for is_tensor in ctx.order]
        found = iter(ctx.graphs.backward(*saved, *[grads[n] for n in ctx.graphs.wanted]))
        return None, *[next(found) if wants else None for wants in ctx.graphs.inputs]


class _Differentiable:
    """A compiled forward and backward graph, as a function of tensors.

    `count` is the number of outputs, `wanted` are those with a gradient; `inputs` says for each
    input whether it wants one.
    """

    def __init__(self, forward: Any, backward: Any, count: int, wanted: Any, inputs: Any) -> None:
        self.forward, self.backward = _unboxed(forward), _unboxed(backward)
        self.count, self.wanted, self.inputs = count, wanted, inputs

    def __call__(self, *values: Any) -> Any:
        return _Runner.apply(self, *values)


def aot_module_simplified(
    mod: Any,
    args: Sequence[Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., tuple[Any, Any]] | None = None,
    decompositions: dict[Any, Any] | None = None,
    inference_compiler: Compiler | None = None,
    **others: Any,
) -> Callable[..., Any]:
    """What compilers of aten graphs make of a function of tensors that returns a tuple of them.

    `fw_compiler` is given the forward graph, `bw_compiler` (or the same) the backward graph, and
    `inference_compiler` (or `fw_compiler`) the only one where no gradient is wanted. The function
    runs on copies of `args` to be traced.
    """
    with fork_rng():
        outputs = mod(*_copies(args))
    differentiable = [n for n, x in enumerate(outputs) if isinstance(x, Tensor) and x.requires_grad]
    if not differentiable:
        module = _traced(lambda *values: [*mod(*values)], decompositions, *_copies(args))
        for number, node in enumerate(module.graph.find_nodes(op="placeholder")):
            node._rename(f"arg{number}_1")
        module.recompile()
        compiled = _unboxed((inference_compiler or fw_compiler)(module, [*args]))
        return lambda *values: tuple(compiled(*values))

    def joint(primals: list[Any], tangents: list[Any]) -> list[Any]:
        results = mod(*primals)
        leaves = [x for x in primals if isinstance(x, Tensor) and x.requires_grad]
        tracing: Any = get_innermost_proxy_mode()
        graph = tracing.tracer.graph
        before = {*graph.nodes}
        found = grad([results[n] for n in differentiable], leaves, tangents, allow_unused=True)
        for node in graph.nodes:
            if node not in before:
                node.meta[_TAG] = _BACKWARD
        return [*results, *found]

    tangents = [ones_like(outputs[n].detach()) for n in differentiable]
    count = len(outputs)
    module = _traced(joint, decompositions, _copies(args), tangents)
    forward, backward = (partition_fn or default_partition)(
        module, ([*args], tangents), num_fwd_outputs=count
    )
    needed = [node.meta["val"] for node in backward.graph.find_nodes(op="placeholder")]
    return _Differentiable(
        fw_compiler(forward, [*args]),
        (bw_compiler or fw_compiler)(backward, needed),
        count,
        differentiable,
        [isinstance(x, Tensor) and x.requires_grad for x in args],
    )


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., tuple[Any, Any]] | None = None,
    decompositions: dict[Any, Any] | None = None,
    inference_compiler: Compiler | None = None,
    **others: Any,
) -> Callable[..., Any]:
    """`fn` by compiled graphs of its first call, see `aot_module_simplified`.

    Arguments and results may be nested; later calls are to have tensors of the same shapes.
    """
    kept: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if not kept:
            specs: list[Any] = []

            def flat(*values: Any) -> tuple:
                taken, named = pytree.tree_unflatten(values, spec)
                results, shape = pytree.tree_flatten(fn(*taken, **named))
                specs[:] = [shape]
                return tuple(results)

            compilers = (fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler)
            kept.append(aot_module_simplified(flat, leaves, *compilers))
            kept.append(specs[0])
        return pytree.tree_unflatten(kept[0](*leaves), kept[1])

    return call


def aot_autograd(**options: Any) -> Callable[..., Any]:
    """A backend of ``torch.compile`` from compilers of aten graphs, see `aot_module_simplified`.

    >>> from tensorflow_lite_clone._dynamo.backends.common import aot_autograd
    >>> def compiler(gm, example_inputs):
    ...     print([str(node.target) for node in gm.graph.nodes if node.op == "call_function"])
    ...     return gm.forward
    >>> x = torch.ones(2, requires_grad=True)
    >>> y = torch.compile(lambda x: x.sin(), backend=aot_autograd(fw_compiler=compiler))(x)
    ['aten.sin.default']
    ['aten.cos.default', 'aten.mul.Tensor']
    """

    def backend(gm: Any, example_inputs: list[Any], **others: Any) -> Callable[..., Any]:
        return aot_module_simplified(gm.forward, example_inputs, **options)

    return backend
