"""Adadelta."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import step, with_penalty
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adadelta", "adadelta"]


@step()
def adadelta_step(F: Any, h: Any, p: Any, g: Any, v: Any, u: Any) -> tuple:
    """The rule of `Adadelta`."""
    g = with_penalty(F, h, p, g)
    v = v * h.rho + ((1 - h.rho) * g) * g
    delta = F.sqrt(u + h.eps) / F.sqrt(v + h.eps) * g
    return p - h.lr * delta, v, u * h.rho + ((1 - h.rho) * delta) * delta


class Adadelta(Optimizer):
    """Adadelta: gradients scaled by the ratio of the sizes of past steps and past gradients.

    With the gradient g, r being `rho`::

        v = r v + (1 - r) g^2
        d = sqrt(u + eps) / sqrt(v + eps) g
        u = r u + (1 - r) d^2
        p = p - lr d

    ``weight_decay * p`` is added to g, which `maximize` negates. `foreach` and `capturable` change
    nothing. Raises ValueError for a negative hyperparameter or a `rho` outside of [0, 1]. Source:
    Zeiler, "ADADELTA: an adaptive learning rate method" (2012).

        optimizer = torch.optim.Adadelta(model.parameters(), rho=0.95)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        adadelta_step,
        (STEP, State("square_avg"), State("acc_delta")),
        order="lr rho eps weight_decay maximize capturable foreach differentiable",
        newer="foreach maximize differentiable capturable",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_hyperparameters(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_hyperparameters(lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, self.hyperparameters(locals()))


adadelta = functional(
    Adadelta,
    "params grads square_avgs acc_deltas state_steps",
    "capturable foreach differentiable has_complex",
)
