"""Steps that all processes do together, in which no failure leaves anybody waiting.

In each step a process does its part, and what it made, or how it failed, goes to the coordinator.
The coordinator does its part unless somebody failed, and everybody gets an answer: a value, or a
`CheckpointException` that names those who failed.
"""

from __future__ import annotations

import builtins
import contextlib
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorflow_lite_clone.distributed import distributed_c10d, objects
from tensorflow_lite_clone.distributed.checkpoint import _pickles
from tensorflow_lite_clone.distributed.checkpoint.api import CheckpointException, Failure


@dataclass(frozen=True)
class _Report:
    """How a process fared: a value, or the class and message of what it raised, and where."""

    value: Any = None
    error: tuple[str, str] | None = None
    calls: tuple[tuple[str, int, str, str], ...] = ()

    def failure(self) -> Failure:
        """What was raised, as far as it can be made again in another process."""
        name, message = self.error or ("", "")
        error: BaseException = RuntimeError(f"{name}: {message}")
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            with contextlib.suppress(TypeError):  # it may want other arguments
                error = kind(message)
        return error, traceback.StackSummary.from_list(list(self.calls))


_pickles.allow(_Report)


def _attempted(function: Callable[[], Any]) -> tuple[_Report, BaseException | None]:
    """How a call fared; what it raises, an interruption too, concerns the other processes."""
    try:
        return _Report(function()), None
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        calls = [
            (frame.filename, frame.lineno or 0, frame.name, frame.line or "") for frame in frames
        ]
        plain = len(error.args) == 1 and isinstance(error.args[0], str)
        message = error.args[0] if plain else str(error)  # a KeyError's text has quotes around it
        return _Report(None, (type(error).__name__, message), tuple(calls)), error


def _same(value: Any) -> Any:
    return value


class Exchange:
    """The processes of a group, of which one is the coordinator; without `use_dist`, this one.

    `coordinator_rank` is a number in the group. Values go between processes as in `_pickles`.
    """

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int = 0) -> None:
        self._group = group
        self._use_dist = use_dist
        self._coordinator = coordinator_rank if use_dist else 0
        self._pack = _pickles.dumps if use_dist else _same
        self._unpack = _pickles.loads if use_dist else _same
        self.rank = distributed_c10d.get_rank(group) if use_dist else 0
        self.size = distributed_c10d.get_world_size(group) if use_dist else 1
        self.is_coordinator = self.rank == self._coordinator

    def reduce_scatter(
        self, step: str, local: Callable[[], Any], together: Callable[[list], list]
    ) -> Any:
        """What `together`, given the values of all, has for this process."""
        return self._do(step, local, lambda values: [self._pack(v) for v in together(values)])

    def all_reduce(
        self, step: str, local: Callable[[], Any], together: Callable[[list], Any]
    ) -> Any:
        """What `together` makes of the values of all, on every process."""
        return self._do(step, local, lambda values: [self._pack(together(values))] * self.size)

    def all_gather(self, step: str, local: Callable[[], Any]) -> list:
        """The values of all, on every process."""
        return self.all_reduce(step, local, _same)

    def _do(self, step: str, local: Callable[[], Any], answer: Callable[[list], list]) -> Any:
        report, own = _attempted(lambda: self._pack(local()))
        reports = self._gather(report)
        failed: dict[int, _Report] = {}
        answers: list[Any] = []
        if self.is_coordinator:
            failed = {rank: r for rank, r in enumerate(reports) if r.error is not None}
            if not failed:
                report, own = _attempted(lambda: answer([self._unpack(r.value) for r in reports]))
                answers = report.value
                failed = {} if own is None else {self.rank: report}
        failed, value = self._scatter(
            [(failed, None)] * self.size if failed else [({}, value) for value in answers]
        )
        if not failed:
            return self._unpack(value)
        failures = {rank: report.failure() for rank, report in failed.items()}
        if own is not None and self.rank in failures:
            failures[self.rank] = own, traceback.extract_tb(own.__traceback__)
        raise CheckpointException(step, failures) from own

    def _gather(self, report: _Report) -> list[_Report]:
        """The reports of all, on the coordinator."""
        if not self._use_dist:
            return [report]
        gathered: list[Any] = [b""] * self.size
        objects.gather_object(
            _pickles.dumps(report),
            gathered if self.is_coordinator else None,
            group=self._group,
            group_dst=self._coordinator,
        )
        return list(map(_pickles.loads, gathered)) if self.is_coordinator else []

    def _scatter(self, answers: list[tuple[dict, Any]]) -> tuple[dict[int, _Report], Any]:
        """The coordinator's answer for this process: who failed, and a value."""
        if not self._use_dist:
            return answers[0]
        received: list[Any] = [b""]
        objects.scatter_object_list(
            received,
            list(map(_pickles.dumps, answers)) if self.is_coordinator else None,
            group=self._group,
            group_src=self._coordinator,
        )
        return _pickles.loads(received[0])
