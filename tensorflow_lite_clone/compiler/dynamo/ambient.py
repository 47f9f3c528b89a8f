"""What besides its arguments a call depends on, as it was when the call was recorded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from tensorflow_lite_clone.amp.autocast_mode import _enter_autocast, _exit_autocast
from tensorflow_lite_clone.autograd.autocast import resumed, set_dtypes, snapshot
from tensorflow_lite_clone.autograd.autocast import state as autocast_state
from tensorflow_lite_clone.autograd.mode import _set_grad_enabled, mode
from tensorflow_lite_clone.core.dtypes import DType

_NOTHING: tuple = ()


class Ambient(NamedTuple):
    """Whether gradients are recorded, and for which device types autocast is on, as what.

    `depth` is how many blocks of autocast are open.
    """

    grad: bool
    casts: tuple[tuple[str, DType], ...]
    depth: int

    @classmethod
    def now(cls) -> Ambient:
        """As it is in this thread."""
        dtypes = autocast_state.dtypes
        return cls(
            mode.grad, tuple(dtypes.items()) if dtypes else _NOTHING, autocast_state.depth
        )

    def holds(self) -> bool:
        """Whether it is so in this thread."""
        if mode.grad is not self.grad or autocast_state.depth != self.depth:
            return False
        dtypes = autocast_state.dtypes
        return (tuple(dtypes.items()) if dtypes else _NOTHING) == self.casts

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A block in which it is so again."""
        grad, mode.grad = mode.grad, self.grad
        dtypes = autocast_state.dtypes
        set_dtypes(dict(self.casts))
        try:
            yield
        finally:
            set_dtypes(dtypes)
            mode.grad = grad


class Surroundings:
    """How gradients and autocast were in this thread when this was made."""

    def __init__(self) -> None:
        self._grad = mode.grad
        self._autocast = snapshot()

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """A block in which they are so again."""
        grad, mode.grad = mode.grad, self._grad
        try:
            with resumed(self._autocast):
                yield
        finally:
            mode.grad = grad


def change(
    before: Ambient, after: Ambient, outer: Ambient | None
) -> tuple[Any, tuple | None, Ambient]:
    """The first call that leads from one to the other: function, arguments, what is then.

    `outer` is what was before the innermost open block of autocast began, or None. The arguments
    are None for the call that ends this block.
    """
    if before[1:] != after[1:]:
        if outer is not None and after.depth <= outer.depth:
            return _exit_autocast, None, outer._replace(grad=before.grad)
        old, new = dict(before.casts), dict(after.casts)
        kinds = [kind for kind in {**old, **new} if old.get(kind) != new.get(kind)]
        kind = kinds[0] if kinds else next(iter(new), "cpu")
        arguments = (kind, new.get(kind), kind in new, None)
        if kind in new:
            old[kind] = new[kind]
        else:
            old.pop(kind, None)
        casts = after.casts if len(kinds) < 2 else tuple(old.items())
        return _enter_autocast, arguments, Ambient(before.grad, casts, after.depth)
    return _set_grad_enabled, (after.grad,), after
