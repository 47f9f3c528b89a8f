"""Adamax."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.steps import adamax_step
from tensorflow_lite_clone.optim._functional import adamax
from tensorflow_lite_clone.optim.arguments import (
    check_at_least_zero,
    check_betas,
    check_one_element,
)
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adamax", "adamax"]


class Adamax(Optimizer):
    """Adamax, as ``torch.optim.Adamax``; see `adamax_step`.

    `foreach` and `capturable` are accepted for compatibility.
    """

    _step_supports_amp_scaling = True
    _counts = ("step",)
    _newer_options: ClassVar = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

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
        check_one_element("lr", lr)
        check_at_least_zero(learning_rate=lr, epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        steps = self.count_steps(group, params)
        means, maxima = self.states(params, exp_avg=zeros_like, exp_inf=zeros_like)
        self.run(
            adamax_step,
            params,
            grads,
            means,
            maxima,
            steps=steps,
            lr=self.number(group, "lr"),
            betas=self.number(group, "betas"),
            eps=group["eps"],
            weight_decay=self.number(group, "weight_decay"),
            maximize=group["maximize"],
        )
