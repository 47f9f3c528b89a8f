"""Hooks on saved values: keep something else for backward (a copy elsewhere, a recipe)."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor

#: The (pack, unpack) pairs in force in any thread: one truth test tells that there are none.
active: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


class _Own(threading.local):
    """This thread's (pack, unpack) pairs, the innermost last, and why there must be none."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
        self.refusal: str | None = None
        #: Lists of saved storages that are packed at the end of a block; None outside of one.
        self.waiting: list[list] | None = None


_own = _Own()


class PackedValue:
    """What `pack` made of a saved value; stands in for its storage in a node."""

    __slots__ = ("_packed", "_unpack", "dtype", "shape", "version")

    root = None

    def __init__(self, tensor: Tensor) -> None:
        pack, self._unpack = _own.pairs[-1]
        storage = tensor._storage
        self.shape, self.dtype = storage.physical.shape, storage.physical.dtype
        self.version = (storage.root or storage).version  # for good: it cannot be written in place
        enabled, mode.grad = mode.grad, False
        try:
            self._packed = pack(tensor)
        finally:
            mode.grad = enabled

    @property
    def physical(self) -> Any:
        """The value, unpacked."""
        return self.storage().physical

    def storage(self) -> Storage:
        """The value's storage, unpacked."""
        tensor = self._unpack(self._packed)
        if not isinstance(tensor, Tensor):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor")
        return tensor._storage


def pack_all(saved: list) -> None:
    """Replace every saved storage by what this thread's innermost hooks make of it."""
    if _own.waiting is not None:
        _own.waiting.append(saved)
    elif _own.pairs:
        for position, storage in enumerate(saved):
            if storage is not None:
                saved[position] = PackedValue(new_tensor(storage))


@contextlib.contextmanager
def packing_last() -> Iterator[None]:
    """A block whose saved values are packed when it ends, for an op that writes after it ran.

    A hook may raise to stop the program, as checkpoints do once they have what they need; by then
    the op has to be done.
    """
    waiting: list[list] = []
    _own.waiting = waiting
    try:
        yield
    finally:
        _own.waiting = None
    for saved in waiting:
        pack_all(saved)


class saved_tensors_hooks:
    """Context manager: values saved inside are kept as ``pack(tensor)`` and come back through
    ``unpack(packed)`` when backward needs them."""

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self._hooks = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _own.refusal is not None:
            raise RuntimeError(_own.refusal)
        _own.pairs.append(self._hooks)
        active.append(self._hooks)

    def __exit__(self, *exception: object) -> None:
        active.remove(_own.pairs.pop())


class disable_saved_tensors_hooks:
    """Context manager: setting such hooks inside raises a RuntimeError with this message."""

    def __init__(self, error_message: str) -> None:
        self._message = error_message

    def __enter__(self) -> None:
        if _own.pairs:
            raise RuntimeError(self._message)
        self._previous, _own.refusal = _own.refusal, self._message

    def __exit__(self, *exception: object) -> None:
        _own.refusal = self._previous


class save_on_cpu(saved_tensors_hooks):
    """Context manager: values saved inside wait for backward in host memory.

    With `pin_memory` that of a CUDA device is page-locked, and the copies there and back take their
    turn on the current stream while the program goes on.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple:
            return tensor.device, tensor.to("cpu", non_blocking=pin_memory)

        def unpack(packed: tuple) -> Tensor:
            device, tensor = packed
            back: Tensor = tensor.to(device, non_blocking=pin_memory)
            return back

        super().__init__(pack, unpack)
