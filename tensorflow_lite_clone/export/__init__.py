"""Programs as graphs of aten's operations, saved and run without their source: ``torch.export``.

>>> class Model(torch.nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.linear = torch.nn.Linear(3, 2)
...     def forward(self, x, scale):
...         return torch.relu(self.linear(x)) * scale
>>> batch = torch.export.Dim("batch", min=2)
>>> program = torch.export.export(
...     Model(), (torch.ones(4, 3), torch.ones(2)), dynamic_shapes={"x": {0: batch}, "scale": None}
... )
>>> [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
['aten.linear.default', 'aten.relu.default', 'aten.mul.Tensor']
>>> program.range_constraints
{s77: VR[2, int_oo]}
>>> program.module()(torch.ones(5, 3), torch.ones(2)).shape
torch.Size([5, 2])

The module runs on tensors without values (see `_capture`): what it does cannot depend on them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.export import _decompose, exported_program, graph_signature  # noqa: F401
from tensorflow_lite_clone.export._archive import load, save
from tensorflow_lite_clone.export._decompositions import CustomDecompTable
from tensorflow_lite_clone.export._errors import UserError
from tensorflow_lite_clone.export._trace import traced_program
from tensorflow_lite_clone.export.dynamic_shapes import (
    AdditionalInputs,
    Constraint,
    Dim,
    ShapesCollection,
    dims,
)
from tensorflow_lite_clone.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
    default_decompositions,
)
from tensorflow_lite_clone.export.graph_signature import (
    ExportBackwardSignature,
    ExportGraphSignature,
)
from tensorflow_lite_clone.export.unflatten import (
    FlatArgsAdapter,
    UnflattenedModule,
    unflatten,
)
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.utils._pytree import register_pytree_node

mount_compat(__path__, __name__)

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "exported_program",
    "export",
    "graph_signature",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]


def export(
    mod: Module,
    args: tuple,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The graph of what a module does for example arguments, with all that it needs to run.

    `args` is a tuple, `kwargs` a mapping; both may be nested (dictionaries, lists, named tuples,
    registered dataclasses). `dynamic_shapes` says which dimensions may have other sizes: it has
    the structure of the arguments, by name or in their order, with a mapping {dimension: `Dim`} or
    a sequence of `Dim` for each tensor; all other sizes, and numbers, are fixed. Shapes follow from
    symbols: conditions on sizes become guards, which narrow the range of ``Dim.AUTO``.
    `preserve_module_call_signature` names submodules that `unflatten` shall call as they were
    called. A `strict` export runs the module in the same way.

    Raises ValueError for what is no `Module`, `UserError` for dynamic shapes of another structure
    and for dimensions that the module fixes, ``GuardOnDataDependentSymNode`` for control flow on
    values of tensors, and what the module itself raises.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}"
        )
    kwargs = dict(kwargs or {})
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    return traced_program(mod, args, kwargs, dynamic_shapes, preserve_module_call_signature)


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let instances of a dataclass be arguments and results of exported programs.

    Its fields are the children; those that are None are left out. `serialized_type_name` is what
    files call the class: by default its module and name. AssertionError for what is no dataclass.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Pair:
    ...     left: torch.Tensor
    ...     right: torch.Tensor
    >>> torch.export.register_dataclass(Pair)
    """
    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    fields = [each.name for each in dataclasses.fields(cls)]

    def flatten(value: Any) -> tuple[list[Any], Any]:
        given = [name for name in fields if getattr(value, name) is not None]
        missing = [name for name in fields if name not in given]
        return [getattr(value, name) for name in given], [given, missing]

    def unflatten_fields(children: Any, context: Any) -> Any:
        given, missing = context
        return cls(**dict(zip(given, children)), **dict.fromkeys(missing))

    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    register_pytree_node(cls, flatten, unflatten_fields, serialized_type_name=name)
