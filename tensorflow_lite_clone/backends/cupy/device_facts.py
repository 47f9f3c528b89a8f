"""What kernels are chosen by: facts of a device, asked for once."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from cupy.cuda import runtime


class Facts(NamedTuple):
    """What a device is."""

    name: str
    capability: int  # 90 for compute capability 9.0
    processors: int
    shared: int  # bytes of shared memory that a block may have


@cache
def facts(index: int) -> Facts:
    """The facts of device `index`."""
    found: dict[str, Any] = runtime.getDeviceProperties(index)
    return Facts(
        found["name"].decode(),
        10 * found["major"] + found["minor"],
        found["multiProcessorCount"],
        found["sharedMemPerBlockOptin"],
    )


def here() -> Facts:
    """The facts of the current device."""
    return facts(runtime.getDevice())
