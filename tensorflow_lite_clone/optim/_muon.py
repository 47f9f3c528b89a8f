"""Muon."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.steps import muon_step
from tensorflow_lite_clone.optim.arguments import check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor


class Muon(Optimizer):
    """Muon, as ``torch.optim.Muon``; see `muon_step`.

    Raises ValueError for parameters that have not two dimensions, RuntimeError for complex ones.
    """

    _step_supports_amp_scaling = True

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element("lr", lr)
        for name, value in (
            ("Learning rate", lr),
            ("momentum", momentum),
            ("weight decay", weight_decay),
        ):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{param.size()}"
                    )

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        if any([param.is_complex() for param in params]):
            raise RuntimeError("Muon does not support complex parameters")
        (buffers,) = self.states(params, momentum_buffer=zeros_like)
        self.run(
            muon_step,
            params,
            grads,
            buffers,
            lr=self.number(group, "lr"),
            weight_decay=self.number(group, "weight_decay"),
            momentum=self.number(group, "momentum"),
            nesterov=group["nesterov"],
            coefficients=group["ns_coefficients"],
            eps=group["eps"],
            iterations=group["ns_steps"],
            scales=[_scale(param, group["adjust_lr_fn"]) for param in params],
        )


def _scale(param: Tensor, rule: str | None) -> float:
    """What the rate of a matrix is multiplied by, for updates of like size in all shapes."""
    rows, columns = param.shape
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))
