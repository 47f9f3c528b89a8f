"""NAdam."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import decayed, narrowed, step, unless, widened
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["NAdam", "nadam"]


def _momentum(beta1: Any, count: Any, momentum_decay: float) -> Any:
    """The schedule mu_t = b1 (1 - 0.96^(t psi) / 2)."""
    return beta1 * (1 - 0.5 * 0.96 ** (count * momentum_decay))


@composite
def nadam_products(F, products, *, steps, beta1, momentum_decay, found_inf=None):
    """The product of all momenta mu_1 ... mu_t."""
    news = []
    for product, count in zip(products, steps, strict=True):
        momentum = _momentum(beta1, widened(F, count), momentum_decay)
        news.append(
            product * (momentum if isinstance(count, float) else F.astype(momentum, product.dtype))
        )
    return unless(F, found_inf, (products,), (news,))


@step("steps", "products")
def nadam_step(F: Any, h: Any, p: Any, g: Any, m: Any, v: Any, count: Any, product: Any) -> tuple:
    """The rule of `NAdam`, mu_t being in the product of the momenta."""
    p, g = decayed(F, h, p, g)
    beta1, beta2 = h.betas
    m = m + (g - m) * (1 - beta1)
    v = v * beta2 + ((1 - beta2) * g) * g
    count, product = widened(F, count), widened(F, product)
    now = _momentum(beta1, count, h.momentum_decay)
    coming = _momentum(beta1, count + 1, h.momentum_decay)
    denominator = F.sqrt(v / narrowed(F, 1 - beta2**count, p)) + h.eps
    by_gradient = narrowed(F, h.lr * (1 - now) / (1 - product), p)
    by_mean = narrowed(F, h.lr * coming / (1 - product * coming), p)
    p = p - (by_gradient * g) / denominator
    return p - (by_mean * m) / denominator, m, v


class NAdam(Optimizer):
    """NAdam: Adam with Nesterov's momentum.

    With the gradient g at step t, b1 and b2 being `betas`, and psi `momentum_decay`::

        m, v = b1 m + (1 - b1) g, b2 v + (1 - b2) g^2
        mu_t = b1 (1 - 0.96^(t psi) / 2),  prod_t = mu_1 ... mu_t
        p = p - lr ((1 - mu_t) / (1 - prod_t) g + mu_t+1 / (1 - prod_t mu_t+1) m)
                / (sqrt(v / (1 - b2^t)) + eps)

    ``weight_decay * p`` is added to g, or with `decoupled_weight_decay` ``lr * weight_decay * p``
    taken from p; `maximize` negates g. `foreach` and `capturable` change nothing. Raises ValueError
    for a negative hyperparameter or a beta outside of [0, 1). Source: Dozat, "Incorporating
    Nesterov momentum into Adam" (2016).

        optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _capturable_states = "params, mu_products and state_steps"
    _record = Record(
        nadam_step,
        (
            STEP,
            State("mu_product", begin=1.0, is_number=True),
            State("exp_avg"),
            State("exp_avg_sq"),
        ),
        order="lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach "
        "capturable differentiable",
        newer="maximize foreach capturable differentiable decoupled_weight_decay",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_hyperparameters(
            lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        super().__init__(params, self.hyperparameters(locals()))

    def _run_rule(
        self, numbers: dict, params: list[Tensor], grads: list[Tensor], states: dict[str, list]
    ) -> None:
        steps, products = self._advance(states["step"]), states["mu_product"]
        schedule = {"beta1": numbers["betas"][0], "momentum_decay": numbers["momentum_decay"]}
        self.run_on_numbers(nadam_products, products, steps=steps, **schedule)
        means, squares = states["exp_avg"], states["exp_avg_sq"]
        counts = {"steps": steps, "products": self.host_values(products)}
        self.run(nadam_step, (params, grads, means, squares), {**counts, **numbers})


nadam = functional(
    NAdam,
    "params grads exp_avgs exp_avg_sqs mu_products state_steps",
    "decoupled_weight_decay foreach capturable differentiable has_complex maximize",
)
