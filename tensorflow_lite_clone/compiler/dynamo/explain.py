"""What ``torch._dynamo.explain`` says of a function: its graphs, and why there are several."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow_lite_clone.compiler.dynamo.function import Recorded
from tensorflow_lite_clone.compiler.dynamo.graphs import GraphCompileReason


class Guard(NamedTuple):
    """What a graph was made for, and is not used without."""

    name: str
    source: str
    create_fn: str
    code_list: list[str]

    def __str__(self) -> str:
        return (
            f"Name: {self.name!r}\n    Source: {self.source}\n"
            f"    Create Function: {self.create_fn}\n    Code List: {self.code_list}"
        )


class ExplainOutput:
    """The graphs of one call of a function, and the reasons for the breaks between them.

    `graphs` are the `GraphModule`s, `ops_per_graph` the functions that each calls, `break_reasons`
    have a ``reason`` and a ``user_stack`` each, `out_guards` say what the graphs depend on.
    """

    def __init__(
        self,
        graphs: list[Any],
        break_reasons: list[GraphCompileReason],
        out_guards: list[Guard],
        compile_times: str,
    ) -> None:
        self.graphs = graphs
        self.graph_count = len(graphs)
        self.graph_break_count = max(0, len(graphs) - 1)
        self.break_reasons = break_reasons
        self.ops_per_graph = [
            [node.target for node in gm.graph.nodes if node.op == "call_function"] for gm in graphs
        ]
        self.op_count = sum([len(ops) for ops in self.ops_per_graph])
        self.out_guards = out_guards
        self.compile_times = compile_times

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for number, each in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    Reason: {each.reason}", "    User Stack:"]
            lines += [f"      {frame}" for frame in each.user_stack]
        lines.append("Ops per Graph:")
        for number, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {number}:", *[f"    {op}" for op in ops]]
        lines.append("Out Guards:")
        for number, guard in enumerate(self.out_guards, 1):
            lines += [f"  Guard {number}:", f"    {guard}"]
        return "\n".join([*lines, f"Compile Times: {self.compile_times}", ""])


def guards_of(module: Any) -> list[Guard]:
    """What a graph depends on: how tensors are recorded, and what its inputs look like."""
    found = [Guard("", "global", kind, []) for kind in ("GRAD_MODE", "GLOBAL_STATE")]
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = node.meta["example_value"]
            code = f"check_tensor({node.target}, {value.dtype}, size={[*value.shape]}, "
            code += f"stride={[*value.stride()]}, requires_grad={value.requires_grad})"
            found.append(Guard(node.target, "local", "TENSOR_MATCH", [code]))
    return found


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Call ``explain(f)(*args)`` to see the graphs that `f` is compiled to for these arguments.

    The function runs once, on the arguments themselves. It gives an `ExplainOutput`, which prints
    as a report.

    >>> def f(x):
    ...     y = x.sin()
    ...     if y.sum() > 0:
    ...         return y + 1
    ...     return y
    >>> told = torch._dynamo.explain(f)(torch.ones(2))
    >>> told.graph_count, told.graph_break_count, told.break_reasons[0].reason
    (2, 1, 'Data-dependent branching')
    """

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        graphs: list[Any] = []

        def backend(module: Any, example_inputs: list[Any]) -> Any:
            graphs.append(module)
            return module.forward

        begun = time.perf_counter()
        Recorded(getattr(f, "_orig_mod", getattr(f, "_function", f)), backend)(*args, **kwargs)
        taken = time.perf_counter() - begun
        reasons = [gm.compile_subgraph_reason for gm in graphs]
        return ExplainOutput(
            graphs,
            [reason for reason in reasons if reason.graph_break],
            [guard for gm in graphs for guard in guards_of(gm)],
            f"TorchDynamo compilation metrics:\nFunction, Runtimes (s)\nexplain, {taken:.4f}",
        )

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
