"""Switches of the process: deterministic algorithms, threads, warnings; and names of types."""

from __future__ import annotations

import os
from typing import Any

from tensorflow_lite_clone.autograd.anomaly import is_anomaly_check_nan_enabled, set_detect_anomaly
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.compat.typed_storage import TypedStorage
from tensorflow_lite_clone.ops.compat.untyped_storage import UntypedStorage
from tensorflow_lite_clone.tensor import Tensor

_MODES = ("default", "warn", "error")


@public("torch", flat=True)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for algorithms that give the same result every time; TypeError unless `mode` is a bool.

    As in PyTorch on the CPU, `put_` without `accumulate` and `max_unpool` then raise RuntimeError,
    or warn if `warn_only`, and new memory is filled with NaN, or the largest integer, unless
    `utils.deterministic.fill_uninitialized_memory` is off. All else is deterministic there.
    """
    if not isinstance(mode, bool):
        raise TypeError(
            "_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not "
            f"{type(mode).__name__}"
        )
    flags.deterministic, flags.deterministic_warn_only = mode, bool(warn_only)


@public("torch")
def are_deterministic_algorithms_enabled() -> bool:
    """Whether deterministic algorithms were asked for."""
    return flags.deterministic


@public("torch")
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether they were asked for with `warn_only`."""
    return flags.deterministic_warn_only


@public("torch")
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """``"default"`` (0), ``"warn"`` (1) or ``"error"`` (2), as `use_deterministic_algorithms`.

    Raises TypeError or RuntimeError for anything else.
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


@public("torch")
def get_deterministic_debug_mode() -> int:
    """0: any algorithm; 1: deterministic ones, with warnings; 2: with errors."""
    if not flags.deterministic:
        return 0
    return 1 if flags.deterministic_warn_only else 2


class _Threads:
    """The number that was set; None where none was."""

    between: int | None = None


def _count(function: str, number: Any) -> int:
    if not isinstance(number, int):
        raise RuntimeError(f"{function} expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    return number


@public("torch", flat=True)
def set_num_threads(int: int, /) -> None:
    """How many threads an operation may use; RuntimeError unless positive."""
    import threadpoolctl

    flags.threads = _count("set_num_threads", int)
    threadpoolctl.threadpool_limits(flags.threads)


@public("torch")
def get_num_threads() -> int:
    """The number last set; before, ``OMP_NUM_THREADS`` or the number of processors."""
    return flags.threads


@public("torch", flat=True)
def set_num_interop_threads(int: int, /) -> None:
    """Kept, and without effect: one operation runs at a time. RuntimeError the second time."""
    number = _count("set_num_interop_threads", int)
    if _Threads.between is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _Threads.between = number


@public("torch")
def get_num_interop_threads() -> int:
    """The number last set, or the number of processors."""
    return _Threads.between or os.cpu_count() or 1


@public("torch")
def init_num_threads() -> None:
    """Nothing: threads are NumPy's."""


@public("torch")
def set_flush_denormal(mode: bool, /) -> bool:
    """False: NumPy keeps denormal numbers, and the switch is not supported."""
    return False


@public("torch", flat=True)
def set_warn_always(b: bool, /) -> None:
    """Kept: which warnings are repeated is the filters' matter. RuntimeError unless a bool."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    flags.warn_always = b


@public("torch")
def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was last given."""
    return flags.warn_always


@public("torch")
def set_anomaly_enabled(mode: bool, check_nan: bool | None = None) -> None:
    """Turn anomaly detection on or off; see `autograd.set_detect_anomaly`."""
    set_detect_anomaly(mode, is_anomaly_check_nan_enabled() if check_nan is None else check_nan)


@public("torch")
def typename(obj: Any, /) -> str:
    """``"torch.FloatTensor"`` for a tensor; else the qualified name of an object or of its type."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None) or ""
    return named.__qualname__ if module in ("", "builtins") else f"{module}.{named.__qualname__}"


@public("torch")
def is_storage(obj: Any, /) -> bool:
    """Whether an object is the memory of a tensor."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


@public("torch", "method")
def is_distributed(input: Tensor) -> bool:
    """False, as in PyTorch."""
    return False


@public("torch")
def is_vulkan_available() -> bool:
    """False."""
    return False


@public("torch")
def compiled_with_cxx11_abi() -> bool:
    """True, as in PyTorch; nothing here is compiled by C++."""
    return True


@public("method")
def reinforce(self: Tensor, reward: Any) -> Any:
    """Always a RuntimeError: removed, as in PyTorch; `torch.distributions` is in its place."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")
