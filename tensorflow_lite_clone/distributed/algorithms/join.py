"""Training on batches of unequal number, as ``torch.distributed.algorithms.join``.

In a world of one process nobody waits for another: the context runs what is in it, and at its end
the hooks for the end of all batches.
"""

from __future__ import annotations

from typing import Any, Self

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does when it has no batches left."""

    def main_hook(self) -> None:
        """Called while others still train: never, in a world of one."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when all have ended."""


class Joinable:
    """What can be trained inside `Join`; a subclass defines `join_hook`."""

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for one context."""
        raise NotImplementedError


class Join:
    """Context for a training loop over `joinables`, which are one or more.

    `enable` False leaves the hooks out; `throw_on_early_termination` changes nothing where no
    other process can end early. Keywords go to every `join_hook`.
    """

    def __init__(
        self,
        joinables: list[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._enable and kind is None:
            for hook in self._hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """Nothing to tell: None, as when the context is not enabled."""
