"""`autocast`, the switch of mixed precision, and its decorators for custom functions."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.decorators import autocast as casting
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor


class autocast:
    """Block, or decorator, in which ops choose their dtypes; as ``torch.autocast``.

    Matrix products, convolutions and attention run in `dtype` (float16 on CUDA devices, bfloat16 on
    the CPU, by default), ops that need range or precision in float32, all others in what they are
    given. Casts of parameters are made once a block with `cache_enabled`.
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in casting.DEFAULT_DTYPES:
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.device = device_type
        self.fast_dtype = casting.state.chosen[device_type] if dtype is None else dtype
        if enabled and self.fast_dtype not in (dtypes.float16, dtypes.bfloat16):
            raise RuntimeError(
                f"autocast computes in float16 or bfloat16, but dtype is {self.fast_dtype}"
            )
        self._enabled = enabled
        self._caching = casting.state.caching if cache_enabled is None else cache_enabled

    def __enter__(self) -> autocast:
        state = casting.state
        self._before = casting.snapshot()
        set_autocast_enabled(self.device, self._enabled)
        set_autocast_dtype(self.device, self.fast_dtype)
        state.caching = self._caching
        state.depth += 1
        return self

    def __exit__(self, *exception: object) -> None:
        state = casting.state
        state.depth -= 1
        if not state.depth:
            state.cache.clear()
        casting.restore(self._before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled, self._caching):
                return function(*args, **kwargs)

        return decorated


def is_autocast_available(device_type: str) -> bool:
    """Whether `autocast` knows the device type."""
    return device_type in casting.DEFAULT_DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether ops on the device type choose their dtypes now."""
    return device_type in casting.state.dtypes


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype of products in the present block, or of a block opened without naming one."""
    return casting.state.chosen[device_type]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """The dtype of products in blocks that do not name one."""
    casting.state.chosen[device_type] = dtype
    if device_type in casting.state.dtypes:
        casting.set_dtypes({**casting.state.dtypes, device_type: dtype})


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turn autocast on or off outside of any block."""
    dtypes = dict(casting.state.dtypes)
    dtypes.pop(device_type, None)
    if enabled:
        dtypes[device_type] = casting.state.chosen[device_type]
    casting.set_dtypes(dtypes)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept until the end of a block."""
    return casting.state.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep casts of parameters until the end of a block, or make them anew."""
    casting.state.caching = enabled


def clear_autocast_cache() -> None:
    """Forget casts of parameters."""
    casting.state.cache.clear()


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str = "cuda",
    cast_inputs: DType | None = None,
) -> Any:
    """Decorator of a custom function's ``forward``.

    Its ``backward`` will run under the same autocast (`custom_bwd`). With `cast_inputs` floating
    inputs are cast to that dtype, and autocast is off inside.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._autocast_dtype = get_autocast_dtype(device_type)
        ctx._autocast_enabled = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._autocast_enabled:
            return fwd(ctx, *args, **kwargs)
        ctx._autocast_enabled = False
        with autocast(device_type, enabled=False):
            converted = [_cast(value, device_type, cast_inputs) for value in args]
            named = {k: _cast(v, device_type, cast_inputs) for k, v in kwargs.items()}
            return fwd(ctx, *converted, **named)

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str = "cuda") -> Any:
    """Decorator of a custom function's ``backward``: autocast as it was in the forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *args: Any) -> Any:
        with autocast(device_type, ctx._autocast_dtype, ctx._autocast_enabled):
            return bwd(ctx, *args)

    return decorated


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    """Floating tensors of the device type, but float64 ones, in `dtype`; also in containers."""
    if isinstance(value, Tensor):
        eligible = value.dtype.kind == "f" and value.dtype is not dtypes.float64
        return cast(value, dtype) if eligible and value.device.type == device_type else value
    if isinstance(value, dict):
        return {k: _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(v, device_type, dtype) for v in value])
    return value


def autocast_increment_nesting() -> int:
    """One more block around: casts of parameters are kept until the outermost ends."""
    casting.state.depth += 1
    return casting.state.depth


def autocast_decrement_nesting() -> int:
    """One block less around."""
    casting.state.depth -= 1
    return casting.state.depth


def _deprecated(old: str, arguments: str, new: str) -> None:
    warnings.warn(
        f"torch.{old}({arguments}) is deprecated. Please use torch.{new} instead.",
        DeprecationWarning,
        stacklevel=level_outside(),
    )


def is_autocast_cpu_enabled() -> bool:
    """The older form of ``is_autocast_enabled("cpu")``."""
    _deprecated("is_autocast_cpu_enabled", "", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """The older form of ``set_autocast_enabled("cpu", enabled)``."""
    _deprecated("set_autocast_cpu_enabled", "enabled", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> DType:
    """The older form of ``get_autocast_dtype("cpu")``."""
    _deprecated("get_autocast_cpu_dtype", "", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: DType) -> None:
    """The older form of ``set_autocast_dtype("cpu", dtype)``."""
    _deprecated("set_autocast_cpu_dtype", "dtype", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> DType:
    """The older form of ``get_autocast_dtype("cuda")``."""
    _deprecated("get_autocast_gpu_dtype", "", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: DType) -> None:
    """The older form of ``set_autocast_dtype("cuda", dtype)``."""
    _deprecated("set_autocast_gpu_dtype", "dtype", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)
