"""Averages of a model's weights over training, as ``torch.optim.swa_utils``.

Sources: Izmailov et al., "Averaging weights leads to wider optima and better generalization"
(2018), for stochastic weight averaging (SWA) and its learning rate; Polyak and Juditsky,
"Acceleration of stochastic approximation by averaging" (1992), for running means.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Literal

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.nn.modules.batchnorm import _BatchNorm
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.optim.lr_scheduler.base import LRScheduler, per_group
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

One = Callable[[Tensor, Tensor, Any], Tensor]
Several = Callable[[list[Tensor], list[Tensor], Any], None]


def get_ema_multi_avg_fn(decay: float = 0.999) -> Several:
    """`get_ema_avg_fn` for lists of tensors of one dtype, in place.

    Raises ValueError if `decay` is not in [0, 1].
    """
    mean = get_ema_avg_fn(decay)

    @no_grad()
    def ema_update(ema_param_list: list[Tensor], current_param_list: list[Tensor], _: Any) -> None:
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(mean(average, current, _))

    return ema_update


def get_swa_multi_avg_fn() -> Several:
    """`get_swa_avg_fn` for lists of floating-point tensors of one dtype, in place."""

    @no_grad()
    def swa_update(
        averaged_param_list: list[Tensor], current_param_list: list[Tensor], num_averaged: Any
    ) -> None:
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            average.add_((current - average) / (num_averaged + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> One:
    """A function for the running mean: decay * mean + (1 - decay) * current.

    Raises ValueError if `decay` is not in [0, 1].
    """
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    @no_grad()
    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> One:
    """A function for the mean of all: mean + (current - mean) / (n + 1)."""

    @no_grad()
    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model, whose parameters are means of the model's at each `update_parameters`.

    ``avg_fn(mean, current, n)`` returns the new mean of one parameter after n updates;
    ``multi_avg_fn(means, currents, n)`` updates lists of tensors of one device and dtype in place.
    Without either it is the mean of all. Buffers are averaged with `use_buffers`, else copied from
    the model. Raises AssertionError if both functions are given.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: One | None = None,
        multi_avg_fn: Several | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's present parameters into the means."""
        means = [mean.detach() for mean in self._averaged(self.module)]
        currents = [
            current.detach().to(mean.device)
            for mean, current in zip(means, self._averaged(model), strict=True)
        ]
        if self.n_averaged == 0:
            for mean, current in zip(means, currents, strict=True):
                mean.copy_(current)
        elif self.multi_avg_fn is not None:
            parts = Optimizer._group_tensors_by_device_and_dtype([means, currents])
            for (some_means, some_currents), _ in parts.values():
                n = self.n_averaged.to(some_means[0].device)
                self.multi_avg_fn(some_means, some_currents, n)
        else:
            function = get_swa_avg_fn() if self.avg_fn is None else self.avg_fn
            for mean, current in zip(means, currents, strict=True):
                mean.copy_(function(mean, current, self.n_averaged.to(mean.device)))
        if not self.use_buffers:
            for averaged, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                averaged.detach().copy_(buffer.detach().to(averaged.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        if self.use_buffers:
            return chain(model.parameters(), model.buffers())
        return model.parameters()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute a model's batch norm statistics anew, as plain means over the batches of `loader`.

    A batch is a tensor, or a list or tuple that begins with one; it is moved to `device`.
    """
    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


def _cosine(x: float) -> float:
    return (1 - math.cos(math.pi * x)) / 2


def _linear(x: float) -> float:
    return x


_ANNEALINGS = {"cos": _cosine, "linear": _linear}


class SWALR(LRScheduler):
    """Anneal each group's rate to `swa_lr` (one, or one per group) in `anneal_epochs` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", swa_lr, optimizer)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in _ANNEALINGS:
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The rates between those before annealing, which follow from the groups', and the last."""
        current = self._current()
        step = (
            self._step_count - 1
        )  # so an epoch given to `step` makes no difference, as in PyTorch
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, current, strict=True):
            last = group["swa_lr"]
            initial = last if before == 1 else (lr - before * last) / (1 - before)
            rates.append(last * now + initial * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """How much of `swa_lr` is in the rate."""
        passed = max(0, min(1, step / max(1, self.anneal_epochs)))
        return _ANNEALINGS[self._anneal_strategy](passed)
