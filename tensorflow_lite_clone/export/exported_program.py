"""`ExportedProgram`: a graph of aten's operations with all that it needs to run."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone.export._decompositions import CustomDecompTable
from tensorflow_lite_clone.export._guards import Expected, GuardsFn
from tensorflow_lite_clone.export._lifting import unlifted
from tensorflow_lite_clone.export._sizes import Symbol
from tensorflow_lite_clone.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
)
from tensorflow_lite_clone.fx import Graph, GraphModule
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Parameter, Tensor
from tensorflow_lite_clone.utils._pytree import TreeSpec

__all__ = [
    "ExportedProgram",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "default_decompositions",
]


@dataclasses.dataclass
class ModuleCallSignature:
    """The arguments and results of a call of a module, and how they are nested."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program, by its path; with a signature where its calls are preserved."""

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclasses.dataclass
class CallSpec:
    """How the arguments and results of a program are nested."""

    in_spec: TreeSpec | None
    out_spec: TreeSpec | None


class ExportedProgram:
    """What `export` gives: a graph whose inputs are the parameters, buffers and arguments.

    It is not called itself: `module` gives a module that is called as the exported one was.

    >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    >>> print(program.graph_module.code.strip())
    def forward(self, input):
        relu = torch.ops.aten.relu.default(input);  input = None
        return (relu,)
    >>> program.module()(torch.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    def __init__(
        self,
        root: Module | dict[str, Any],
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        range_constraints: dict[Any, Any],
        module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple, dict[str, Any]] | None = None,
        constants: dict[str, Any] | None = None,
        *,
        verifiers: Any = None,
        expected: list[Expected] | None = None,
        guards: list[tuple[Any, str, Any]] | None = None,
        symbols: list[Symbol] | None = None,
    ) -> None:
        self._graph_module = GraphModule(root, graph)
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._range_constraints = range_constraints
        self._module_call_graph = module_call_graph
        self._example_inputs = example_inputs
        self._constants = constants or {}
        self._expected = expected or []
        self._guards = guards or []
        self._symbols = symbols or []

    # ------------------------------------------------------------------------------------ reading

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph: its inputs are those of the signature, and its output a tuple."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the inputs and outputs are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters, and the buffers that modules save."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Other tensors: buffers that modules do not save, and constants."""
        return self._constants

    tensor_constants = constants

    @property
    def range_constraints(self) -> dict[Any, Any]:
        """The symbols of dynamic dimensions, with the sizes that these may have."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules of the program."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> tuple[tuple, dict[str, Any]] | None:
        """The arguments that the program was exported with."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: tuple[tuple, dict[str, Any]] | None) -> None:
        self._example_inputs = value

    @property
    def call_spec(self) -> CallSpec:
        """How the arguments and results are nested."""
        signature = self._module_call_graph[0].signature if self._module_call_graph else None
        if signature is None:
            return CallSpec(None, None)
        return CallSpec(signature.in_spec, signature.out_spec)

    @property
    def dialect(self) -> str:
        """What operations the graph is made of."""
        return "TRAINING"

    def parameters(self) -> Iterator[Parameter]:
        """The parameters in the order of the inputs."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names."""
        for name in self._graph_signature.parameters:
            yield name, self._state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers in the order of the inputs."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        unsaved = set(self._graph_signature.non_persistent_buffers)
        for name in self._graph_signature.buffers:
            yield name, (self._constants if name in unsaved else self._state_dict)[name]

    def value_of(self, kind: InputKind, target: str) -> Any:
        """The parameter, buffer or constant of an input."""
        found = self._state_dict.get(target) if kind is not InputKind.CONSTANT_TENSOR else None
        return self._constants[target] if found is None else found

    # ------------------------------------------------------------------------------------ running

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` "
            "instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that is called as the exported one, with its parameters and buffers.

        It has the modules' tree of names, and writes to its buffers as the program did. It raises
        ValueError for arguments of another structure and AssertionError for those that the program
        was not exported for (sizes, numbers), unless `check_guards` is off.
        """
        return unlifted(self, self.guards() if check_guards else None)

    def guards(self) -> GuardsFn:
        """What checks the arguments."""
        ranges = {str(symbol): each for symbol, each in self._range_constraints.items()}
        return GuardsFn(self._expected, ranges, self._guards)

    def run_decompositions(
        self, decomp_table: Any = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program in terms of fewer operations, none of which writes to memory.

        What the program writes to buffers and arguments becomes further outputs, before the
        others. `decomp_table` maps operations to functions that compose them of others; None is
        `default_decompositions`, an empty one leaves all operations that do not write.
        """
        return decomposers[0](self, decomp_table)

    def validate(self) -> None:
        """Raise where the signature is not that of the graph."""
        names = [node.name for node in self.graph.find_nodes(op="placeholder")]
        given = [spec.arg.name for spec in self._graph_signature.input_specs]
        if names != given:
            raise AssertionError(f"the inputs are {names}, their specs those of {given}")
        outputs = self.graph.output_node().args[0]
        specs = self._graph_signature.output_specs
        if len(outputs) != len(specs):
            raise AssertionError(f"there are {len(outputs)} outputs and {len(specs)} specs")
        for node, spec in zip(outputs, specs):
            if not isinstance(spec.arg, ConstantArgument) and node.name != spec.arg.name:
                raise AssertionError(f"output {node.name} has the spec of {spec.arg.name}")

    def __str__(self) -> str:
        text = self._graph_module.print_readable(
            print_output=False, include_stride=False, include_device=False
        )
        indented = [part.replace("\n", "\n    ") for part in (text, str(self._graph_signature))]
        return (
            f"ExportedProgram:\n    {indented[0]}\n"
            f"Graph signature: {indented[1]}\n"
            f"Range constraints: {self._range_constraints}\n"
        )

    __repr__ = __str__

    def __deepcopy__(self, memo: Any) -> ExportedProgram:
        made = object.__new__(ExportedProgram)
        memo[id(self)] = made
        for name, value in vars(self).items():
            setattr(made, name, copy.deepcopy(value, memo))
        return made


#: What decomposes a program by a table; entered by `_decompose`, which makes programs.
decomposers: list[Callable[[ExportedProgram, Any], ExportedProgram]] = []


def default_decompositions() -> CustomDecompTable:
    """Operation -> the function that composes it of fewer ones; for `run_decompositions`.

    >>> table = torch.export.default_decompositions()
    >>> del table[torch.ops.aten.linear.default]
    >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
    >>> "aten.linear.default" in str(program.run_decompositions(table).graph)
    True
    """
    return CustomDecompTable()
