"""`parallelize_module`: which module gets which style."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh
from tensorflow_lite_clone.distributed.tensor._layout import mesh_or_current
from tensorflow_lite_clone.distributed.tensor.parallel.style import ParallelStyle
from tensorflow_lite_clone.nn.modules.module import Module

Plan = ParallelStyle | dict[str, ParallelStyle]


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: Plan | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Cut a module's parameters over a mesh of one dimension, in place; returns the module.

    The plan is a style for the module, or a dictionary of styles by the dotted paths of modules in
    it, in which each name may be a pattern (``"layers.*.linear?"``). Parameters take the values
    that the process `src_data_rank` of the mesh has; None keeps each process's own. Optimizers are
    to be made afterwards: the parameters are others. Warns of paths that lead nowhere.
    """
    mesh = mesh_or_current(device_mesh)
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so "
            "this parallelize_module call will do nothing.",
            stacklevel=level_outside(),
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        for found in _matches(module, path):
            parallelize_module(found, mesh, style, src_data_rank=src_data_rank)
    return module


def _matches(module: Any, path: str) -> list[Module]:
    """The modules at a path of patterns."""
    if not path:
        return [module]
    pattern, _, rest = path.partition(".")
    children = [child for name, child in module.named_children() if fnmatch(name, pattern)]
    if not children:
        warnings.warn(
            f"Parallelize plan key '{path}' could not be resolved: no submodule matching token "
            f"'{pattern}' in module {module}, skipping this plan entry.",
            stacklevel=level_outside(),
        )
    return [found for child in children for found in _matches(child, rest)]
