"""RMSprop."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.update import rmsprop_step
from tensorflow_lite_clone.optim._functional import rmsprop
from tensorflow_lite_clone.optim.arguments import check_at_least_zero, check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(Optimizer):
    """RMSprop, as ``torch.optim.RMSprop``; see `rmsprop_step`.

    `foreach` and `capturable` are accepted for compatibility.
    """

    _step_supports_amp_scaling = True
    _counts = ("step",)
    _newer_options: ClassVar = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

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
        check_one_element("lr", lr)
        check_at_least_zero(
            learning_rate=lr, epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        self.count_steps(group, params)
        (squares,) = self.states(params, square_avg=zeros_like)
        buffers = averages = []
        if group["momentum"]:
            (buffers,) = self.states(params, momentum_buffer=zeros_like)
        if group["centered"]:
            (averages,) = self.states(params, grad_avg=zeros_like)
        self.run(
            rmsprop_step,
            params,
            grads,
            squares,
            averages,
            buffers,
            lr=self.number(group, "lr"),
            alpha=self.number(group, "alpha"),
            eps=group["eps"],
            weight_decay=self.number(group, "weight_decay"),
            momentum=self.number(group, "momentum"),
            centered=group["centered"],
            maximize=group["maximize"],
        )
