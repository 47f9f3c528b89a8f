"""Schedules whose rate follows from the one before by a factor."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow_lite_clone.optim.lr_scheduler.base import LRScheduler

Rates = list[Any]


class _FunctionLR(LRScheduler):
    """Schedules that call a user's function per group."""

    lr_lambdas: list[Callable[[int], float]]

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        if isinstance(lr_lambda, list | tuple):
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(
                    f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}"
                )
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of the functions only what callable objects hold."""
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [
            None if _is_function(function) else dict(function.__dict__)
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take back what `state_dict` gave; functions stay as they are."""
        rest = dict(state_dict)
        for function, state in zip(self.lr_lambdas, rest.pop("lr_lambdas")):
            if state is not None:
                function.__dict__.update(state)
        self.__dict__.update(rest)


def _is_function(value: Any) -> bool:
    return not hasattr(value, "__dict__") or hasattr(value, "__code__")


class LambdaLR(_FunctionLR):
    """rate = initial rate * lr_lambda(epoch), one function or one per group."""

    def get_lr(self) -> Rates:
        self._current()
        return [
            base * function(self.last_epoch)
            for base, function in zip(self.base_lrs, self.lr_lambdas)
        ]


class MultiplicativeLR(_FunctionLR):
    """rate *= lr_lambda(epoch), one function or one per group."""

    def get_lr(self) -> Rates:
        rates = self._current()
        if self._is_initial:
            return rates
        return [rate * fn(self.last_epoch) for rate, fn in zip(rates, self.lr_lambdas)]


class StepLR(LRScheduler):
    """rate *= gamma every `step_size` epochs."""

    def __init__(
        self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        rates = self._current()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return rates
        return [rate * self.gamma for rate in rates]

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """rate *= gamma at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Any, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        rates = self._current()
        if self.last_epoch not in self.milestones:
            return rates
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in rates]

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """rate = initial rate * factor until epoch `total_iters`, then the initial rate."""

    def __init__(
        self,
        optimizer: Any,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        rates = self._current()
        if self.last_epoch == 0:
            return [rate * self.factor for rate in rates]
        if self.last_epoch != self.total_iters:
            return rates
        return [rate * (1.0 / self.factor) for rate in rates]

    def _get_closed_form_lr(self) -> Rates:
        over = self.last_epoch >= self.total_iters
        return [base * (self.factor + over * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """rate = initial rate * a factor that goes linearly from start to end in `total_iters`."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        rates = self._current()
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in rates]
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in rates]

    def _get_closed_form_lr(self) -> Rates:
        rise = self.end_factor - self.start_factor
        gone = min(self.total_iters, self.last_epoch)
        return [
            base * (self.start_factor + rise * gone / self.total_iters) for base in self.base_lrs
        ]


class ExponentialLR(LRScheduler):
    """rate *= gamma every epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        rates = self._current()
        if self._is_initial:
            return rates
        return [rate * self.gamma for rate in rates]

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """rate = initial rate * (1 - epoch / total_iters)^power, zero at the end."""

    def __init__(
        self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        rates = self._current()
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates
        now = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        decay = (now / before) ** self.power
        return [rate * decay for rate in rates]

    def _get_closed_form_lr(self) -> Rates:
        gone = min(self.total_iters, self.last_epoch)
        return [base * (1.0 - gone / self.total_iters) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """rate = eta_min + (initial rate - eta_min) * (1 + cos(pi * epoch / T_max)) / 2."""

    def __init__(
        self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        rates = self._current()
        t, low, span = self.last_epoch, self.eta_min, self.T_max
        if self._is_initial:
            return rates
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if (t - 1 - span) % (2 * span) == 0:
            # The rate before was eta_min: no factor leads away from there.
            rise = (1 - math.cos(math.pi / span)) / 2
            return [rate + (base - low) * rise for base, rate in zip(self.base_lrs, rates)]
        ratio = (1 + math.cos(math.pi * t / span)) / (1 + math.cos(math.pi * (t - 1) / span))
        return [ratio * (rate - low) + low for rate in rates]

    def _get_closed_form_lr(self) -> Rates:
        share = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * share / 2 for base in self.base_lrs]
