"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.update import sgd_step
from tensorflow_lite_clone.optim._functional import sgd
from tensorflow_lite_clone.optim.arguments import (
    check_at_least_zero,
    check_fused,
    check_one_element,
)
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, as ``torch.optim.SGD``; see `sgd_step`.

    `foreach` and `fused` are accepted for compatibility. Gradients may be sparse, without weight
    decay. With `differentiable` gradients flow
    through the first momentum too, which PyTorch takes as a constant.
    """

    _step_supports_amp_scaling = True
    _newer_options: ClassVar = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_one_element("lr", lr)
        check_at_least_zero(learning_rate=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def update_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Any]) -> None:
        """As `sgd_step`; momenta are sparse, with the places of all gradients so far."""
        if group["fused"]:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        momentum, lr = self.number(group, "momentum"), self.number(group, "lr")
        for param, g in zip(params, grads, strict=True):
            if group["maximize"]:
                g = -g
            if group["weight_decay"]:
                g = g.add(param, alpha=self.number(group, "weight_decay"))  # raises, as in PyTorch
            if momentum:
                buffer: Any = self.state[param].get("momentum_buffer")
                if buffer is None:
                    buffer = self.state[param]["momentum_buffer"] = g.clone().detach()
                else:
                    buffer.mul_(momentum).add_(g, alpha=1 - self.number(group, "dampening"))
                g = g.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            param.add_(g, alpha=-lr)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        buffers: list[Tensor] = []
        first: list[bool] = []
        if group["momentum"]:
            first = [self.state[param].get("momentum_buffer") is None for param in params]
            for param, new in zip(params, first, strict=True):
                if new:
                    self.state[param]["momentum_buffer"] = zeros_like(param)
            buffers = [self.state[param]["momentum_buffer"] for param in params]
        self.run(
            sgd_step,
            params,
            grads,
            buffers,
            lr=self.number(group, "lr"),
            momentum=self.number(group, "momentum"),
            dampening=self.number(group, "dampening"),
            weight_decay=self.number(group, "weight_decay"),
            nesterov=group["nesterov"],
            maximize=group["maximize"],
            first=first,
        )
