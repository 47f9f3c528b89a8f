"""Adam."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.update import adam_step
from tensorflow_lite_clone.optim._functional import adam
from tensorflow_lite_clone.optim.arguments import (
    check_at_least_zero,
    check_betas,
    check_foreach_tensors,
    check_fused,
    check_one_element,
)
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adam", "adam"]


class Adam(Optimizer):
    """Adam, as ``torch.optim.Adam``; see `adam_step`.

    `foreach`, `fused` and `capturable` are accepted for compatibility.
    """

    _step_supports_amp_scaling = True
    _counts = ("step",)
    _newer_options: ClassVar = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

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
        check_one_element("lr", lr)
        check_at_least_zero(learning_rate=lr, epsilon=eps)
        check_betas(betas)
        check_at_least_zero(weight_decay=weight_decay)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for index, beta in enumerate(betas):
            check_foreach_tensors(foreach, capturable, **{f"betas[{index}]": beta})
            check_one_element(f"betas[{index}]", beta)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def update_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Any]) -> None:
        """Always RuntimeError: `SparseAdam` takes sparse gradients."""
        raise RuntimeError(
            "Adam does not support sparse gradients, please consider SparseAdam instead"
        )

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        steps = self.count_steps(group, params)
        names = {"exp_avg": zeros_like, "exp_avg_sq": zeros_like}
        if group["amsgrad"]:
            names["max_exp_avg_sq"] = zeros_like
        means, squares, *maxima = self.states(params, **names)
        self.run(
            adam_step,
            params,
            grads,
            means,
            squares,
            maxima[0] if maxima else [],
            steps=steps,
            lr=self.number(group, "lr"),
            betas=self.number(group, "betas"),
            eps=group["eps"],
            weight_decay=self.number(group, "weight_decay"),
            decoupled=group["decoupled_weight_decay"],
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
        )
