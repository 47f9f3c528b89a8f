"""The device that is no CPU, whatever it is, as ``torch.accelerator``: here, CUDA.

Without a GPU `is_available` is False and `current_accelerator` None; what concerns a device raises
RuntimeError.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone import cpu, cuda
from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.errors import level_outside


def is_available() -> bool:
    """Whether there is an accelerator."""
    return cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Device | None:
    """``torch.device("cuda")``, or None without one."""
    return Device("cuda") if cuda.is_available() else None


def _index(device: Any) -> int:
    """The index of the accelerator that `device` names; None is the current one."""
    if not cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if device is None:
        return cuda.current_device()
    if isinstance(device, int):
        return device
    named = Device(device)
    if named.type != "cuda":
        raise ValueError(
            f"{named.type} doesn't match the current accelerator {current_accelerator()}."
        )
    return cuda.current_device() if named.index is None else named.index


def current_device_index() -> int:
    """The index of the device that ``"cuda"`` means."""
    return _index(None)


def set_device_index(device: Any, /) -> None:
    """Make a device the one that ``"cuda"`` means."""
    cuda.set_device(_index(device))


def current_device_idx() -> int:
    """The older name of `current_device_index`."""
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=level_outside())
    return current_device_index()


def set_device_idx(device: Any, /) -> None:
    """The older name of `set_device_index`."""
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=level_outside())
    set_device_index(device)


class device_index:
    """Context in which ``"cuda"`` means the device of this index; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            self._previous = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.idx is not None:
            set_device_index(self._previous)


def current_stream(device: Any = None, /) -> Any:
    """The current stream of a device."""
    return cuda.current_stream(_index(device))


def set_stream(stream: Any) -> None:
    """Make a stream the current one."""
    _index(None)
    cuda.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait for all work on a device."""
    cuda.synchronize(_index(device))


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What a device serves: here, the compute capability."""
    major, minor = cuda.get_device_capability(_index(device))
    return {"compute_capability": (major, minor)}


def empty_cache() -> None:
    """Give memory that no tensor uses back to the device."""
    _index(None)
    cuda.empty_cache()


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """The figures of a device's memory, sorted by name."""
    return OrderedDict(sorted(cuda.memory_stats(_index(device_index)).items()))


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Bytes free on a device, and bytes it has."""
    return cuda.mem_get_info(_index(device_index))


def _figure(function: Callable[..., Any]) -> Callable[..., Any]:
    def figure(device_index: Any = None, /) -> Any:
        return function(_index(device_index))

    figure.__name__ = figure.__qualname__ = function.__name__
    figure.__doc__ = f"`torch.cuda.{function.__name__}` of the accelerator."
    return figure


memory_allocated = _figure(cuda.memory_allocated)
max_memory_allocated = _figure(cuda.max_memory_allocated)
memory_reserved = _figure(cuda.memory_reserved)
max_memory_reserved = _figure(cuda.max_memory_reserved)
reset_peak_memory_stats = _figure(cuda.reset_peak_memory_stats)


def get_device_module(device: Any = None) -> Any:
    """The module of a device: ``torch.cuda`` or ``torch.cpu``.

    As ``torch.get_device_module``; None is the accelerator, or the CPU where there is none. Raises
    RuntimeError for other devices.
    """
    if not isinstance(device, (Device, str, type(None))):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    if device is None:
        default = get_default_device()
        named = default if default.type != "cpu" else current_accelerator() or default
    else:
        named = Device(device)
    modules = {"cuda": cuda, "cpu": cpu}
    if named.type not in modules:
        raise RuntimeError(
            f"Expected one of {', '.join(modules)} device type at start of device string: {device}"
        )
    return modules[named.type]


__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]
