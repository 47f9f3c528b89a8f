"""CUDA devices, as ``torch.cuda``.

Without CuPy or a GPU `is_available()` is False, and asking for a device raises an error that says
what is missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone._bind import names_of
from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.core.errors import OutOfMemoryError
from tensorflow_lite_clone.cuda import nccl, nvtx, profiler
from tensorflow_lite_clone.cuda._devices import device_count, index_of, layer
from tensorflow_lite_clone.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from tensorflow_lite_clone.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)
from tensorflow_lite_clone.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from tensorflow_lite_clone.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

mount_compat(__path__, __name__)

globals().update(names_of("cuda"))  # FloatTensor and its kin


def __getattr__(name: str) -> Any:
    if name in ("amp", "comm"):  # imported when named, as by scripts of old
        return import_module(f"{__name__}.{name}")
    if name == "default_generators":
        return tuple([backends.load(f"cuda:{index}").generator for index in range(device_count())])
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def is_available() -> bool:
    """Whether tensors can be put on a CUDA device."""
    return device_count() > 0


def is_initialized() -> bool:
    """Whether a CUDA device has been used."""
    return any(backend.device.type == "cuda" for backend in backends.loaded())


def init() -> None:
    """Load the current device's backend, which its first use would do as well."""
    backends.load("cuda")


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes in bfloat16: emulated, or from compute capability 8 on."""
    return including_emulation or get_device_capability()[0] >= 8


def current_device() -> int:
    """The index of the device that ``"cuda"`` means."""
    return layer("runtime").current_device()


def set_device(device: Any) -> None:
    """Make a device the one that ``"cuda"`` means; a negative index changes nothing."""
    if not (isinstance(device, int) and device < 0):
        layer("runtime").set_device(index_of(device))


class device:
    """Context in which ``"cuda"`` means this device; None or a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else device if isinstance(device, int) else index_of(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            self._previous = current_device()
            set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.idx >= 0:
            set_device(self._previous)


class device_of(device):
    """Context in which ``"cuda"`` means the device of a tensor, if that is a CUDA device."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_properties(device: Any = None) -> Any:
    """Name, compute capability, memory and multiprocessors of a device."""
    return layer("runtime").properties(index_of(device))


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device, major and minor."""
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """The architectures of the devices: kernels are compiled for what is there."""
    pairs = {get_device_capability(index) for index in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(pairs)]


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device reads another's memory directly."""
    return layer("runtime").can_access_peer(index_of(device), index_of(peer_device))


def synchronize(device: Any = None) -> None:
    """Wait for all work on a device."""
    layer("runtime").synchronize(index_of(device))


def ipc_collect() -> None:
    """Nothing: processes exchange tensors by copy."""


__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nccl",
    "nvtx",
    "profiler",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
__all__ += sorted(names_of("cuda"))  # noqa: PLE0605
