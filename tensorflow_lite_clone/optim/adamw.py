"""AdamW."""

from __future__ import annotations

from typing import ClassVar

from tensorflow_lite_clone.optim._functional import adamw
from tensorflow_lite_clone.optim.adam import Adam
from tensorflow_lite_clone.optim.optimizer import ParamsT
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """Adam with decoupled weight decay, as ``torch.optim.AdamW``."""

    # As in PyTorch, a checkpoint from before Adam had the option loads as AdamW all the same.
    _newer_options: ClassVar = {**Adam._newer_options, "decoupled_weight_decay": True}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
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
