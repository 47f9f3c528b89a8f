"""Programs as graphs of aten's operations, saved and run without their source: ``torch.export``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow_lite_clone.export import dynamic_shapes, exported_program, graph_signature
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
from tensorflow_lite_clone.nn.modules.module import Module


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
