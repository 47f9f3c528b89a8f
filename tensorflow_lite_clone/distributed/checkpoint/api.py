"""The error of saves and loads, as ``torch.distributed.checkpoint.api``."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]

Failure = tuple[BaseException, traceback.StackSummary]


class CheckpointException(BaseException):
    """A save or a load has failed; every process raises it.

    `failures` maps the numbers of the processes that failed to what they raised and where. Like
    PyTorch's, it is not an `Exception`.
    """

    def __init__(self, msg: str, failures: dict[int, Failure]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, Failure]:
        """Number of the process -> its error, and the calls that led there."""
        return self._failures

    def __str__(self) -> str:
        lines = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, calls) in self._failures.items():
            lines.append(f"Traceback (most recent call last): (RANK {rank})\n")
            lines += calls.format()
            lines += traceback.format_exception_only(type(error), error)
        return "".join(lines)
