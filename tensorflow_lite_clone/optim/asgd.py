"""Averaged SGD."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import narrowed, step, unless, widened, with_penalty
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["ASGD", "asgd"]


@step("etas", "mus")
def asgd_step(F: Any, h: Any, p: Any, g: Any, a: Any, eta: Any, mu: Any) -> tuple:
    """The rule of `ASGD`, with the rates that it begins with."""
    g = with_penalty(F, h, p, g)
    eta, mu = narrowed(F, eta, p), narrowed(F, mu, p)
    p = p * (1 - h.lambd * eta) - eta * g
    mean = a + (p - a) * mu
    if isinstance(mu, float):  # two results are two arrays, whatever the number is
        return p, F.copy(p) if mu == 1 else mean
    return p, F.where(mu == 1, p, mean)


@composite
def asgd_rates(F, etas, mus, *, steps, lr, lambd, alpha, t0, found_inf=None):
    """The next rates: eta = lr / (1 + lambda lr t)^alpha, mu = 1 / max(1, t - t0)."""
    new_etas, new_mus = [], []
    for count in steps:
        count = widened(F, count)
        new_etas.append(lr / (1 + lambd * lr * count) ** alpha)
        age = count - t0
        new_mus.append(1 / (max(1.0, age) if isinstance(age, float) else F.clip(age, 1.0, None)))
    return unless(F, found_inf, (etas, mus), (new_etas, new_mus))


class ASGD(Optimizer):
    """Averaged SGD: gradient descent at a falling rate, and the mean of its parameters.

    With the gradient g at step t::

        p = (1 - lambd eta) p - eta g
        a = a + mu (p - a)
        eta, mu = lr / (1 + lambd lr t)^alpha, 1 / max(1, t - t0)    (for the next step)

    The mean a is in the state as ``"ax"``. ``weight_decay * p`` is added to g, which `maximize`
    negates. `foreach` and `capturable` change nothing. Raises ValueError for a negative `lr` or
    `weight_decay`. Source: Polyak and Juditsky, "Acceleration of stochastic approximation by
    averaging" (1992).

        optimizer = torch.optim.ASGD(model.parameters(), lr=1e-2, t0=1000)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _capturable_states = "params, mus, etas, and state_steps"
    _record = Record(
        asgd_step,
        (
            STEP,
            State("eta", begin="lr", is_number=True),
            State("mu", begin=1.0, is_number=True),
            State("ax"),
        ),
        newer="foreach maximize differentiable capturable",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_hyperparameters(lr=lr, weight_decay=weight_decay)
        super().__init__(params, self.hyperparameters(locals()))

    def _run_rule(
        self, numbers: dict, params: list[Tensor], grads: list[Tensor], states: dict[str, list]
    ) -> None:
        steps = self._advance(states["step"])
        etas, mus = states["eta"], states["mu"]
        schedule = {name: numbers.pop(name) for name in ("lr", "alpha", "t0")}
        schedule["lambd"] = numbers["lambd"]
        rates = {"etas": self.host_values(etas), "mus": self.host_values(mus)}
        self.run(asgd_step, (params, grads, states["ax"]), {**rates, **numbers})
        self.run_on_numbers(asgd_rates, etas, mus, steps=steps, **schedule)


asgd = functional(
    ASGD,
    "params grads axs mus etas state_steps",
    "foreach maximize differentiable capturable has_complex",
)
