"""Spectral normalisation by a hook before forward: the older form, as
``torch.nn.utils.spectral_norm``. `parametrizations.spectral_norm` is the newer one."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.nn.utils._largest_singular_value import (
    as_matrix,
    improve_left,
    improve_right,
    largest_singular_value,
    outputs_dim,
    random_direction,
)
from tensorflow_lite_clone.ops.linalg.svd import pinverse
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]


class SpectralNorm:
    """The hook: sets a module's weight to ``NAME_orig`` divided by its largest singular value.

    The buffers ``NAME_u`` and ``NAME_v`` approach the singular vectors of that value.
    """

    _version = 1  # since 1 the vector v is saved, and the weight is not

    def __init__(
        self,
        name: str = "weight",
        n_power_iterations: int = 1,
        dim: int = 0,
        eps: float = 1e-12,
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix with a row per entry of `dim`."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normalised weight, after some steps of the iteration if they are asked for."""
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            for _ in range(self.n_power_iterations):
                improve_right(matrix, u, v, self.eps)
                improve_left(matrix, u, v, self.eps)
        return weight / largest_singular_value(matrix, u, v)

    def remove(self, module: Module) -> None:
        """Make the normalised weight an ordinary parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    def _solve_v_and_rescale(self, weight_mat: Tensor, u: Tensor, target_sigma: Tensor) -> Tensor:
        """The `v` that iterates to `u`, of the length that makes ``u @ W @ v`` `target_sigma`."""
        v = pinverse(weight_mat.t().mm(weight_mat)) @ weight_mat.t().mv(u)
        return v * (target_sigma / u.dot(weight_mat.mv(v)))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Normalise the module's parameter `name`; returns the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        matrix = as_matrix(weight.detach(), dim)
        rows, columns = matrix.shape
        u = random_direction(rows, matrix, eps)
        v = random_direction(columns, matrix, eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # An attribute, not a parameter: the optimizer is to see the original alone.
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Lets a module load what was saved before `v` was."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        present = [key + suffix in state_dict for suffix in ("_orig", "_u", "_v")]
        if version is None and all(present) and key not in state_dict:
            return  # the present form, which only lost its metadata
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with no_grad():
            original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[f"{key}_v"] = fn._solve_v_and_rescale(matrix, u, sigma)


class SpectralNormStateDictHook:
    """Notes in a state_dict's metadata in which form a normalised weight was saved."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]
    ) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, estimated by power iteration.

    Miyato et al., 2018, https://arxiv.org/abs/1802.05957. The weight is a matrix with an entry of
    `dim` (1 for transposed convolutions, else 0) per row. Before each forward the weight is
    computed from the parameter ``NAME_orig``, in training mode after `n_power_iterations` more
    steps. Returns the module.
    """
    if dim is None:
        dim = outputs_dim(module)
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`; ValueError if it has not been applied. Returns the module."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number, entry in list(table.items()):
            kinds = (SpectralNormStateDictHook, SpectralNormLoadStateDictPreHook)
            if isinstance(entry, kinds) and entry.fn.name == name:
                del table[number]
    return module
