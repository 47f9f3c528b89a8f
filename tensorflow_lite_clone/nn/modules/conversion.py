"""How a module's conversions and `load_state_dict` replace tensors: PyTorch's two global flags.

By default a parameter stays the object it is and gets other data, so that an optimizer goes on
with it. That needs data of the same kind: what moves to or from the device ``meta`` is replaced.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.attributes import _has_compatible_shallow_copy_type
from tensorflow_lite_clone.autograd.swap import swap_tensors
from tensorflow_lite_clone.tensor.parameter import Parameter
from tensorflow_lite_clone.tensor.tensor import Tensor
from tensorflow_lite_clone.tensor.uninitialized import UninitializedParameter

_overwrites = False
_swaps = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let conversions (`Module.to`, ``cuda()``, ``half()``, ...) make new parameters."""
    global _overwrites  # noqa: PLW0603  (a process has one)
    _overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions make new parameters; False unless it was set."""
    return _overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let conversions and `Module.load_state_dict` exchange each parameter with the new one.

    It stays the same object then, of whatever type and device the new one is; see
    `torch.utils.swap_tensors`. This goes before `set_overwrite_module_params_on_conversion`.
    """
    global _swaps  # noqa: PLW0603
    _swaps = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether parameters are exchanged with new ones; False unless it was set."""
    return _swaps


def _takes_data(tensor: Tensor, new: Tensor) -> bool:
    return not _overwrites and _has_compatible_shallow_copy_type(tensor, new)


def converted(parameter: Parameter, new: Tensor, name: str) -> Parameter:
    """The parameter that takes this one's place when it becomes `new`, most often itself.

    RuntimeError with its `name` if it cannot be exchanged.
    """
    if _swaps:
        _swap(parameter, Parameter(new, requires_grad=parameter.requires_grad), name)
        return parameter
    if _takes_data(parameter, new):
        parameter.data = new
        return parameter
    if isinstance(new, UninitializedParameter):
        return new
    return Parameter(new, requires_grad=parameter.requires_grad)


def converted_gradient(grad: Tensor, new: Tensor, name: str) -> Tensor:
    """The gradient that takes this one's place when it becomes `new`."""
    if _swaps:
        _swap(grad, new.requires_grad_(grad.requires_grad), f"{name}.grad")
        return grad
    if _takes_data(grad, new):
        grad.data = new
        return grad
    return new.requires_grad_(grad.requires_grad)


def _swap(tensor: Tensor, new: Any, name: str) -> None:
    try:
        swap_tensors(tensor, new)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error
