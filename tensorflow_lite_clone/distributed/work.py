"""Communications under way, and how tensors of several processes become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any

from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.tensor import Tensor


class ReduceOp(Enum):
    """How the tensors of all processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


def seconds(timeout: timedelta | float | None, default: float) -> float:
    """A time limit as a number."""
    if timeout is None:
        return default
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


class Work:
    """A communication. This one is over; engines have subclasses for those under way."""

    def __init__(self, results: Sequence[Tensor] = ()) -> None:
        self._results = list(results)
        self._error: BaseException | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it is over, or on a GPU make the current stream wait.

        Raises RuntimeError if it has failed or is not over when `timeout` has passed.
        """
        return True

    def is_completed(self) -> bool:
        """Whether it is over."""
        return True

    def is_success(self) -> bool:
        """Whether it is over without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """The error that ended it, if one did."""
        return self._error

    def result(self) -> list[Tensor]:
        """The tensors that it wrote."""
        return self._results

    def source_rank(self) -> int:
        """For a receive, the number in the group of the process that sent."""
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv"
        )

    _source_rank = source_rank

    def get_future(self) -> Future[list[Tensor]]:
        """A Future of the tensors that it writes; its callbacks run where it is waited for."""

        def results() -> list[Tensor]:
            self.wait()
            return self.result()

        return _WhenWaited(results, self.is_completed)

    def block_current_stream(self) -> None:
        """Make the current stream wait."""
        self.wait()

    def synchronize(self) -> None:
        """Wait until it is over."""
        self.wait()


class _WhenWaited(Future):
    """A Future that is computed by who waits for it, in the order of his stream."""

    def __init__(self, compute: Callable[[], Any], ready: Callable[[], bool]) -> None:
        super().__init__()
        self._compute, self._ready = compute, ready

    def done(self) -> bool:
        return self._completed.is_set() or self._ready()

    def wait(self) -> Any:
        if not self._completed.is_set():
            compute, self._compute = self._compute, super().wait
            self._ready = self._completed.is_set  # as any Future from now on
            try:
                self.set_result(compute())
            except Exception as error:
                self.set_exception(error)
        return super().wait()

    def then(self, callback: Callable[[Future[Any]], Any]) -> Future[Any]:
        def follow() -> Any:
            self.wait()
            return callback(self)

        return _WhenWaited(follow, self.done)


class Followed(Work):
    """A work, and what is to be done once it is waited for."""

    def __init__(self, work: Work, finish: Callable[[], None], results: Sequence[Tensor]) -> None:
        super().__init__(results)
        self._work = work
        self._finish: Callable[[], None] | None = finish

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._work.wait(timeout)
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        return True

    def is_completed(self) -> bool:
        return self._work.is_completed()

    def exception(self) -> BaseException | None:
        return self._work.exception()

    def source_rank(self) -> int:
        return self._work.source_rank()
