"""Tensors sent between the devices of one process, as ``torch.nn.parallel.comm``.

Devices are named as everywhere, or by their index among the GPUs; without a GPU asking for one
raises an error that says what is missing, and the CPU is refused with ValueError as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.parallel.scatter_gather import device_of
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor.tensor import Tensor

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]

_Devices = Iterable[int | str | Device]


def _gpu(device: int | str | Device | None) -> Device:
    """A device that is not the CPU; None is the current GPU."""
    found = Device("cuda") if device is None else device_of(device)
    if found.type == "cpu":
        raise ValueError(f"Expected a non cpu device, but got: {found}")
    return found


def _expect_one(**choices: Any) -> None:
    """RuntimeError unless one of the two arguments is given."""
    if sum(value is not None for value in choices.values()) != 1:
        seen = " and ".join([f"{name}={value}" for name, value in choices.items()])
        raise RuntimeError(
            f"Exactly one of {' and '.join(map(repr, choices))} must be specified, but got {seen}"
        )


def broadcast(
    tensor: Tensor, devices: _Devices | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """`tensor` on each of the devices, or written into each tensor of `out`.

    RuntimeError unless one of the two is given.
    """
    _expect_one(devices=devices, out=out)
    if devices is not None:
        return tuple([tensor.to(_gpu(device)) for device in devices])
    return _written(out or (), [tensor] * len(out or ()))


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: _Devices, buffer_size: int = 10485760
) -> tuple[tuple[Tensor, ...], ...]:
    """Several tensors on each of the devices: one tuple per device. `buffer_size` is accepted."""
    return tuple([tuple([x.to(_gpu(device)) for x in tensors]) for device in devices])


def reduce_add(inputs: Sequence[Tensor], destination: int | str | Device | None = None) -> Tensor:
    """The sum of tensors of one shape that are on several GPUs, on one of them.

    Without `destination` it is the current GPU. AssertionError for a tensor on the CPU, ValueError
    for shapes that differ.
    """
    first, *others = inputs
    for index, x in enumerate(inputs):
        if x.device.type == "cpu":
            raise AssertionError(
                f"reduce_add expects all inputs to be on GPUs, but input {index} is on CPU"
            )
        if x.shape != first.shape:
            raise ValueError(
                f"input {index} has invalid size: got {list(x.shape)}, but expected "
                f"{list(first.shape)}"
            )
    device = _gpu(destination)
    total = first.to(device, copy=True)
    for x in others:
        total = total + x.to(device)
    return total


def reduce_add_coalesced(
    inputs: Iterable[Sequence[Tensor]],
    destination: int | str | Device | None = None,
    buffer_size: int = 10485760,
) -> tuple[Tensor, ...]:
    """`reduce_add` of the first tensors of all devices, of the second ones, and so on.

    `inputs` has a sequence per device; `buffer_size` is accepted.
    """
    return tuple([reduce_add(column, destination) for column in zip(*inputs, strict=True)])


def scatter(
    tensor: Tensor,
    devices: _Devices | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """`tensor` cut along `dim`, a part per device, or a part written into each tensor of `out`.

    The parts are as long as `chunk_sizes` says, else about equally long; those of `out` are as long
    as its tensors. RuntimeError for both devices or sizes and `out`. `streams` are accepted.
    """
    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError(
                "'devices' and 'chunk_sizes' must not be specified when 'out' is, but got "
                f"devices={devices} and chunk_sizes={chunk_sizes}"
            )
        return _written(out, tensor.split([x.shape[dim] for x in out], dim))
    homes = [_gpu(device) for device in devices or ()]
    if chunk_sizes is None:
        parts = tensor.chunk(len(homes), dim)
    else:
        parts = tensor.split(list(chunk_sizes), dim)
    return tuple([part.to(device) for part, device in zip(parts, homes)])


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: int | str | Device | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Tensors of several devices joined along `dim`, on one device or written into `out`.

    Without `destination` it is the current GPU; "cpu" or -1 is the CPU. RuntimeError for both.
    """
    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is, but got {destination}"
            )
        return _written([out], [cat([x.to(out.device) for x in tensors], dim)])[0]
    device = Device("cuda") if destination is None else device_of(destination)
    return cat([x.to(device) for x in tensors], dim)


def _written(out: Sequence[Tensor], values: Sequence[Tensor]) -> tuple[Tensor, ...]:
    with no_grad():
        for target, value in zip(out, values, strict=True):
            target.copy_(value)
    return tuple(out)
