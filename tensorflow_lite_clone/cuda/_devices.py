"""The way to CuPy: loaded when a device is first needed, and missing with a reason."""

from __future__ import annotations

from importlib import import_module, util
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.errors import BackendUnavailableError

_CUPY = "tensorflow_lite_clone.backends.cupy"


def device_count() -> int:
    """How many CUDA devices can be used: 0 without CuPy, a driver or a GPU."""
    if util.find_spec("cupy") is None:
        return 0
    try:
        return import_module(_CUPY).device_count()
    except ImportError:  # CuPy is installed for another version of CUDA
        return 0


def layer(module: str) -> Any:
    """A module of the CuPy backend; BackendUnavailableError says what is missing."""
    if not device_count():
        backends.load("cuda")  # raises, with what is missing
        raise BackendUnavailableError("No CUDA GPUs are available")
    return import_module(f"{_CUPY}.{module}")


def index_of(device: Any = None) -> int:
    """The index of a CUDA device named in any way; None is the current one."""
    if device is None:
        return layer("runtime").current_device()
    if isinstance(device, int):
        return device if device >= 0 else layer("runtime").current_device()
    named = Device(device)
    if named.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {named}")
    return layer("runtime").current_device() if named.index is None else named.index
