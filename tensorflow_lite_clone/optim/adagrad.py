"""Adagrad."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import full_like
from tensorflow_lite_clone.ops.update import adagrad_step
from tensorflow_lite_clone.optim._functional import adagrad
from tensorflow_lite_clone.optim.arguments import (
    check_at_least_zero,
    check_fused,
    check_one_element,
    new_count,
)
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Optimizer):
    """Adagrad, as ``torch.optim.Adagrad``; see `adagrad_step`.

    `foreach` and `fused` are accepted for compatibility. Gradients may be sparse, without weight
    decay.
    """

    _step_supports_amp_scaling = True
    _counts = ("step",)
    _newer_options: ClassVar = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_one_element("lr", lr)
        check_at_least_zero(
            learning_rate=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:  # torch fills these states at once, not at the first step
            for param in group["params"]:
                self.state[param] = {
                    "step": new_count(param, group["fused"]),
                    "sum": _first_sum(param, group),
                }

    def share_memory(self) -> None:
        """Put all states into memory that other processes can share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def update_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Any]) -> None:
        """As `adagrad_step`, where the gradients have elements; RuntimeError with weight decay."""
        if group["fused"]:
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if group["weight_decay"]:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        (sums,) = self.states(params, sum=lambda param: _first_sum(param, group))
        steps = self.count_steps(group, params)
        lr, decay = self.number(group, "lr"), self.number(group, "lr_decay")
        for param, g, total, step in zip(params, grads, sums, steps, strict=True):
            g = (-g if group["maximize"] else g).coalesce()
            total.add_(g.pow(2))
            root = total.sparse_mask(g)._values().sqrt_().add_(group["eps"])
            rate = lr / (1 + (step - 1) * decay)
            param.add_(g.new(g._indices(), g._values() / root, g.size()), alpha=-rate)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        sums = self.states(params, sum=lambda param: _first_sum(param, group))  # of groups added
        self.run(
            adagrad_step,
            params,
            grads,
            *sums,
            steps=self.count_steps(group, params),
            lr=self.number(group, "lr"),
            lr_decay=self.number(group, "lr_decay"),
            weight_decay=self.number(group, "weight_decay"),
            eps=group["eps"],
            maximize=group["maximize"],
        )


def _first_sum(param: Tensor, group: dict[str, Any]) -> Tensor:
    start = group["initial_accumulator_value"]
    return full_like(param.detach(), complex(start, start) if param.is_complex() else start)
