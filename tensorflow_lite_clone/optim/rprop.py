"""Rprop."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import full_like, zeros_like
from tensorflow_lite_clone.ops.steps import rprop_step
from tensorflow_lite_clone.optim._functional import rprop
from tensorflow_lite_clone.optim.arguments import check_at_least_zero, check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Rprop", "rprop"]


class Rprop(Optimizer):
    """Rprop, as ``torch.optim.Rprop``; see `rprop_step`.

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
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        check_at_least_zero(learning_rate=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        def first_size(param: Tensor) -> Tensor:
            lr = float(group["lr"])
            return full_like(param.detach(), complex(lr, lr) if param.is_complex() else lr)

        self.count_steps(group, params)
        previous, sizes = self.states(params, prev=zeros_like, step_size=first_size)
        self.run(
            rprop_step,
            params,
            grads,
            previous,
            sizes,
            etas=self.number(group, "etas"),
            step_sizes=self.number(group, "step_sizes"),
            maximize=group["maximize"],
        )
