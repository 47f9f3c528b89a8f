"""What all schedules share: counting, writing rates into the groups, state, warnings."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.tensor.tensor import Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)


class LRScheduler:
    """The base class: `step` sets every group's rate to what `get_lr` returns.

    `get_lr` is chainable: it derives the new rates from those in the groups, so several schedules
    can act on one optimizer. A subclass may also have `_get_closed_form_lr`, which derives them
    from the initial rates and serves ``step(epoch)``.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer = require_optimizer(optimizer)
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _own(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                        "scheduler with last_epoch >= 0.\nThis typically happens when:\n1. You're "
                        "trying to resume training from a checkpoint but haven't properly loaded "
                        "the optimizer state\n2. You're using last_epoch >= 0 for a fresh "
                        "training run (not recommended)"
                    )
        self.base_lrs: list[Any] = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._step_count = 0
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set, one per group."""
        return [_own(lr) for lr in self._last_lr]

    def get_lr(self) -> list[Any]:
        """The rates of the next step; to be overridden, and called by `step` alone."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go one epoch on (or to `epoch`, deprecated) and set the groups' rates."""
        if self._step_count == 1:
            self._warn_about_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=level_outside())
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
                rates = closed_form()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_group_value(group, "lr", rate)
        self._last_lr: list[Any] = group_values(self.optimizer, "lr")

    def _warn_about_order(self) -> None:
        how = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                f"`lr_scheduler.step()`. See more details at {how}",
                UserWarning,
                stacklevel=level_outside(),
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
                f"the first value of the learning rate schedule. See more details at {how}",
                UserWarning,
                stacklevel=level_outside(),
            )

    def _current(self) -> list[Any]:
        """The rates in the groups, from which `get_lr` goes on; warns if not called by `step`."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=level_outside(),
            )
        return group_values(self.optimizer, "lr")


def require_optimizer(optimizer: Any) -> Any:
    """`optimizer` itself; TypeError if it has no parameter groups."""
    if not isinstance(getattr(optimizer, "param_groups", None), list):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def group_values(optimizer: Any, key: str) -> list[Any]:
    """What the groups hold under `key`; tensors are copied, as the groups' are written to."""
    return [_own(group[key]) for group in optimizer.param_groups]


def set_group_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Put `value` into the group; into the tensor there, if there is one."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value)
    else:
        group[key] = value


def per_group(name: str, value: Any, optimizer: Any) -> list[Any]:
    """`value` for each group: a number is repeated, a sequence must have the right length."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {groups}."
        )
    return list(value)


def checked_schedulers(schedulers: Sequence[Any], optimizer: Any, owner: str, empty: str) -> Any:
    """The schedulers' common optimizer, `optimizer` if given; errors if they do not fit."""
    if len(schedulers) < 1:
        raise ValueError(f"{owner} expects at least one scheduler{empty}, but got no scheduler.")
    if optimizer is None:
        optimizer = getattr(schedulers[0], "optimizer", None)
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{owner} at index {i} should have `optimizer` as its attribute.")
        if not hasattr(scheduler, "last_epoch") and not hasattr(scheduler, "_schedulers"):
            raise TypeError(f"{owner} at index {i} is not a scheduler: {type(scheduler).__name__}")
        if hasattr(scheduler, "_is_better"):
            raise ValueError(
                f"{owner} does not support `ReduceLROnPlateau` scheduler as it requires "
                "additional kwargs to be specified when calling `step`, but got one at index "
                f"{i} in the given schedulers sequence."
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{owner} expects all schedulers to belong to the same optimizer, but got "
                f"scheduler {type(scheduler).__name__} at index {i} has {scheduler.optimizer}, "
                f"which is different from {type(optimizer).__name__}."
            )
    return optimizer


def _own(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _track_steps(optimizer: Any) -> None:
    """Let the optimizer note in `_opt_called` that it has stepped."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    method = getattr(step, "__func__", None)
    if method is None:  # somebody has put a plain function there
        method = _ignoring_self(step)
    # The optimizer holds the wrapper: a strong reference back would be a cycle.
    reference = weakref.ref(optimizer)

    @wraps(method)
    def tracked(*args: Any, **kwargs: Any) -> Any:
        owner: Any = reference()
        owner._opt_called = True
        return method(owner, *args, **kwargs)

    tracked._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = tracked


def _ignoring_self(function: Callable[..., Any]) -> Callable[..., Any]:
    return wraps(function)(lambda owner, *args, **kwargs: function(*args, **kwargs))
