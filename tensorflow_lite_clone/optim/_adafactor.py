"""Adafactor."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.steps import adafactor_step
from tensorflow_lite_clone.optim.arguments import check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor


class Adafactor(Optimizer):
    """Adafactor, as ``torch.optim.Adafactor``; see `adafactor_step`.

    `foreach` is accepted for compatibility. Raises RuntimeError for complex parameters.
    """

    _step_supports_amp_scaling = True
    _counts = ("step",)
    _newer_options: ClassVar = {
        "foreach": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        if any([param.is_complex() for param in params]):
            raise RuntimeError("Adafactor does not support complex parameters")
        steps = self.count_steps(group, params)
        wide = [param for param in params if param.dim() > 1]
        rows, columns = self.states(
            wide,
            row_var=lambda param: zeros_like(param[..., :1]),
            col_var=lambda param: zeros_like(param[..., :1, :]),
        )
        narrow = [param for param in params if param.dim() <= 1]
        (variances,) = self.states(narrow, variance=zeros_like)
        least, eps2 = group["eps"]
        self.run(
            adafactor_step,
            params,
            grads,
            rows,
            columns,
            variances,
            steps=steps,
            lr=self.number(group, "lr"),
            beta2_decay=group["beta2_decay"],
            least=[finfo(param.dtype).eps if least is None else least for param in params],
            eps2=eps2,
            threshold=group["d"],
            weight_decay=self.number(group, "weight_decay"),
            maximize=group["maximize"],
        )
