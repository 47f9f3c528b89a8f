"""RMSprop."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import (
    plus,
    plus_product,
    plus_quotient,
    step,
    times,
    towards,
    with_penalty,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["RMSprop", "rmsprop"]


@step()
def rmsprop_step(F: Any, h: Any, p: Any, g: Any, v: Any, b: Any, mean: Any) -> tuple:
    """The rule of `RMSprop`."""
    g = with_penalty(F, h, p, g)
    v = plus_product(F, times(F, v, h.alpha), g, g, 1 - h.alpha)
    variance = v
    if h.centered:
        mean = towards(F, mean, g, 1 - h.alpha)
        variance = plus_product(F, v, mean, mean, -1)
    denominator = F.astype(F.sqrt(variance) + h.eps, v.dtype)
    if h.momentum:
        b = plus_quotient(F, times(F, b, h.momentum), g, denominator, 1)
        return plus(F, p, b, -h.lr), v, b, mean
    return plus_quotient(F, p, g, denominator, -h.lr), v, b, mean


class RMSprop(Optimizer):
    """RMSprop: steps by the gradient over the root of the running mean of its square.

    With the gradient g, a being `alpha`::

        v = a v + (1 - a) g^2
        p = p - lr g / (sqrt(v) + eps)

    `centered` subtracts the squared running mean of g from v in the root; with `momentum` m the
    step is by b = m b + g / (sqrt(v) + eps). ``weight_decay * p`` is added to g, which `maximize`
    negates. `foreach` and `capturable` change nothing. Raises ValueError for a negative
    hyperparameter. Sources: Tieleman and Hinton, "Lecture 6.5 - RMSProp" (2012); Graves,
    "Generating sequences with recurrent neural networks" (2013) for the centered form.

        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        rmsprop_step,
        (
            STEP,
            State("square_avg"),
            State("momentum_buffer", when="momentum"),
            State("grad_avg", when="centered"),
        ),
        order="lr momentum alpha eps centered weight_decay capturable foreach maximize "
        "differentiable",
        newer="momentum centered foreach maximize differentiable capturable",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_hyperparameters(
            lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        super().__init__(params, self.hyperparameters(locals()))


rmsprop = functional(
    RMSprop,
    "params grads square_avgs grad_avgs momentum_buffer_list state_steps",
    "foreach maximize differentiable capturable has_complex",
)
