"""Conditions that packages state in their code: ``torch._assert``, ``torch._check`` and its kin."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.ops.compat.symbols import SymBool
from tensorflow_lite_clone.ops.reduce.reductions import all as all_true
from tensorflow_lite_clone.tensor import Tensor

_Message = Callable[[], Any] | None


@public("torch", names=("_assert",))
def _assert(condition: Any, message: Any) -> None:
    """AssertionError with `message` unless `condition` is true."""
    if not condition:
        raise AssertionError(message)


@public("torch", names=("_assert_async",))
def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError with `assert_msg` unless the only element of `input` is nonzero."""
    if input.numel() != 1:
        many = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
    if not input.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


@public("torch", names=("_check_with",))
def _check_with(error_type: Any, cond: Any, message: _Message) -> None:
    """`error_type` with ``message()`` unless `cond`, a bool, is true; TypeError for no bool."""
    _expect_exception(error_type)
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use "
            "torch._check_tensor_all() to assert that all elements are true."
        )
    if not isinstance(cond, (bool, SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    holds = cond._expect_true() if isinstance(cond, SymBool) else cond
    _raise_unless(holds, error_type, message)


@public("torch", names=("_check_tensor_all_with",))
def _check_tensor_all_with(error_type: Any, cond: Any, message: _Message = None) -> None:
    """`error_type` with ``message()`` unless all elements of `cond`, a bool tensor, are true."""
    _expect_exception(error_type)
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.kind != "b":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _raise_unless(all_true(cond).item(), error_type, message)


@public("torch", names=("_check_is_size",))
def _check_is_size(i: Any, message: _Message = None, *, max: Any = None) -> None:
    """RuntimeError unless ``0 <= i``, and ``i <= max`` if there is one."""
    warnings.warn(
        "_check_is_size is deprecated. Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    _check_with(RuntimeError, i >= 0, message)
    if max is not None:
        _check_with(RuntimeError, i <= max, message)


def _expect_exception(error_type: Any) -> None:
    if not issubclass(error_type, Exception) or issubclass(error_type, Warning):
        raise AssertionError(f"error_type must be a type of exception, but got {error_type}")


def _raise_unless(cond: bool, error_type: Any, message: _Message) -> None:
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _export_check(name: str, error_type: type[Exception], check: Callable[..., None]) -> None:
    """``torch.<name>(cond, message=None)``: `check` with the exception that the name stands for."""

    def function(cond: Any, message: _Message = None) -> None:
        check(error_type, cond, message)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{check.__name__}` with {error_type.__name__}."
    export(function, "torch", name=name)


for _name, _error_type, _function in (
    ("_check", RuntimeError, _check_with),
    ("_check_index", IndexError, _check_with),
    ("_check_value", ValueError, _check_with),
    ("_check_type", TypeError, _check_with),
    ("_check_not_implemented", NotImplementedError, _check_with),
    ("_check_tensor_all", RuntimeError, _check_tensor_all_with),
):
    _export_check(_name, _error_type, _function)
