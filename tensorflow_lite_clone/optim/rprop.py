"""Rprop."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record, State, functional
from tensorflow_lite_clone.optim.rule import step
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Rprop", "rprop"]


@step()
def rprop_step(F: Any, h: Any, p: Any, g: Any, before: Any, size: Any) -> tuple:
    """The rule of `Rprop`."""
    smaller, larger = h.etas
    g = -g if h.maximize else g
    agreement = g * before
    grown = F.where(agreement > 0, size * larger, size)
    size = F.clip(F.where(agreement < 0, size * smaller, grown), *h.step_sizes)
    g = F.where(agreement < 0, F.zeros_like(g), g)
    return p - F.sign(g) * size, g, size


class Rprop(Optimizer):
    """Rprop: steps by the sign of the gradient alone, p = p - s sign(g).

    The size s, which is `lr` at first, is multiplied by ``etas[1]`` where g keeps its sign, and by
    ``etas[0]`` where that turns, within `step_sizes`. Where the sign turns, the parameter rests and
    g counts as 0. `maximize` negates g. `foreach` and `capturable` change nothing. Raises
    ValueError for a negative `lr` or `etas` that are not on both sides of 1. Source: Riedmiller and
    Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm"
    (1993).

        optimizer = torch.optim.Rprop(model.parameters(), lr=1e-2)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        rprop_step,
        (STEP, State("prev"), State("step_size", begin="lr")),
        order="lr etas step_sizes foreach maximize differentiable capturable",
        newer="foreach maximize differentiable capturable",
        unread="lr",
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_hyperparameters(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, self.hyperparameters(locals()))


rprop = functional(
    Rprop,
    "params grads prevs step_sizes state_steps",
    "foreach capturable maximize differentiable has_complex",
)
