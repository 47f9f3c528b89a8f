"""Weight normalisation by a hook before forward: the older form, as
``torch.nn.utils.weight_norm``. `parametrizations.weight_norm` is the newer one."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.ops.compat.native_forms import norm_except_dim
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def with_norms(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """`v` scaled so that its norms over all dimensions but `dim` (over all: -1) are `g`."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """The hook: sets a module's weight from its norms ``NAME_g`` and directions ``NAME_v``."""

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight of the module's present norms and directions."""
        g, v = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return with_norms(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace the module's parameter `name` by norms and directions; returns the hook."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of "
            "`torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=level_outside(),
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        norms = norm_except_dim(weight, 2, hook.dim).data
        delattr(module, name)
        module.register_parameter(f"{name}_g", Parameter(norms))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        for name in (self.name, f"{self.name}_g", f"{self.name}_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Learn a weight as norms times directions: ``w = g * v / |v|``.

    Salimans and Kingma, 2016, https://arxiv.org/abs/1602.07868. The norms are over all dimensions
    but `dim`, or over all with ``dim=None``. Before each forward the weight is computed from the
    parameters ``NAME_g`` and ``NAME_v``. Returns the module. Deprecated (FutureWarning) in favour
    of `parametrizations.weight_norm`.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`; ValueError if it has not been applied. Returns the module."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
