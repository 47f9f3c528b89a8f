"""Training on batches of unequal number, as ``torch.distributed.algorithms.join``.

A process without batches goes on taking part in the communications of the others, by the hooks of
what is trained, until none has batches left.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed.collectives import all_reduce
from tensorflow_lite_clone.distributed.work import Work
from tensorflow_lite_clone.ops.create.constructors import ones, zeros

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # batches, from which on the waste is worth a warning


class JoinHook:
    """What a process does when it has no batches left."""

    def main_hook(self) -> None:
        """Called for each batch of the others: takes part in what they communicate."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once when all have ended; `is_last_joiner`: this process was among the last."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """That of what is in no context."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """What can be trained inside `Join`.

    Where it first communicates in a batch it calls `Join.notify_join_context`.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for one context."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device on which the processes count each other."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group that trains."""


class Join:
    """Context for a training loop over `joinables`, which are one or more, of one group.

    `enable` False says that all have equally many batches. With `throw_on_early_termination` a
    process that has none left makes all of them raise RuntimeError. Keywords go to every
    `join_hook`.
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
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throws = throw_on_early_termination
        group = joinables[0].join_process_group
        if any([joinable.join_process_group is not group for joinable in joinables]):
            raise ValueError("Using join context manager with multiple process groups")
        self._group, self._device = group, joinables[0].join_device
        for number, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, number == 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if not self._enable or kind is not None:
            return
        batches = 0
        while self._count_others():
            if self._throws:
                self._tell_others()
            if batches == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank "
                    f"{self._group.rank()} has at least {_MANY} fewer inputs than other "
                    "currently-active ranks. This level of skew could lead to performance "
                    "degradation during training.",
                    stacklevel=level_outside(),
                )
            for hook in self._hooks:
                hook.main_hook()
            batches += 1
        for hook in self._hooks:
            hook.post_hook(batches == 0)

    def _count_others(self) -> int:
        """How many processes have a batch: those that call `notify_join_context` meanwhile."""
        count = zeros(1, device=self._device)
        all_reduce(count, group=self._group)
        return int(count.item())

    def _tell_others(self) -> None:
        all_reduce(ones(1, device=self._device), group=self._group)
        raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the processes without batches that this one has one.

        Returns the communication under way, whose result is the number of processes that have
        one; None outside of an enabled context, and for all joinables but its first.
        """
        config = joinable._join_config
        if not (config.enable and config.is_first_joinable):
            return None
        group, device = joinable.join_process_group, joinable.join_device
        count = ones(1, device=device)
        work = all_reduce(count, group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = zeros(1, device=device)
            all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
