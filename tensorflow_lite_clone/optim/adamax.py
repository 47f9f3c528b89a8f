"""Adamax."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import narrowed, step, widened, with_penalty
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adamax", "adamax"]


@step("steps")
def adamax_step(F: Any, h: Any, p: Any, g: Any, m: Any, u: Any, count: Any) -> tuple:
    """The rule of `Adamax`."""
    g = with_penalty(F, h, p, g)
    beta1, beta2 = h.betas
    m = m + (g - m) * (1 - beta1)
    u = F.maximum(u * beta2, F.abs(g) + h.eps)
    rate = narrowed(F, h.lr / (1 - beta1 ** widened(F, count)), p)
    return p - (rate * m) / u, m, u


class Adamax(Optimizer):
    """Adamax: Adam with a running maximum of the gradient's size.

    With the gradient g at step t, b1 and b2 being `betas`::

        m = b1 m + (1 - b1) g
        u = max(b2 u, |g| + eps)
        p = p - lr / (1 - b1^t) m / u

    ``weight_decay * p`` is added to g, which `maximize` negates. `foreach` and `capturable` change
    nothing. Raises ValueError for a negative hyperparameter or a beta outside of [0, 1). Source:
    Kingma and Ba, "Adam" (2015), section 7.

        optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        adamax_step,
        (STEP, State("exp_avg"), State("exp_inf")),
        newer="foreach maximize differentiable capturable",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_hyperparameters(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, self.hyperparameters(locals()))


adamax = functional(
    Adamax,
    "params grads exp_avgs exp_infs state_steps",
    "foreach maximize differentiable capturable has_complex",
)
