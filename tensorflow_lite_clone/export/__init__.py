"""Programs as graphs of aten's operations, saved and run without their source: ``torch.export``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tensorflow_lite_clone.export import dynamic_shapes, exported_program, graph_signature
from tensorflow_lite_clone.export._archive import load, save
from tensorflow_lite_clone.export._codec import named_containers
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
    if not isinstance(mod, Module):
        raise ValueError(
            f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}."
        )
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

    register_pytree_node(cls, flatten, unflatten_fields)
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    named_containers[name] = cls
