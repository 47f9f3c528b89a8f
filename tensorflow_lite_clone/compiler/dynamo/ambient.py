"""What besides its arguments a call depends on, as it was when the call was recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from tensorflow_lite_clone.amp.autocast_mode import _enter_autocast, _exit_autocast
from tensorflow_lite_clone.autograd.mode import _set_grad_enabled, mode
from tensorflow_lite_clone.core.device import (
    Device,
    get_default_device,
    named_default_device,
    set_default_device,
)
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype, set_default_dtype
from tensorflow_lite_clone.ops.decorators.autocast import resumed, set_dtypes, snapshot
from tensorflow_lite_clone.ops.decorators.autocast import state as autocast_state

_NOTHING: tuple = ()


class Ambient(NamedTuple):
    """Whether gradients are recorded, for which device types autocast is on, as what, and defaults.

    `depth` is how many blocks of autocast are open, `dtype` and `device` are those of tensors that
    are made without one.
    """

    grad: bool
    casts: tuple[tuple[str, DType], ...]
    depth: int
    dtype: DType
    device: Device

    @classmethod
    def now(cls) -> Ambient:
        """As it is in this thread."""
        dtypes = autocast_state.dtypes
        return cls(
            mode.grad,
            tuple(dtypes.items()) if dtypes else _NOTHING,
            autocast_state.depth,
            get_default_dtype(),
            get_default_device(),
        )

    def holds(self) -> bool:
        """Whether it is so in this thread."""
        if (
            mode.grad is not self.grad
            or autocast_state.depth != self.depth
            or get_default_dtype() is not self.dtype
            or get_default_device() is not self.device
        ):
            return False
        dtypes = autocast_state.dtypes
        return (tuple(dtypes.items()) if dtypes else _NOTHING) == self.casts

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A block in which it is so again, as far as results of calls depend on it."""
        dtypes = autocast_state.dtypes
        with _switched(self.grad, self.dtype, self.device):
            set_dtypes(dict(self.casts))
            try:
                yield
            finally:
                set_dtypes(dtypes)


def _switches() -> tuple[bool, DType, Device | None]:
    return mode.grad, get_default_dtype(), named_default_device()


def _switch(grad: bool, dtype: DType, device: Device | None) -> None:
    mode.grad = grad
    set_default_dtype(dtype)
    set_default_device(device)


@contextlib.contextmanager
def _switched(grad: bool, dtype: DType, device: Device | None) -> Iterator[None]:
    """A block with other defaults, in which gradients are recorded or not."""
    before = _switches()
    _switch(grad, dtype, device)
    try:
        yield
    finally:
        _switch(*before)


class Surroundings:
    """How everything in `Ambient` was in this thread when this was made."""

    def __init__(self) -> None:
        self._switches, self._autocast = _switches(), snapshot()

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """A block in which it is so again."""
        with _switched(*self._switches), resumed(self._autocast):
            yield


def change(
    before: Ambient, after: Ambient, outer: Ambient | None
) -> tuple[Any, tuple | None, Ambient]:
    """The first call that leads from one to the other: function, arguments, what is then.

    `outer` is what was before the innermost open block of autocast began, or None. The arguments
    are None for the call that ends this block.
    """
    if before.dtype != after.dtype:
        return set_default_dtype, (after.dtype,), before._replace(dtype=after.dtype)
    if before.device != after.device:
        return set_default_device, (after.device,), before._replace(device=after.device)
    if before[1:3] != after[1:3]:
        if outer is not None and after.depth <= outer.depth:
            return _exit_autocast, None, before._replace(casts=outer.casts, depth=outer.depth)
        old, new = dict(before.casts), dict(after.casts)
        kinds = [kind for kind in {**old, **new} if old.get(kind) != new.get(kind)]
        kind = kinds[0] if kinds else next(iter(new), "cpu")
        arguments = (kind, new.get(kind), kind in new, None)
        if kind in new:
            old[kind] = new[kind]
        else:
            old.pop(kind, None)
        casts = after.casts if len(kinds) < 2 else tuple(old.items())
        return _enter_autocast, arguments, before._replace(casts=casts, depth=after.depth)
    return _set_grad_enabled, (after.grad,), before._replace(grad=after.grad)
