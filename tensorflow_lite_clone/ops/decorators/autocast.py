"""Autocast: a layer above public functions, as in PyTorch.

A function that is on one of the lists (`autocast_lists`) is wrapped where it is collected: by
`public`, by the machinery of pointwise functions and reductions, or by `autocasts`. Under autocast
the wrapper casts the function's tensors before the function looks at them, and turns autocast off
for what the function calls inside. A function that is on no list runs as it is, and what it calls
is cast. Without an open block a wrapper costs one truth test.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core import public
from tensorflow_lite_clone.core.dtypes import DType, bfloat16, float16, float32, float64
from tensorflow_lite_clone.core.forwarding import forwarder
from tensorflow_lite_clone.ops.decorators.autocast_lists import policies_of
from tensorflow_lite_clone.ops.pointwise._operands import cast, cast_weight
from tensorflow_lite_clone.tensor import Tensor

#: Not empty while autocast is on in some thread: the thread's state is asked for only then.
active: list[None] = []

#: Device type -> the dtype of a block that names none.
DEFAULT_DTYPES = {"cuda": float16, "cpu": bfloat16}


class _State(threading.local):
    """What autocast does in this thread."""

    def __init__(self) -> None:  # called once per thread
        #: The device types that it is on for, with their dtypes.
        self.dtypes: dict[str, DType] = {}
        #: The dtype of every device type, whether it is on or not.
        self.chosen = dict(DEFAULT_DTYPES)
        self.caching = True
        self.depth = 0
        #: The device type for which tensors on `meta` stand while calls are tried with them.
        self.meta_as = "meta"
        #: Casts of leaves, kept until the outermost block ends: id -> (leaf, cast).
        self.cache: dict[int, tuple[Any, Any]] = {}


state = _State()

_CONVOLUTIONS = ("conv2d", "convolution")


@contextlib.contextmanager
def meta_counts_as(device_type: str) -> Iterator[None]:
    """A block that does with tensors on `meta` what autocast does with those of a device type."""
    before, state.meta_as = state.meta_as, device_type
    try:
        yield
    finally:
        state.meta_as = before


def set_dtypes(dtypes: dict[str, DType]) -> None:
    """Let autocast be on in this thread for exactly these device types."""
    if dtypes and not state.dtypes:
        active.append(None)
    elif state.dtypes and not dtypes:
        active.pop()
    state.dtypes = dtypes


def snapshot() -> tuple:
    """What `restore` sets again: for which device types autocast is on, dtypes, and caching."""
    return state.dtypes, dict(state.chosen), state.caching


def restore(before: tuple) -> None:
    """Let autocast be in this thread as it was when `snapshot` was called, maybe in another."""
    dtypes, chosen, state.caching = before
    state.chosen = dict(chosen)
    set_dtypes(dtypes)


@contextlib.contextmanager
def resumed(before: tuple) -> Iterator[None]:
    """A block in which autocast is as it was at a `snapshot`; its casts are kept for it alone."""
    present, cache = snapshot(), state.cache
    restore(before)
    state.cache, state.depth = {}, state.depth + 1
    try:
        yield
    finally:
        state.cache, state.depth = cache, state.depth - 1
        restore(present)


#: What a function on a list does, see `forwarder`.
_CASTING = """
if active:
    return cast({args}, {kwargs})
{inner}
"""


def autocasts(*names: str) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: under autocast the function's tensors are cast as those of PyTorch's `names`.

    Of several names the first on a device's list counts. A function of none of the lists is given
    back as it is.
    """
    policies = policies_of(*names)

    def decorate(function: Callable[..., Any]) -> Any:
        if not policies:
            return function

        def call(args: tuple, kwargs: dict[str, Any]) -> Any:
            devices = _concerned(policies, (*args, *kwargs.values()))
            if not devices:
                return function(*args, **kwargs)
            if kwargs.get("out") is None:  # with it PyTorch casts nothing
                for device in devices:
                    args, kwargs = _CASTS[policies[device]](device, function, args, kwargs)
            dtypes = state.dtypes
            state.dtypes = {key: dtypes[key] for key in dtypes if key not in devices}
            try:
                return function(*args, **kwargs)
            finally:
                state.dtypes = dtypes

        casting = forwarder(function, _CASTING, lambda _: {"active": active, "cast": call})
        casting.autocast_policies = policies
        return casting

    return decorate


def uncast(function: Any) -> Any:
    """A function that is on a list without its layer: for one that PyTorch has on no list."""
    return function.__wrapped__


def calls_cast_operands(*names: str) -> Callable[[Any], Any]:
    """Decorator of a flat path that asks `active` and calls `cast_operands` itself."""

    def decorate(function: Any) -> Any:
        function.autocast_policies = policies_of(*names)
        return function

    return decorate


#: Rooms of the face whose functions PyTorch's dispatcher knows under longer names.
_PREFIXES = {"linalg": "linalg_", "fft": "fft_", "special": "special_"}


def _collected(function: Any, places: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """A public function, wrapped if one of its names is on a list."""
    if hasattr(function, "autocast_policies"):
        return function
    return autocasts(*[_PREFIXES.get(place, "") + name for place in places for name in names])(
        function
    )


public.on_public.append(_collected)


def cast_operands(function: Any, *operands: Any) -> tuple:
    """The operands of a function that `calls_cast_operands`, as autocast wants them."""
    policies = function.autocast_policies
    for device in _concerned(policies, operands):
        operands, _ = _CASTS[policies[device]](device, function, operands, {})
    return operands


def _concerned(policies: dict[str, str], values: tuple) -> list[str]:
    """The device types that autocast is on for, that have a policy, and that hold a tensor."""
    devices = [device for device in state.dtypes if device in policies]
    if devices:
        held = {_device_type(tensor) for tensor in _tensors(values)}
        devices = [device for device in devices if device in held]
    return devices


def _device_type(tensor: Tensor) -> str:
    kind = tensor.device.type
    return state.meta_as if kind == "meta" else kind


def _tensors(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [each for each in value if isinstance(each, Tensor)]
    return found


def _eligible(value: Any, device: str) -> bool:
    return (
        isinstance(value, Tensor)
        and value.dtype.kind == "f"
        and value.dtype is not float64
        and _device_type(value) == device
    )


def _all_to(
    dtype: DType, device: str, args: tuple, kwargs: dict, caster: Any = cast
) -> tuple[tuple, dict]:
    def to(value: Any) -> Any:
        if _eligible(value, device):
            return caster(value, dtype)
        if value.__class__ is tuple or value.__class__ is list:
            return value.__class__([to(each) for each in value])
        return value

    return tuple([to(value) for value in args]), {key: to(kwargs[key]) for key in kwargs}


def _lower(device: str, function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    convolves = function.__name__ in _CONVOLUTIONS
    caster = cast_weight if convolves else cast
    return _all_to(state.dtypes[device], device, args, kwargs, partial(_kept, caster))


def _float32(device: str, function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    return _all_to(float32, device, args, kwargs)


def _first_to_float32(device: str, function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The policies of functions with an optional dtype, which the call may have set."""
    if _given_dtype(function, args, kwargs) is not None:
        return args, kwargs
    if args:
        (first,), _ = _all_to(float32, device, args[:1], {})
        return (first, *args[1:]), kwargs
    word = next(iter(kwargs))
    return args, {**kwargs, **_all_to(float32, device, (), {word: kwargs[word]})[1]}


def _given_dtype(function: Any, args: tuple, kwargs: dict) -> Any:
    if "dtype" in kwargs or len(args) < 3:
        return kwargs.get("dtype")
    names = list(inspect.signature(function).parameters)
    return args[names.index("dtype")] if "dtype" in names[: len(args)] else None


def _promoted(device: str, function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    tensors = _tensors((*args, *kwargs.values()))
    found = {tensor.dtype for tensor in tensors if _eligible(tensor, device)}
    lower = state.dtypes[device]
    if float32 in found:
        return _all_to(float32, device, args, kwargs)
    if found - {lower}:
        raise RuntimeError(
            f"autocast to {lower} runs this function in the widest dtype of its tensors, and "
            f"expected {lower} and torch.float32, but found {', '.join(sorted(map(str, found)))}"
        )
    return args, kwargs


def _banned(device: str, function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    raise RuntimeError(
        "binary_cross_entropy and BCELoss are unsafe under autocast on CUDA: the logarithms of "
        "two-byte probabilities overflow. Use binary_cross_entropy_with_logits or "
        "BCEWithLogitsLoss without the sigmoid before it, or close autocast around the loss"
    )


_CASTS = {
    "lower_precision_fp": _lower,
    "fp32": _float32,
    "fp32_set_opt_dtype": _first_to_float32,
    "fp32_append_dtype": _first_to_float32,
    "promote": _promoted,
    "banned": _banned,
}


def _kept(caster: Callable[..., Any], x: Tensor, dtype: DType) -> Tensor:
    """A cast to the dtype of the block; those of parameters are made once a block."""
    leaf = x.is_leaf and x.requires_grad and x.dtype is float32
    if not (leaf and state.caching and mode.grad):
        return cast(x, dtype)
    kept = state.cache.get(id(x))
    if kept is None or kept[1].dtype is not dtype:
        own = caster if x.ndim == 4 else cast
        kept = state.cache[id(x)] = x, own(x, dtype)
    found: Tensor = kept[1]
    return found
