"""Calls on tensors without values, to see what they would give."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from tensorflow_lite_clone.autograd.autocast import meta_counts_as
from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.forwarding import inner_parameters
from tensorflow_lite_clone.core.overridable import MODES_ALONE
from tensorflow_lite_clone.core.torch_function import ALL_DISABLED, disabling
from tensorflow_lite_clone.tensor import Tensor

_META = Device("meta")
_MOVES = {"cpu": "cpu", "cuda": "cuda"}


def _given(name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The device that a call names, or None."""
    if kwargs.get("device") is not None:
        return kwargs["device"]
    for value in args:
        if value.__class__ is Device:
            return value
        if name == "to" and value.__class__ is str:
            return value
    return _MOVES.get(name)


@functools.cache
def _parameters(function: Any) -> frozenset[str]:
    """The names of a public function's parameters."""
    try:
        own = inner_parameters(function)
    except (AttributeError, TypeError):  # Python's, such as operators
        return frozenset()
    return frozenset((*own.positional, *own.keywords))


def evaluate(
    form: str,
    target: Any,
    args: tuple,
    kwargs: dict[str, Any],
    tensors: list[tuple[Tensor, Device]],
) -> tuple[Any, Device]:
    """What a call on fakes gives, and the device that its new tensors would be on.

    `tensors` are the fakes among the arguments, with the devices of those for which they stand.
    """
    name = target if form == "call_method" else target.__name__
    given = _given(name, args, kwargs)
    if given is not None:
        device = Device(given)
        if name in _MOVES:
            form, target, args, kwargs = "call_method", "to", (args[0], _META), {}
        else:
            args = tuple([
                _META if value.__class__ is Device or (name == "to" and value.__class__ is str)
                else value for value in args
            ])  # fmt: skip
            if "device" in kwargs:
                kwargs = {**kwargs, "device": _META}
        moved = name in ("to", *_MOVES) and tensors[0][1] != device
    else:
        moved = False
        if tensors:
            larger = [device for fake, device in tensors if fake.ndim]
            device = larger[0] if larger else tensors[0][1]
            if name == "to" and len(tensors) > 1:
                device = tensors[1][1]
                moved = tensors[0][1] != device
        else:
            device = get_default_device()
            if callable(target) and "device" in _parameters(target):
                kwargs = {**kwargs, "device": _META}
        if name in MODES_ALONE:  # where tensors are data
            kwargs = {**kwargs, "device": _META}
    if moved and "copy" not in kwargs:
        kwargs = {**kwargs, "copy": True}
    with warnings.catch_warnings(), disabling(ALL_DISABLED), meta_counts_as(device.type):
        warnings.simplefilter("ignore")  # the graph warns
        if form == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs), device
        return target(*args, **kwargs), device
