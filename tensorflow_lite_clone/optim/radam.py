"""RAdam."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import decayed, narrowed, square_root, step, widened
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["RAdam", "radam"]


@step("steps")
def radam_step(F: Any, h: Any, p: Any, g: Any, m: Any, v: Any, count: Any) -> tuple:
    """The rule of `RAdam`."""
    p, g = decayed(F, h, p, g)
    beta1, beta2 = h.betas
    limit = 2 / (1 - beta2) - 1
    m = m + (g - m) * (1 - beta1)
    v = v * beta2 + ((1 - beta2) * g) * g
    count = widened(F, count)
    share2 = 1 - beta2**count
    length = limit - 2 * count * beta2**count / share2
    direction = m / narrowed(F, 1 - beta1**count, p) * h.lr
    if not isinstance(length, float):
        factor = _rectification(F, F.clip(length, 5.0, None), limit) * F.sqrt(share2)
        rectified = direction * narrowed(F, factor, p) / (F.sqrt(v) + h.eps)
        direction = F.where(length > 5, rectified, direction)
    elif length > 5:
        adaptive = square_root(F, share2) / (F.sqrt(v) + h.eps)
        direction = direction * adaptive * _rectification(F, length, limit)
    return p - direction, m, v


def _rectification(F: Any, length: Any, limit: float) -> Any:
    """r_t, for the length rho_t."""
    square = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
    return square_root(F, square)


class RAdam(Optimizer):
    """RAdam: Adam where the variance of its steps is tractable, else momentum alone.

    With the gradient g at step t, b1 and b2 being `betas`::

        m, v = b1 m + (1 - b1) g, b2 v + (1 - b2) g^2
        rho = 2 / (1 - b2) - 1,  rho_t = rho - 2 t b2^t / (1 - b2^t)
        r^2 = (rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t)
        p = p - lr m / (1 - b1^t) r sqrt(1 - b2^t) / (sqrt(v) + eps)    (if rho_t > 5)
        p = p - lr m / (1 - b1^t)                                       (else)

    ``weight_decay * p`` is added to g, or with `decoupled_weight_decay` ``lr * weight_decay * p``
    taken from p; `maximize` negates g. `foreach` and `capturable` change nothing. Raises ValueError
    for a negative hyperparameter or a beta outside of [0, 1). Source: Liu et al., "On the variance
    of the adaptive learning rate and beyond" (2020).

        optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        radam_step,
        (STEP, State("exp_avg"), State("exp_avg_sq")),
        order="lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
        "differentiable",
        newer="foreach maximize differentiable decoupled_weight_decay capturable",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_hyperparameters(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, self.hyperparameters(locals()))


radam = functional(
    RAdam,
    "params grads exp_avgs exp_avg_sqs state_steps",
    "decoupled_weight_decay foreach differentiable capturable has_complex maximize",
)
