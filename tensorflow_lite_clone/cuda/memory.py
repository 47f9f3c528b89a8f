"""What the memory of a CUDA device is used for; figures are in bytes."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.cuda._devices import device_count, index_of, layer

_MIB = 1 << 20


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors occupy on a device; 0 without one."""
    return layer("memory").used_bytes(index_of(device)) if device_count() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors occupied since the first allocation or the last reset."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool holds, in use or not."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool held since the first allocation or the last reset."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count peaks from now on."""
    layer("memory").reset_peak(index_of(device))


def reset_max_memory_allocated(device: Any = None) -> None:
    """`reset_peak_memory_stats`, by its older name."""
    warnings.warn(
        "torch.cuda.reset_max_memory_allocated now calls torch.cuda.reset_peak_memory_stats, "
        "which resets /all/ peak memory stats.",
        FutureWarning,
        stacklevel=level_outside(),
    )
    reset_peak_memory_stats(device)


def memory_stats(device: Any = None) -> dict[str, int]:
    """The figures above under PyTorch's names; empty without a device."""
    if not device_count():
        return {}
    found = layer("memory").figures(index_of(device))
    return {
        "allocated_bytes.all.current": found["allocated"],
        "allocated_bytes.all.peak": found["max_allocated"],
        "reserved_bytes.all.current": found["reserved"],
        "reserved_bytes.all.peak": found["max_reserved"],
        "inactive_split.all.current": found["free_blocks"],
    }


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes free on the device and bytes it has, whoever uses them."""
    found = layer("memory").figures(index_of(device))
    return found["free"], found["total"]


def empty_cache() -> None:
    """Give memory that the pools hold and no tensor uses back; nothing without a device."""
    for backend in backends.loaded():
        if backend.device.type == "cuda":
            layer("runtime").settle()
            layer("memory").release(backend.device.index)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as a table, in MiB."""
    index = index_of(device)
    found = layer("memory").figures(index)
    rows = [
        ("allocated by tensors", found["allocated"], found["max_allocated"]),
        ("held by the pool", found["reserved"], found["max_reserved"]),
    ]
    lines = [f"memory of cuda:{index} in MiB", f"{'':24}{'now':>12}{'peak':>12}"]
    lines += [f"{name:24}{now / _MIB:12.1f}{peak / _MIB:12.1f}" for name, now, peak in rows]
    lines.append(f"{'free on the device':24}{found['free'] / _MIB:12.1f}")
    lines.append(f"{'the device has':24}{found['total'] / _MIB:12.1f}")
    return "\n".join(lines)
