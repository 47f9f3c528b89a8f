"""How fast this machine can be at best: bytes copied and matrix products in a second, measured.

An op's time is bounded from below by the bytes that it must move and by the operations that it must
do, each at its peak rate: the roofline model. Source: Williams, Waterman and Patterson, "Roofline:
an insightful visual performance model for multicore architectures" (2009).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.backends.cuda import matmul as cuda_matmul
from tensorflow_lite_clone.core import locks
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import bfloat16, float16, float32, float64
from tensorflow_lite_clone.core.files import whole_file
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.linalg.matmul import mm
from tensorflow_lite_clone.ops.precision import (
    get_float32_matmul_precision,
    set_float32_matmul_precision,
)
from tensorflow_lite_clone.utils.collect_env import get_env_info

#: The most seconds that one rate is measured for, and the most times.
_PATIENCE, _REPEATS = 0.25, 9
#: A product is made larger until it takes so many seconds, or has so many rows.
_LONG_ENOUGH, _LARGEST = 1e-2, 8192
#: What is copied; larger than caches. No more than this part of a GPU's free memory.
_COPIED, _PART = 1 << 27, 1 / 16

_known: dict[str, Roof] = {}
_measuring = locks.lock()


@dataclass(frozen=True)
class Roof:
    """The peak rates of a device; rates that could not be measured are NaN, or absent."""

    name: str
    copy_bytes_per_second: float = math.nan  # read and written
    #: By dtype, such as "float32"; "tf32" is float32 with rounded operands.
    flops: dict[str, float] = field(default_factory=dict)

    def flops_per_second(self, dtype: Any) -> float:
        """The peak rate for a dtype (or its name, or "tf32"): of float32 for one not measured.

        float32 means TF32 where ``backends.cuda.matmul.allow_tf32`` lets it be.
        """
        name = getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")
        if name == "float32" and "tf32" in self.flops and cuda_matmul.allow_tf32:
            name = "tf32"
        return self.flops.get(name, self.flops.get("float32", math.nan))

    def seconds(self, flops: float, bytes: float, dtype: Any = float32) -> float:
        """The time that is needed at the peak rates: the longer of those for `flops` and `bytes`.

        NaN if the rates are not known.
        """
        rates = (flops, self.flops_per_second(dtype)), (bytes, self.copy_bytes_per_second)
        times = [amount / rate if amount else 0.0 for amount, rate in rates]
        return math.nan if any(map(math.isnan, times)) else max(times)

    def share(self, seconds: float, flops: float, bytes: float, dtype: Any = float32) -> float:
        """Which part of `seconds` is needed at the peak rates: 1 is as fast as can be.

        NaN if no time has passed, or the rates are not known.
        """
        return self.seconds(flops, bytes, dtype) / seconds if seconds > 0 else math.nan


def roof(device: Any = None) -> Roof:
    """The peak rates of a device (by default the CPU), measured once for each machine.

    Measuring takes up to two seconds, draws no random numbers and gives its memory back. The result
    is kept in ``roof.json`` below ``$XDG_CACHE_HOME`` or ``~/.cache``, if it can be written. A
    device that cannot be measured now (its memory is full, its work is being captured) has rates
    that are NaN.
    """
    device = Device("cpu" if device is None else device)
    key, name = _identity(device)
    with _measuring:
        found = _known.get(key) or _read().get(key)
        if found is None:
            if device.type == "cuda" and cuda.is_current_stream_capturing():
                return Roof(name)
            try:
                found = Roof(name, *_measured(device))
            except (RuntimeError, MemoryError):
                return Roof(name)
            _write(found, key)
        _known[key] = found
    return found


def add_ideal_times(events: Iterable[Any]) -> None:
    """Note at events of a profile what time the peaks of their devices would allow."""
    roofs: dict[int | None, Roof] = {}
    for event in events:
        if (event.flops or event.bytes) and not event.is_meta:
            index = event.device_index
            peak = roofs.get(index)
            if peak is None:
                peak = roofs[index] = roof("cpu" if index is None else f"cuda:{index}")
            dtype = event.input_dtypes[0] if event.input_dtypes else float32
            seconds = peak.seconds(event.flops, event.bytes, dtype)
            event.ideal_time_total = 0.0 if math.isnan(seconds) else 1e6 * seconds


def _identity(device: Device) -> tuple[str, str]:
    """What rates depend on, as one text, and the device's name."""
    here = get_env_info()
    libraries = [f"{n} {here.libraries[n]}" for n in ("numpy", "cupy") if here.libraries[n]]
    if device.type == "cuda":
        name = cuda.get_device_name(device)
    else:
        name = here.cpu_info or device.type
        libraries.append(f"{here.num_threads} threads")
    return ", ".join([device.type, name, here.version, *libraries]), name


# -- measuring ------------------------------------------------------------------------------------


@no_grad()
def _measured(device: Device) -> tuple[float, dict[str, float]]:
    copied = _copy_rate(device)
    if device.type != "cuda":
        return copied, {dtype.name: _product_rate(dtype, device) for dtype in (float32, float64)}
    kinds = [("tf32", float32, True)]
    kinds += [(dtype.name, dtype, False) for dtype in (float32, float64, bfloat16, float16)]
    flops = {}
    precision = get_float32_matmul_precision()
    try:
        for name, dtype, rounded in kinds:
            set_float32_matmul_precision("high" if rounded else "highest")
            flops[name] = _product_rate(dtype, device)
    finally:
        set_float32_matmul_precision(precision)
        cuda.empty_cache()
    return copied, flops


def _copy_rate(device: Device) -> float:
    """Bytes in a second that are read and written by a copy."""
    size = _COPIED
    if device.type == "cuda":
        size = max(min(8 * size, int(cuda.mem_get_info(device)[0] * _PART)), 1 << 20)
    x = arange(size // 4, dtype=float32, device=device)
    y = empty(size // 4, dtype=float32, device=device)
    return 2 * size / _seconds(lambda: y.copy_(x), device)


def _product_rate(dtype: Any, device: Device) -> float:
    """Operations in a second of a product of square matrices that are large enough."""
    rows = 256
    while True:
        # not zeros: a GPU is faster with them than with anything else
        x = (arange(rows * rows, dtype=float32, device=device) * 0.618) % 1.0 - 0.5
        x = x.reshape(rows, rows).to(dtype)
        seconds = _seconds(partial(mm, x, x), device)
        if seconds >= _LONG_ENOUGH or rows >= _LARGEST:
            return 2 * rows**3 / seconds
        rows *= 2


def _seconds(call: Callable[[], Any], device: Device) -> float:
    """The median time of a call, after one that is not counted."""
    call()
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 3 or (len(times) < _REPEATS and time.perf_counter() - began < _PATIENCE):
        times.append(_timed(call, device))
    return statistics.median(times)


def _timed(call: Callable[[], Any], device: Device) -> float:
    if device.type != "cuda":
        began = time.perf_counter()
        call()
        return time.perf_counter() - began
    with cuda.device(device):
        first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        first.record()
        call()
        last.record()
        last.synchronize()
    return first.elapsed_time(last) / 1e3


# -- keeping --------------------------------------------------------------------------------------


def _path() -> str | None:
    """The file with the rates; None where there is no place for it."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.expanduser("~/.cache")
    path = os.path.join(folder, "tensorflow_lite_clone", "roof.json")
    return path if os.path.isabs(path) else None


def _read() -> dict[str, Roof]:
    """What has been kept and can be read."""
    path = _path()
    entries: Any = None
    if path is not None:
        with contextlib.suppress(OSError, ValueError, RecursionError), open(path, "rb") as file:
            entries = json.load(file)
    found = {}
    for key, entry in entries.items() if isinstance(entries, dict) else ():
        with contextlib.suppress(TypeError, ValueError, AttributeError):
            kept = Roof(**entry)
            if all([0 < rate < math.inf for rate in _rates(kept)]):
                found[key] = kept
    return found


def _rates(kept: Roof) -> list[float]:
    return [kept.copy_bytes_per_second, *kept.flops.values(), kept.flops.get("float32", math.nan)]


def _write(measured: Roof, key: str) -> None:
    """Keep it beside what is kept of other devices; in vain where nothing can be written."""
    path = _path()
    if path is None:
        return
    entries = {name: asdict(kept) for name, kept in (*_read().items(), (key, measured))}
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with whole_file(path) as file:  # at once, for processes beside this one
            json.dump(entries, file, indent=1)
