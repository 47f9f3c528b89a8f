"""Exported programs (``torch.export``) as what the exporter of modules takes."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_lite_clone.export._symbolic import SymInt
from tensorflow_lite_clone.export.exported_program import ExportedProgram
from tensorflow_lite_clone.export.graph_signature import InputKind, OutputKind, TensorArgument
from tensorflow_lite_clone.onnx._dynamic import Dynamic


class Unpacked(NamedTuple):
    """A module with its arguments, the names of inputs and outputs, and what is dynamic."""

    module: Any
    args: tuple
    kwargs: dict[str, Any]
    input_names: list[str]
    output_names: list[str]
    dynamic: Dynamic


def unpacked(program: ExportedProgram, args: Any, kwargs: Any) -> Unpacked:
    """What a program says; its example inputs serve where no arguments are given.

    ValueError for a program that was saved without them.
    """
    if not args and not kwargs:
        if program.example_inputs is None:
            raise ValueError("export(): the exported program has no example inputs; give args")
        args, kwargs = program.example_inputs
    signature = program.graph_signature
    inputs = [
        spec.arg.name
        for spec in signature.input_specs
        if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)
    ]
    outputs = [
        spec.arg.name
        for spec in signature.output_specs
        if spec.kind is OutputKind.USER_OUTPUT and isinstance(spec.arg, TensorArgument)
    ]
    dynamic: Dynamic = {}
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in inputs:
            sizes = enumerate(node.meta["val"].shape)
            dynamic[node.name] = {dim: str(s) for dim, s in sizes if isinstance(s, SymInt)}
    are_names = len({*inputs, *outputs}) == len(inputs) + len(outputs)
    module = program.module(check_guards=False)
    return Unpacked(module, args, kwargs, inputs, outputs if are_names else [], dynamic)
