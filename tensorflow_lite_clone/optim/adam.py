"""Adam."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.optim.arguments import (
    check_foreach_tensors,
    check_fused,
    check_hyperparameters,
    check_one_element,
)
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import (
    decayed,
    plus_product,
    plus_quotient,
    precise,
    step,
    times,
    towards,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adam", "adam"]


@step("steps")
def adam_step(F: Any, h: Any, p: Any, g: Any, m: Any, v: Any, largest: Any, count: Any) -> tuple:
    """The rule of `Adam`."""
    p, g = decayed(F, h, p, g)
    beta1, beta2 = h.betas
    m = towards(F, m, g, 1 - beta1)
    v = plus_product(F, times(F, v, beta2), g, g, 1 - beta2)
    largest = F.maximum(largest, v) if h.amsgrad else None
    share1, root2 = _shares(F, h.betas, count, p)
    denominator = times(F, F.sqrt(largest if h.amsgrad else v), 1 / root2) + h.eps
    return plus_quotient(F, p, m, denominator, -h.lr / share1), m, v, largest


def _shares(F: Any, betas: tuple[float, float], count: Any, p: Any) -> tuple[Any, Any]:
    """1 - b1^t and sqrt(1 - b2^t): what running means of ones have reached."""
    beta1, beta2 = betas
    if isinstance(count, float):
        share2 = 1 - beta2**count
        return 1 - beta1**count, math.sqrt(share2) if isinstance(share2, float) else F.sqrt(share2)
    count = precise(F, count, p)
    share1, share2 = [-F.expm1(count * (math.log(b) if b else -math.inf)) for b in betas]
    return share1, F.sqrt(share2)


class Adam(Optimizer):
    """Adam: steps by the running mean of the gradient, over the root of that of its square.

    With the gradient g at step t, b1 and b2 being `betas`::

        m = b1 m + (1 - b1) g
        v = b2 v + (1 - b2) g^2
        p = p - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)

    `amsgrad` puts the largest v so far in the place of v. ``weight_decay * p`` is added to g, or
    with `decoupled_weight_decay` ``lr * weight_decay * p`` taken from p; `maximize` negates g.
    `foreach`, `fused` and `capturable` change nothing. Raises ValueError for a negative
    hyperparameter or a beta outside of [0, 1), and RuntimeError for sparse gradients. Sources:
    Kingma and Ba, "Adam" (2015); Reddi et al., "On the convergence of Adam and beyond" (2018).

        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        adam_step,
        (STEP, State("exp_avg"), State("exp_avg_sq"), State("max_exp_avg_sq", when="amsgrad")),
        order="lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused "
        "decoupled_weight_decay",
        newer="amsgrad maximize foreach capturable differentiable decoupled_weight_decay fused",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_foreach_tensors(foreach, capturable, lr=lr)
        check_hyperparameters(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for index, beta in enumerate(betas):
            check_foreach_tensors(foreach, capturable, **{f"betas[{index}]": beta})
            check_one_element(f"betas[{index}]", beta)
        super().__init__(params, self.hyperparameters(locals()))
        check_fused(fused, foreach, differentiable)

    def update_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Any]) -> None:
        """Always RuntimeError: `SparseAdam` takes sparse gradients."""
        raise RuntimeError(
            "Adam does not support sparse gradients, please consider SparseAdam instead"
        )


adam = functional(
    Adam,
    "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps",
    "foreach capturable differentiable fused grad_scale found_inf has_complex "
    "decoupled_weight_decay",
)
