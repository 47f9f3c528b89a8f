"""AdamW."""

from __future__ import annotations

from dataclasses import replace

from tensorflow_lite_clone.optim.adam import Adam
from tensorflow_lite_clone.optim.optimizer import ParamsT
from tensorflow_lite_clone.optim.record import functional
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """`Adam` whose weight decay is decoupled from the gradient: p = p - lr weight_decay p first.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization" (2019).

        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    # As in PyTorch, a checkpoint from before Adam had the option loads as AdamW all the same.
    _record = replace(Adam._record, fixed={"decoupled_weight_decay": True})

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
        super().__init__(params, **self.hyperparameters(locals()))


adamw = functional(
    AdamW,
    "params grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps",
    "foreach capturable differentiable fused grad_scale found_inf has_complex",
)
