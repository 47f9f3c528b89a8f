"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tensorflow_lite_clone.core.interception import enable_for
from tensorflow_lite_clone.core.torch_function import (
    ALL_DISABLED,
    active_modes,
    disabled,
    disabling,
    overrides,
    plain_types,
    state,
)
from tensorflow_lite_clone.tensor.tensor import Tensor


class _ParameterMeta(type):
    """The type of `Parameter`, which tells parameters of other kinds of tensors too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        marked = cls is Parameter and isinstance(instance, Tensor)
        return marked and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that is a module's parameter; it requires a gradient unless told otherwise.

    A parameter of a subclass of Tensor is an instance of that subclass, and of `Parameter` for
    `isinstance`. A kind of tensor that has `_as_parameter` says itself what its parameter is.
    RuntimeError if `detach` of a subclass gives another class, or if integers shall require a
    gradient.
    """

    __slots__ = ()

    __torch_function__ = disabled

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        convert: Callable[..., Parameter] | None = getattr(type(data), "_as_parameter", None)
        if convert is not None:
            return convert(data, requires_grad)
        if type(data) not in plain_types and overrides(type(data)):
            return _parameter_of(data, requires_grad)
        if active_modes and state.disabled < ALL_DISABLED:  # which see no part of it
            with disabling(ALL_DISABLED):
                return Parameter.__new__(cls, data, requires_grad)
        parameter: Parameter = _alias(cls, data)
        if requires_grad and parameter.dtype.kind not in "fc":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        parameter.requires_grad_(requires_grad)
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            clone = type(self)(self.data.clone(), self.requires_grad)
            memo[id(self)] = clone
        copied: Parameter = memo[id(self)]
        return copied

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


def _parameter_of(data: Any, requires_grad: bool) -> Parameter:
    """A parameter of the class of `data`, which overrides what functions do."""
    parameter = data.detach().requires_grad_(requires_grad)
    if type(parameter) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
            "detach() returns an instance of the same type, but it returned one of "
            f"{type(parameter).__name__}: let __torch_function__ keep the type for detach"
        )
    parameter._is_param = True
    return cast(Parameter, parameter)


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to it."""

    __slots__ = ()

    __torch_function__ = disabled

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        buffer: Buffer = _alias(cls, data)
        buffer.persistent = persistent
        return buffer


def _alias(cls: type, data: Tensor | None) -> Any:
    if data is None:
        data = Tensor()
    if cls not in plain_types:
        enable_for(cls)
    tensor: Any = object.__new__(cls)
    tensor._storage = data._storage
    tensor._edge = None
    tensor._view = None
    return tensor


plain_types.update((Parameter, Buffer))
