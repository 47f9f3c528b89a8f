"""Devices: a folder each, found by name and imported when the device is first used.

As ``torch.backends`` it also has PyTorch's modules of switches, which are no folders.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module, util
from types import ModuleType
from typing import Any

from tensorflow_lite_clone.backends import float32_precision
from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.errors import BackendUnavailableError
from tensorflow_lite_clone.core.late_bound import serves_device_type

mount_compat(__path__, __name__)

_FOLDERS = {"cpu": "numpy", "cuda": "cupy", "meta": "meta"}  # this package's device types
_LIBRARIES = {"numpy", "cupy", "numba"}  # folders whose names are not those of device types
_INSTALL = {
    "cuda": "For CUDA devices: pip install 'tensorflow_lite_clone[cuda12]' where the NVIDIA driver "
    "is one of CUDA 12, [cuda13] where it is one of CUDA 13.",
}
_factories: dict[str, Callable[[int], Backend]] = {}
_loaded: dict[tuple[str, int], Backend] = {}
_by_device: dict[object, Backend] = {}
_seeds: list[int] = []  # the last one that `seed_others` was given


def register(device_type: str, factory: Callable[[int], Backend]) -> None:
    """Make ``factory(index)`` the maker of `device_type`'s backends.

    Packages outside this one may instead name a factory in the entry-point group
    ``tensorflow_lite_clone.backends``.
    """
    _factories[device_type] = factory


def load(device: Device | str | int | None = None) -> Backend:
    """The backend of a device; None means the default device.

    Raises RuntimeError for a device type nobody serves, BackendUnavailableError (a RuntimeError)
    when its packages or hardware are missing.
    """
    if device is None:
        device = get_default_device()
    try:
        return _by_device[device]
    except (KeyError, TypeError):
        pass
    parsed = Device(device)
    factory = _factories.get(parsed.type) or _find(parsed.type)
    backend = factory(parsed.index if parsed.index is not None else -1)
    key = (parsed.type, backend.device.index or 0)
    if key not in _loaded:
        for accelerator in _LIBRARIES.intersection(backend.accelerators):  # their overrides
            import_module(f"{__name__}.{accelerator}")
        if _seeds:
            backend.generator.manual_seed(_seeds[0])
    backend = _loaded.setdefault(key, backend)
    if parsed.index is not None or backend.device.index is None:
        _by_device[device] = backend  # "cuda" alone is whichever device is current
    return backend


def loaded() -> list[Backend]:
    """The backends in use so far."""
    return list(_loaded.values())


def seed_others(seed: int) -> None:
    """Seed the default generators of all devices but the CPU, also of those first used later."""
    _seeds[:] = [seed]
    for (device_type, _), backend in _loaded.items():
        if device_type != "cpu":
            backend.generator.manual_seed(seed)


_SWITCHES = {"cpu", "mkl", "mkldnn", "nnpack", "openmp", "opt_einsum", "quantized"}


def __getattr__(name: str) -> Any:
    if name in ("cuda", "cudnn", "mps"):
        return import_module(f"{__name__}.{name}")
    if name in _SWITCHES or name == "__allow_nonbracketed_mutation":
        return getattr(import_module(f"{__name__}.other"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


@serves_device_type.provide
def _serves(device_type: str) -> bool:
    """Whether a device type is registered, has a folder or an entry point."""
    known = device_type in _FOLDERS or device_type in _factories
    return known or _has_folder(device_type) or bool(_entry_points(device_type))


def _has_folder(name: str) -> bool:
    if name in _LIBRARIES:
        return False
    found = util.find_spec(f"{__name__}.{name}")
    return found is not None and found.submodule_search_locations is not None


def _entry_points(device_type: str) -> Any:
    # Reading the installed packages' metadata is slow, so only for names unknown so far.
    from importlib.metadata import entry_points

    return entry_points(group="tensorflow_lite_clone.backends", name=device_type)


def _find(device_type: str) -> Callable[[int], Backend]:
    folder = _FOLDERS.get(device_type, device_type)
    module_name = f"{__name__}.{folder}"
    if device_type in _FOLDERS or _has_folder(device_type):
        try:
            module = import_module(module_name)
        except ModuleNotFoundError as error:
            if device_type not in _INSTALL or str(error.name).startswith(__package__):
                raise
            raise BackendUnavailableError(
                f"Torch not compiled with CUDA enabled\nThe package '{error.name}' is missing. "
                f"{_INSTALL[device_type]}"
            ) from None
        register(device_type, module.backend)
        return _factories[device_type]
    for entry_point in _entry_points(device_type):
        register(device_type, entry_point.load())
        return _factories[device_type]
    raise RuntimeError(
        f"Expected one of {', '.join(sorted(set(_FOLDERS) | set(_factories)))} device type at "
        f"start of device string: {device_type}"
    )


class _Module(ModuleType):
    """A module with an attribute that lives elsewhere."""

    fp32_precision = float32_precision.of("generic", "all")


sys.modules[__name__].__class__ = _Module
