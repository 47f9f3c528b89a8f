"""Averaged SGD."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.steps import asgd_rates, asgd_step
from tensorflow_lite_clone.optim.arguments import check_at_least_zero, check_one_element, new_count
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor


class ASGD(Optimizer):
    """Averaged SGD, as ``torch.optim.ASGD``; see `asgd_step` and `asgd_rates`.

    `foreach` and `capturable` are accepted for compatibility.
    """

    _step_supports_amp_scaling = True
    _counts = ("step", "eta", "mu")
    _capturable_states = "params, mus, etas, and state_steps"
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
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        check_at_least_zero(learning_rate=lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        steps = self.count_steps(group, params)
        etas, mus, averages = self.states(
            params,
            eta=lambda param: new_count(param, value=float(group["lr"])),
            mu=lambda param: new_count(param, value=1.0),
            ax=zeros_like,
        )
        self.run(
            asgd_step,
            params,
            grads,
            averages,
            etas=self.host_values(etas),
            mus=self.host_values(mus),
            lambd=group["lambd"],
            weight_decay=self.number(group, "weight_decay"),
            maximize=group["maximize"],
        )
        self.run_on_numbers(
            asgd_rates,
            etas,
            mus,
            steps=steps,
            lr=self.number(group, "lr"),
            lambd=group["lambd"],
            alpha=group["alpha"],
            t0=group["t0"],
        )
