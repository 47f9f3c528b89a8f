"""Adagrad."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.optim.arguments import check_fused, check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import (
    plus_product,
    plus_quotient,
    precise,
    step,
    with_penalty,
)
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Adagrad", "adagrad"]


@step("steps")
def adagrad_step(F: Any, h: Any, p: Any, g: Any, total: Any, count: Any) -> tuple:
    """The rule of `Adagrad`."""
    g = with_penalty(F, h, p, g)
    total = plus_product(F, total, g, g, 1)
    rate = h.lr / (1 + (precise(F, count, p) - 1) * h.lr_decay)
    return plus_quotient(F, p, g, F.sqrt(total) + h.eps, -rate), total


class Adagrad(Optimizer):
    """Adagrad: steps by the gradient over the root of the sum of all its squares.

    With the gradient g at step t::

        s = s + g^2    (from `initial_accumulator_value` on)
        p = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)

    ``weight_decay * p`` is added to g, which `maximize` negates. `foreach` and `fused` change
    nothing. Gradients may be sparse, without weight decay. Raises ValueError for a negative
    hyperparameter. Source: Duchi et al., "Adaptive subgradient methods" (2011).

        optimizer = torch.optim.Adagrad(model.parameters(), lr=1e-2)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        adagrad_step,
        (STEP, State("sum", begin="initial_accumulator_value")),
        order="lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
        "differentiable fused",
        newer="foreach maximize differentiable fused",
        unread="initial_accumulator_value",
    )

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
        check_hyperparameters(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(params, self.hyperparameters(locals()))
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:  # torch fills these states at once, not at the first step
            self._kept(group, group["params"])

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
        states = self._kept(group, params)
        counts, sums = self._advance(states["step"]), states["sum"]
        lr, decay = self.number(group, "lr"), self.number(group, "lr_decay")
        for param, g, total, count in zip(params, grads, sums, counts, strict=True):
            g = (-g if group["maximize"] else g).coalesce()
            total.add_(g.pow(2))
            root = total.sparse_mask(g)._values().sqrt_().add_(group["eps"])
            rate = lr / (1 + (count - 1) * decay)
            param.add_(g.new(g._indices(), g._values() / root, g.size()), alpha=-rate)


adagrad = functional(
    Adagrad,
    "params grads state_sums state_steps",
    "fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
)
