"""Where storages are put: the tags that files carry, and `map_location`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.errors import BackendUnavailableError
from tensorflow_lite_clone.ops.compat.typed_storage import TypedStorage
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage
from tensorflow_lite_clone.serialization._rebuild import memory_of
from tensorflow_lite_clone.tensor import new_tensor

Tagger = Callable[[Any], "str | None"]
Restorer = Callable[[Any, str], Any]

_packages: list[tuple[int, Tagger, Restorer]] = []
_ELSEWHERE = (
    "If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Add a place where storages can be.

    ``tagger(storage)`` gives the tag that files carry, or None for storages of other places;
    ``deserializer(storage, location)`` puts a storage that was read to the place of that tag, or
    returns None when the tag is not its own. Those of lower `priority` are asked first.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The tag of the place that a storage is at, such as ``cpu`` or ``cuda:0``."""
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(
        f"don't know how to determine data location of torch.storage.{type(storage).__name__}"
    )


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, which is in host memory, at the place of a tag; RuntimeError for no such."""
    for _, _, restore in _packages:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        "don't know how to restore data location of "
        f"torch.storage.{type(storage).__name__} (tagged with {location})"
    )


def validate_cuda_device(location: str) -> int:
    """The index of the CUDA device of a tag; RuntimeError where there is no such device."""
    device = Device(location)
    try:
        backend = backends.load(device)
    except BackendUnavailableError as error:
        try:
            backends.load("cuda")
        except BackendUnavailableError:
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() "
                f"is False. {_ELSEWHERE}"
            ) from error
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {device.index} but there is no such "
            "device. Please use torch.load with map_location to map your storages to an existing "
            "device."
        ) from error
    return backend.device.index or 0


def validate_hpu_device(location: str) -> int:
    """RuntimeError: there are no such devices."""
    raise RuntimeError(f"The HPU device module is not registered. {_ELSEWHERE}")


def _tag(device_type: str | None) -> Tagger:
    """The tagger of storages on one type of device, or on any."""

    def tag(storage: Any) -> str | None:
        device = storage.device
        if device_type not in (device.type, None):
            return None
        return "cpu" if device.type == "cpu" else f"{device.type}:{device.index or 0}"

    return tag


def _restore_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _restore_cuda(storage: Any, location: str) -> Any:
    if not location.startswith("cuda"):
        return None
    return storage.cuda(validate_cuda_device(location))


def _restore_elsewhere(storage: Any, location: str) -> Any:
    if location.startswith("cpu"):
        return None
    try:
        device = backends.load(location).device
    except RuntimeError:  # no such device, or no name of one
        return None
    return UntypedStorage(new_tensor(memory_of(storage)).to(device))


register_package(10, _tag("cpu"), _restore_cpu)
register_package(20, _tag("cuda"), _restore_cuda)
register_package(30, _tag(None), _restore_elsewhere)


def mapper(map_location: Any) -> Restorer:
    """The function that puts a storage of the host to its place, for any form of the argument."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(
            storage, str(map_location.get(location, location))
        )
    if isinstance(map_location, (str, Device)):
        return lambda storage, location: default_restore_location(storage, str(map_location))

    def mapped(storage: Any, location: str) -> Any:
        result = map_location(storage, location)
        if result is None:
            return default_restore_location(storage, location)
        if not isinstance(result, (UntypedStorage, TypedStorage)):
            raise TypeError(
                f"map_location must give a storage or None, not {type(result).__name__}"
            )
        return result

    return mapped
