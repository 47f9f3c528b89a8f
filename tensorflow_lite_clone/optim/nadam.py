"""NAdam."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.steps import nadam_products, nadam_step
from tensorflow_lite_clone.optim.arguments import (
    check_at_least_zero,
    check_betas,
    check_one_element,
    new_count,
)
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor


class NAdam(Optimizer):
    """NAdam, as ``torch.optim.NAdam``; see `nadam_step`.

    `foreach` and `capturable` are accepted for compatibility.
    """

    _step_supports_amp_scaling = True
    _counts = ("step", "mu_product")
    _capturable_states = "params, mu_products and state_steps"
    _newer_options: ClassVar = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

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
        check_one_element("lr", lr)
        check_at_least_zero(learning_rate=lr, epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        steps = self.count_steps(group, params)
        products, means, squares = self.states(
            params,
            mu_product=lambda param: new_count(param, value=1.0),
            exp_avg=zeros_like,
            exp_avg_sq=zeros_like,
        )
        betas = self.number(group, "betas")
        self.run_on_numbers(
            nadam_products,
            products,
            steps=steps,
            beta1=betas[0],
            momentum_decay=group["momentum_decay"],
        )
        self.run(
            nadam_step,
            params,
            grads,
            means,
            squares,
            steps=steps,
            products=self.host_values(products),
            lr=self.number(group, "lr"),
            betas=betas,
            eps=group["eps"],
            weight_decay=self.number(group, "weight_decay"),
            momentum_decay=group["momentum_decay"],
            decoupled=group["decoupled_weight_decay"],
            maximize=group["maximize"],
        )
