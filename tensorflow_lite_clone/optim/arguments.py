"""Checks of what an optimizer is given, and how the arguments that choose an implementation count.

There is one implementation for each optimizer here, so `foreach`, `fused` and `capturable` choose
nothing; but where PyTorch refuses them, so do we.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from tensorflow_lite_clone.autograd.mode import set_grad_enabled
from tensorflow_lite_clone.core.dtypes import DType, float32, float64, get_default_dtype
from tensorflow_lite_clone.ops.create.constructors import scalar_tensor
from tensorflow_lite_clone.ops.pointwise.complex_numbers import view_as_real
from tensorflow_lite_clone.tensor import Tensor

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Function = TypeVar("Function", bound=Callable[..., Any])


class _RequiredParameter:
    """The default of a hyperparameter that has none."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


#: How PyTorch's errors name hyperparameters, where not as the arguments.
_SPELLED = {"lr": "learning rate", "eps": "epsilon value"}


def check_hyperparameters(**values: Any) -> None:
    """Raise PyTorch's ValueError for the first hyperparameter that is out of range.

    That is an `lr` of several elements, one of the `betas` that is not in [0, 1), or any other that
    is negative.
    """
    check_one_element("lr", values["lr"])
    for name, value in values.items():
        if name == "betas":
            for index, beta in enumerate(value):
                if not 0.0 <= beta < 1.0:
                    raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        elif not value >= 0.0:
            raise ValueError(f"Invalid {_SPELLED.get(name, f'{name} value')}: {value}")


def check_one_element(name: str, value: Any) -> None:
    """Raise ValueError for a hyperparameter that is a tensor of several elements."""
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(f"Tensor {name} must be 1-element")


def check_foreach_tensors(foreach: bool | None, capturable: bool, **values: Any) -> None:
    """Raise ValueError for hyperparameters that PyTorch's `foreach` does not take as tensors."""
    for name, value in values.items():
        if isinstance(value, Tensor) and foreach and not capturable:
            raise ValueError(
                f"{name} as a Tensor is not supported for capturable=False and foreach=True"
            )


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raise RuntimeError for choices that exclude each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_choices(group: dict[str, Any], params: list[Tensor], counted: str) -> None:
    """Raise what PyTorch does when a step starts that its implementation cannot take.

    `counted` names the tensors that `capturable` wants beside the parameters.
    """
    foreach = group.get("foreach")
    if foreach and group.get("differentiable"):
        raise AssertionError("_foreach ops don't support autograd")
    if group.get("capturable"):
        devices = _get_capturable_supported_devices(supports_xla=not foreach)
        if any([param.device.type not in devices for param in params]):
            raise AssertionError(
                f"If capturable=True, {counted} must be on supported devices: {devices}."
            )
    if group.get("fused"):
        for param in params:
            if not param.is_floating_point():
                raise RuntimeError(
                    "`fused=True` requires all the params to be floating point Tensors of "
                    f"supported devices: {_get_fused_kernels_supported_devices()} but "
                    f"{param.dtype} and {param.device.type}"
                )


def new_count(param: Tensor, fused: bool | None = False, value: float = 0.0) -> Tensor:
    """A zero-dim tensor for a number that belongs to `param`, such as its steps, on its device."""
    dtype = _get_scalar_dtype(fused) if param.is_cpu else float32
    return scalar_tensor(value, dtype=dtype, device=param.device)


def _use_grad_for_differentiable(func: Function) -> Function:
    """A `step` that records what it does if the optimizer is `differentiable`, and else nothing."""

    @wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return func(self, *args, **kwargs)

    return step  # type: ignore[return-value]


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Which of PyTorch's implementations (fused, foreach) would serve these parameters."""
    if differentiable:
        return False, False

    def served(devices: list[str]) -> bool:
        return all([param is None or param.device.type in devices for param in params])

    fused = (
        use_fused
        and served(_get_fused_kernels_supported_devices())
        and all([param is None or param.is_floating_point() for param in params])
    )
    return fused, not fused and served(_get_foreach_kernels_supported_devices())


def _get_scalar_dtype(is_fused: bool | None = None) -> DType:
    """The dtype of step counts on the CPU."""
    return float64 if get_default_dtype() is float64 and not is_fused else float32


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace complex parameters, and what belongs to them, by their real views in the lists."""
    for i, param in enumerate(params):
        if param.is_complex():
            for entries in (params, *state_and_grads):
                entries[i] = view_as_real(entries[i])
