"""Modules called with one part of a batch each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.accelerator import device_index
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parallel._containers import tensors_in
from tensorflow_lite_clone.nn.parallel.scatter_gather import device_of

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[int | str | Device | None] | None = None,
) -> list[Any]:
    """What each module returns for its inputs (a tuple, or one), on its device.

    They are called one after the other by one thread: GPUs work at the same time all the same, as
    a call returns before the work it queued is done. By default the device is that of the inputs.
    An exception has a note that says in which replica it was raised.
    """
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    named = kwargs_tup or [{}] * len(modules)
    places = devices or [None] * len(modules)
    outputs = []
    for number, (module, given, kwargs, place) in enumerate(
        zip(modules, inputs, named, places, strict=True)
    ):
        positional = tuple(given) if isinstance(given, list | tuple) else (given,)
        device = _place_of((positional, kwargs)) if place is None else device_of(place)
        current = device.index if device is not None and device.type == "cuda" else None
        try:
            with device_index(current):
                outputs.append(module(*positional, **kwargs))
        except Exception as error:
            error.add_note(f"raised in replica {number} on device {device}")
            raise
    return outputs


def _place_of(arguments: Any) -> Device | None:
    tensors = tensors_in(arguments)
    return tensors[0].device if tensors else None
