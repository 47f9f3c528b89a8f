"""What CuPy has no word for is computed on the host, which costs two copies: said once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cupy

from tensorflow_lite_clone.core.errors import level_outside

_warned: set[str] = set()


def on_host(function: Callable[..., Any], *arrays: Any, **parameters: Any) -> Any:
    """What a primitive of NumPy's gives for CUDA arrays, back on the device."""
    result = function(*[x.get() for x in arrays], **parameters)
    if isinstance(result, tuple):
        return tuple([cupy.asarray(part) for part in result])
    return cupy.asarray(result)


def on_host_with_warning(
    what: str, function: Callable[..., Any], *arrays: Any, **parameters: Any
) -> Any:
    """`on_host`, with a UserWarning the first time that `what` needs it."""
    if what not in _warned:
        _warned.add(what)
        warnings.warn(
            f"CuPy has no {what}: computed on the host, now and later",
            UserWarning,
            stacklevel=level_outside(),
        )
    return on_host(function, *arrays, **parameters)
