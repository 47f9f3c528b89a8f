"""Adam and AdamW."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.live import live
from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.update import adam_step
from tensorflow_lite_clone.optim.optimizer import Optimizer, check_at_least_zero
from tensorflow_lite_clone.tensor import Tensor


class Adam(Optimizer):
    """Adam, as ``torch.optim.Adam``; see `adam_step`.

    `foreach`, `fused`, `capturable` and `differentiable` are accepted for compatibility.
    """

    _step_supports_amp_scaling = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
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
        check_at_least_zero(learning_rate=lr, epsilon=eps)
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        check_at_least_zero(weight_decay=weight_decay)
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

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        steps = self.count_steps(params)
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
            betas=(
                live(lambda: float(group["betas"][0])),
                live(lambda: float(group["betas"][1])),
            ),
            eps=group["eps"],
            weight_decay=self.number(group, "weight_decay"),
            decoupled=group["decoupled_weight_decay"],
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
        )


class AdamW(Adam):
    """Adam with decoupled weight decay, as ``torch.optim.AdamW``."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
