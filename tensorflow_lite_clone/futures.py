"""Results that come later, as ``torch.futures``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

__all__ = ["Future", "collect_all", "wait_all"]


class Future(Generic[T]):
    """A value or an exception that some thread sets once; others wait for it or hang on callbacks.

    `devices` is accepted: work on a device is ordered by its streams.
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._completed = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[Future[T]], None]] = []
        self._value: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._completed.is_set()

    def wait(self) -> T:
        """The value, once it is there; raises the exception that was set instead."""
        self._completed.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self) -> T:
        """The value, which must be there: RuntimeError otherwise."""
        if not self.done():
            raise RuntimeError("the Future has no value: it is not completed")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Complete with a value; RuntimeError the second time."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete with an exception, which `wait` and `value` raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._value, self._error = value, error
            self._completed.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call ``callback(self)`` at completion, or now where it is complete."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """A Future of ``callback(self)``; an exception there becomes a RuntimeError that has it."""
        following: Future[Any] = Future()

        def follow(future: Future[T]) -> None:
            try:
                value = callback(future)
            except Exception as error:
                text = f"Got the following error when running the callback: {_described(error)}"
                failure = RuntimeError(text)
                failure.__cause__ = error
                following.set_exception(failure)
            else:
                following.set_result(value)

        self.add_done_callback(follow)
        return following


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A Future of these futures that completes with the last of them, or with its first error."""
    collected: Future[list[Future[Any]]] = Future()
    left = len(futures)
    lock = threading.Lock()

    def count(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if not last:
            return
        errors = [future._error for future in futures if future._error is not None]
        if errors:
            collected.set_exception(errors[0])
        else:
            collected.set_result(list(futures))

    if not futures:
        collected.set_result([])
    for future in list(futures):
        future.add_done_callback(count)
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all futures, once they are there; raises the first exception."""
    return [future.wait() for future in collect_all(futures).wait()]
