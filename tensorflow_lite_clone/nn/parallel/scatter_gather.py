"""Batches cut into one piece per device, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor.tensor import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def device_of(index: int | str | Device) -> Device:
    """A device, or the CUDA device of a number; -1 is the CPU."""
    if isinstance(index, int):
        return Device("cuda", index) if index >= 0 else Device("cpu")
    return Device(index)


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[int | str | Device], dim: int = 0) -> Any:
    """A list of inputs, one per device: tensors cut along `dim`, all else repeated.

    Tuples, lists and dictionaries are gone through. There are as many as there are pieces of the
    first tensor, at most one per device.
    """
    devices = [device_of(each) for each in target_gpus]

    def pieces(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            chunks = value.chunk(len(devices), dim)
            return [c.to(d) for c, d in zip(chunks, devices, strict=False)]
        if isinstance(value, tuple | list) and len(value):
            rows = zip(*map(pieces, value), strict=False)
            make = type(value)
            return [make(*row) if _is_named(value) else make(row) for row in rows]
        if isinstance(value, dict) and value:
            rows = zip(*[pieces(part) for part in value.values()], strict=False)
            return [type(value)(zip(value, row, strict=True)) for row in rows]
        return [value] * len(devices)

    return pieces(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[int | str | Device],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of positional and named arguments, as many of one as of the other."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(named))
    positional += [()] * (count - len(positional))
    named += [{}] * (count - len(named))
    return tuple(positional), tuple(named)


def gather(outputs: Sequence[Any], target_device: int | str | Device, dim: int = 0) -> Any:
    """The outputs of all devices on one (-1: the CPU), tensors joined along `dim`.

    Numbers without dimensions become a vector; None stays None.
    """
    device = device_of(target_device)

    def join(parts: Sequence[Any]) -> Any:
        first = parts[0]
        if isinstance(first, Tensor):
            flat = [part if part.ndim else part.reshape(1) for part in parts]
            return cat([part.to(device) for part in flat], dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any([len(part) != len(first) for part in parts]):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)([(key, join([part[key] for part in parts])) for key in first])
        columns = [join(column) for column in zip(*parts, strict=True)]
        return type(first)(*columns) if _is_named(first) else type(first)(columns)

    return join(outputs)
