"""Lion, an optimizer from outside the package: for every device, with a kernel for CUDA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorflow_lite_clone import Tensor
from tensorflow_lite_clone.kernels import Kernel, fused_step
from tensorflow_lite_clone.kernels.steps import complement, function_of
from tensorflow_lite_clone.optim.arguments import check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import Record, State, functional
from tensorflow_lite_clone.optim.rule import step


@step()
def lion_step(F: Any, h: Any, p: Any, g: Any, m: Any) -> tuple:
    """The rule of `Lion`."""
    beta1, beta2 = h.betas
    g = -g if h.maximize else g
    direction = F.sign(m + (g - m) * (1 - beta1))
    p = p * (1 - h.lr * h.weight_decay) if h.weight_decay else p
    return p - h.lr * direction, m + (g - m) * (1 - beta2)


class Lion(Optimizer):
    """Lion: steps of one size, by the sign of the momentum.

    With the gradient g, b1 and b2 being `betas`::

        c = b1 m + (1 - b1) g
        p = p - lr (sign(c) + weight_decay p)
        m = b2 m + (1 - b2) g

    `maximize` negates g. `foreach` and `capturable` change nothing. Raises ValueError for a
    negative hyperparameter or a beta outside of [0, 1), and RuntimeError for sparse gradients.
    Source: Chen et al., "Symbolic discovery of optimization algorithms" (2023), algorithm 2.

        optimizer = Lion(model.parameters(), lr=1e-4, weight_decay=0.1)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(lion_step, (State("exp_avg"),))

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_hyperparameters(lr=lr, betas=betas, weight_decay=weight_decay)
        super().__init__(params, self.hyperparameters(locals()))


lion = functional(
    Lion,
    "params grads exp_avgs",
    "foreach capturable differentiable found_inf",
)


def numbers(h: Any) -> tuple:
    """What the kernel takes by value: lr, 1 - b1, 1 - b2, decay."""
    return h.lr, *[function_of(beta, complement) for beta in h.betas], h.weight_decay


KERNEL = Kernel(Path(__file__).with_name("lion.cu"), "lion_step", params=("T",))
fused_step("lion_step", KERNEL, numbers)
