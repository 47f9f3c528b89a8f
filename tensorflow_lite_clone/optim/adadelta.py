"""Adadelta."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.steps import adadelta_step
from tensorflow_lite_clone.optim._functional import adadelta
from tensorflow_lite_clone.optim.arguments import check_at_least_zero, check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adadelta", "adadelta"]


class Adadelta(Optimizer):
    """Adadelta, as ``torch.optim.Adadelta``; see `adadelta_step`.

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
        check_one_element("lr", lr)
        check_at_least_zero(learning_rate=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero(epsilon=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        self.count_steps(group, params)
        squares, deltas = self.states(params, square_avg=zeros_like, acc_delta=zeros_like)
        self.run(
            adadelta_step,
            params,
            grads,
            squares,
            deltas,
            lr=self.number(group, "lr"),
            rho=self.number(group, "rho"),
            eps=group["eps"],
            weight_decay=self.number(group, "weight_decay"),
            maximize=group["maximize"],
        )
