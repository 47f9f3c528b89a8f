"""Laying out what goes into a module and what comes out, where its parameters stay as they are."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh
from tensorflow_lite_clone.distributed.tensor._dtensor import DTensor
from tensorflow_lite_clone.distributed.tensor._layout import Layout
from tensorflow_lite_clone.distributed.tensor._moves import moved
from tensorflow_lite_clone.distributed.tensor.parallel.style import (
    TERMS,
    WHOLE,
    ParallelStyle,
    as_dtensor,
)
from tensorflow_lite_clone.distributed.tensor.placement_types import Placement, Replicate
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor

Layouts = Placement | tuple[Placement | None, ...] | None


def _listed(layouts: Layouts) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _laid_out(
    value: Any, layout: Placement | None, desired: Placement | None, local: bool, mesh: DeviceMesh
) -> Any:
    """A value that lies as `layout` says, as `desired`; what has no layout stays as it is."""
    if layout is None:
        return value
    assert isinstance(value, Tensor), "expecting input to be a torch.Tensor!"
    result = as_dtensor(value, mesh, (layout,))
    if desired == Replicate() and not local:
        # Layers that are cut each have a term of the gradient: they are added here, all at once.
        whole = moved(result._local_tensor, result._spec, WHOLE, TERMS)
        return DTensor(whole, Layout(mesh, WHOLE, result.shape, TERMS))
    if desired is not None:
        result = result.redistribute(placements=(desired,))
    return result.to_local() if local else result


def _all_laid_out(
    values: Any, layouts: Any, desired: Any, local: bool, mesh: DeviceMesh, what: str
) -> Any:
    listed = values if isinstance(values, tuple) else (values,)
    if len(listed) != len(layouts):
        raise ValueError(f"module {what}s and {what}_layouts should have same length!")
    found = [
        _laid_out(value, layout, target, local, mesh)
        for value, layout, target in zip(listed, layouts, desired)
    ]
    return found[0] if len(found) == 1 and not isinstance(values, tuple) else tuple(found)


class PrepareModuleInput(ParallelStyle):
    """Take a module's inputs to lie as `input_layouts`, and give them as `desired_input_layouts`.

    There is a layout for each positional argument, None for those to be left alone; for keyword
    arguments they are in dictionaries. The module gets `DTensor`s, or this process's parts with
    `use_local_output`.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _listed(input_layouts)
        self.desired_input_layouts = _listed(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            target = self.desired_input_layouts
            assert target is not None, "desired module inputs should not be None!"
            assert len(self.input_layouts) == len(target), (
                "input_layouts and desired_input_layouts should have same length!"
            )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        hook = partial(self._before, device_mesh)
        module.register_forward_pre_hook(hook, with_kwargs=True)
        return module

    def _before(self, mesh: DeviceMesh, module: Any, args: tuple, kwargs: dict) -> tuple:
        local, target = self.use_local_output, self.desired_input_kwarg_layouts
        if self.input_layouts is not None:
            layouts = self.input_layouts, self.desired_input_layouts
            args = _all_laid_out(args, *layouts, local, mesh, "input")
        kwargs = {
            name: _laid_out(
                value, self.input_kwarg_layouts.get(name), target.get(name), local, mesh
            )
            for name, value in kwargs.items()
        }
        return args, kwargs

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Take a module's outputs to lie as `output_layouts`; give them as `desired_output_layouts`."""

    def __init__(
        self,
        *,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts = _listed(output_layouts)
        self.desired_output_layouts = _listed(desired_output_layouts)
        self.use_local_output = use_local_output
        assert len(self.output_layouts) == len(self.desired_output_layouts), (
            "output_layouts and desired_output_layouts should have same length!"
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        module.register_forward_hook(partial(self._after, device_mesh))
        return module

    def _after(self, mesh: DeviceMesh, module: Any, inputs: tuple, outputs: Any) -> Any:
        layouts = self.output_layouts, self.desired_output_layouts
        return _all_laid_out(outputs, *layouts, self.use_local_output, mesh, "output")

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module."""

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Layouts,
        desired_output_layouts: Layouts,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        self.prepare_module_output._apply(module, device_mesh)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInputOutput({self.prepare_module_input!r}, "
            f"{self.prepare_module_output!r})"
        )
