"""What the inputs and outputs of an exported program are, as ``torch.export.graph_signature``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument",
    "CustomObjArgument",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "SymBoolArgument",
    "SymFloatArgument",
    "SymIntArgument",
    "TensorArgument",
]


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A whole number of sizes, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A number of sizes, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A condition on sizes, by the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of TorchScript; there are none here."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that is the same at every call."""

    name: str
    value: Any


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
)


class InputKind(Enum):
    """What an input of the graph is to the program."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output of the graph is to the program."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclasses.dataclass
class InputSpec:
    """An input: `target` is the name of a parameter, buffer or constant in the module."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return _spec_text(self) + persistent


@dataclasses.dataclass
class OutputSpec:
    """An output: `target` is what it is written to, where it is no result of the program."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        return _spec_text(self)


def _spec_text(spec: InputSpec | OutputSpec) -> str:
    target = "" if spec.target is None else f" target='{spec.target}'"
    return f"{spec.arg.name}: {spec.kind.name}{target}"


def _user_values(specs: Sequence[InputSpec] | Sequence[OutputSpec], *kinds: Enum) -> tuple:
    """The names of arguments or results; their values where they are constants."""
    arguments = [spec.arg for spec in specs if spec.kind in kinds]
    return tuple([x.value if isinstance(x, ConstantArgument) else x.name for x in arguments])


@dataclasses.dataclass
class ExportBackwardSignature:
    """What the outputs of a backward pass are, where a graph has one."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of a graph, in their order.

    >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
    >>> print(program.graph_signature)
    <BLANKLINE>
    # inputs
    p_weight: PARAMETER target='weight'
    p_bias: PARAMETER target='bias'
    input: USER_INPUT
    <BLANKLINE>
    # outputs
    linear: USER_OUTPUT
    <BLANKLINE>
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple([s.target for s in self.input_specs if s.kind is kind and s.target])

    def _inputs_to(self, kind: InputKind) -> Mapping[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind and s.target}

    def _outputs_to(self, kind: OutputKind) -> Mapping[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind and s.target}

    @property
    def parameters(self) -> Collection[str]:
        """The names of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> Collection[str]:
        """The names of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> Collection[str]:
        """The names of the buffers that are in no state dictionary."""
        return tuple([s.target for s in self.input_specs if s.persistent is False and s.target])

    @property
    def lifted_tensor_constants(self) -> Collection[str]:
        """The names of the tensors that are neither parameters nor buffers nor arguments."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> Collection[str]:
        """Objects of TorchScript: none."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> Collection[Any]:
        """The names of the arguments; their values where they are constants."""
        return _user_values(self.input_specs, InputKind.USER_INPUT)

    @property
    def user_outputs(self) -> Collection[Any]:
        """The names of the results; their values where they are constants."""
        return _user_values(self.output_specs, OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The names of inputs -> of their parameters."""
        return self._inputs_to(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The names of inputs -> of their buffers."""
        return self._inputs_to(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The names of inputs -> of their constants."""
        return self._inputs_to(InputKind.CONSTANT_TENSOR)

    @property
    def inputs_to_lifted_custom_objs(self) -> Mapping[str, str]:
        """Objects of TorchScript: none."""
        return self._inputs_to(InputKind.CUSTOM_OBJ)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """The names of outputs -> of the buffers that they are written to."""
        return self._outputs_to(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """The names of outputs -> of the parameters that they are written to."""
        return self._outputs_to(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """The names of outputs -> of the arguments that they are written to."""
        return self._outputs_to(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """None: programs are exported without their backward passes."""
        return None

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """None: nothing depends on the order of assertions."""
        return None

    @property
    def input_tokens(self) -> Collection[str]:
        """None of them: effects are in the order of the graph."""
        return ()

    @property
    def output_tokens(self) -> Collection[str]:
        """None of them: effects are in the order of the graph."""
        return ()

    def replace_all_uses(self, old: str, new: str) -> None:
        """Call what is called `old` by another name."""
        specs: list[InputSpec | OutputSpec] = [*self.input_specs, *self.output_specs]
        for spec in specs:
            if spec.arg.name == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Callable[..., None]:
        """A hook for `GraphModule._set_replace_hook` that keeps names up to date."""

        def rename(old: Any, new: str, user: Any) -> None:
            if user.op == "output":
                self.replace_all_uses(old.name, new)
            if replace_inputs and old.op == "placeholder":
                self.replace_all_uses(old.name, new)

        return rename

    def __str__(self) -> str:
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
