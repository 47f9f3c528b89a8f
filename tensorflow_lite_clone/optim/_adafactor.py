"""Adafactor."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.optim.arguments import check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import STEP, Record
from tensorflow_lite_clone.optim.rule import narrowed, square_root, step, widened
from tensorflow_lite_clone.tensor import Tensor


@step("steps", "least")
def adafactor_step(
    F: Any, h: Any, p: Any, g: Any, row: Any, column: Any, variance: Any, count: Any, eps1: float
) -> tuple:
    """The rule of `Adafactor`; v is a row and a column of means, or a variance per element."""
    g = -g if h.maximize else g
    count = widened(F, count)
    weight = narrowed(F, count**h.beta2_decay, p)
    rate = narrowed(F, _smaller(F, h.lr, 1 / square_root(F, count)), p)
    alpha = F.clip(_root_mean_square(F, p), h.eps[1], None) * rate
    if h.weight_decay:
        p = p * (1 - h.lr * h.weight_decay)
    square = g * g
    if p.ndim > 1:
        row = row + (F.mean(square, axis=-1, keepdims=True) - row) * weight
        column = column + (F.mean(square, axis=-2, keepdims=True) - column) * weight
        v = row * column / F.clip(F.mean(row, axis=-2, keepdims=True), eps1, None)
    else:
        v = variance = variance + (square - variance) * weight
    u = g / F.sqrt(F.clip(v, eps1 * eps1, None))
    excess = F.clip(_root_mean_square(F, u) / h.d, 1.0, None)
    return p - (alpha / excess) * u, row, column, variance


def _smaller(F: Any, a: Any, b: Any) -> Any:
    """The smaller one of two numbers, which may be zero-dim arrays."""
    if isinstance(a, float):
        return min(a, b) if isinstance(b, float) else F.clip(b, None, a)
    return F.clip(a, None, b) if isinstance(b, float) else F.minimum(a, b)


def _root_mean_square(F: Any, x: Any) -> Any:
    return F.sqrt(F.mean(x * x))


class Adafactor(Optimizer):
    """Adafactor: Adam without momentum, with the squares' means by rows and columns alone.

    With the gradient g at step t, w being t^`beta2_decay` and RMS the root of the mean square::

        v = v + w (g^2 - v)
        u = g / sqrt(v)
        p = p - max(eps2, RMS(p)) min(lr, 1 / sqrt(t)) u / max(1, RMS(u) / d)

    Of a parameter of two or more dimensions only the means of v's rows and columns are kept. `eps`
    are a bound for parts of v (by default the dtype's) and eps2. `weight_decay` is decoupled;
    `maximize` negates g, and `foreach` changes nothing. Raises ValueError for a hyperparameter out
    of its range and RuntimeError for complex parameters. Source: Shazeer and Stern, "Adafactor:
    adaptive learning rates with sublinear memory cost" (2018).

        optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(adafactor_step, (STEP,), newer="foreach")

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
        super().__init__(params, self.hyperparameters(locals()))

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        if any([param.is_complex() for param in params]):
            raise RuntimeError("Adafactor does not support complex parameters")
        numbers, steps = self._numbers(group), self.count_steps(group, params)
        least = group["eps"][0]
        for factored in (True, False):
            chosen = [i for i, param in enumerate(params) if (param.dim() > 1) is factored]
            own, own_grads = [params[i] for i in chosen], [grads[i] for i in chosen]
            if factored:
                states = [*self.states(own, row_var=_first_column, col_var=_first_row), []]
            else:
                states = [[], [], *self.states(own, variance=zeros_like)]
            numbers["steps"] = [steps[i] for i in chosen]
            numbers["least"] = [finfo(p.dtype).eps if least is None else least for p in own]
            self.run(adafactor_step, (own, own_grads, *states), dict(numbers))


def _first_column(param: Tensor) -> Tensor:
    return zeros_like(param[..., :1])


def _first_row(param: Tensor) -> Tensor:
    return zeros_like(param[..., :1, :])
