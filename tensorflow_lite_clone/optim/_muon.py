"""Muon."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.dtypes import bfloat16, float32
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.optim.arguments import check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import Record, State
from tensorflow_lite_clone.optim.rule import step
from tensorflow_lite_clone.tensor import Tensor


@step()
def muon_step(F: Any, h: Any, p: Any, g: Any, b: Any) -> tuple:
    """The rule of `Muon`."""
    b = b + (g - b) * (1 - h.momentum)
    g = g + (b - g) * h.momentum if h.nesterov else b
    g = F.orthogonal(g, coefficients=h.ns_coefficients, eps=h.eps, iterations=h.ns_steps)
    scale = _scale(p.shape, h.adjust_lr_fn)
    p = p * (1 - h.lr * h.weight_decay) if h.weight_decay else p
    return p - (h.lr * scale) * g, b


def _scale(shape: tuple[int, int], rule: str | None) -> float:
    """What the rate of a matrix is multiplied by, for updates of like size in all shapes."""
    rows, columns = shape
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


@composite
def orthogonal(F, g, *, coefficients, eps, iterations):
    """U V^T of the singular value decomposition of `g`, roughly, by Newton-Schulz iterations.

    X = a X + (b A + c A^2) X with A = X X^T, every result rounded to bfloat16.
    """
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = _rounded(F, F.matrix_transpose(g) if tall else g)
    norm = _rounded(F, F.sqrt(F.sum(x * x)))
    x = _rounded(F, x / F.clip(norm, eps, None))
    for _ in range(iterations):
        gram = _rounded(F, F.matmul(x, F.matrix_transpose(x)))
        factor = _rounded(F, b * gram + c * F.matmul(gram, gram))
        x = _rounded(F, a * x + F.matmul(factor, x))
    return F.matrix_transpose(x) if tall else x


def _rounded(F: Any, x: Any) -> Any:
    return F.astype(F.astype(x, bfloat16), float32)


class Muon(Optimizer):
    """Muon: steps by the momentum of a matrix, made orthogonal.

    With the gradient g, the momentum b and ``momentum`` m::

        b = b + (1 - m) (g - b)
        p = (1 - lr weight_decay) p - lr s O

    O is nearly U V^T, where U S V^T is the singular value decomposition of b, or with `nesterov` of
    m b + (1 - m) g: `ns_steps` Newton-Schulz iterations with `ns_coefficients`, in bfloat16. The
    factor s makes up for the shape as `adjust_lr_fn` says: ``"original"`` (None) or
    ``"match_rms_adamw"``. Raises ValueError for parameters that have not two dimensions, for
    another `adjust_lr_fn` and for negative hyperparameters, and RuntimeError for complex
    parameters. Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks"
    (2024).

        optimizer = torch.optim.Muon([layer.weight for layer in hidden_layers], lr=0.02)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(muon_step, (State("momentum_buffer"),))

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
        super().__init__(params, self.hyperparameters(locals()))
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
        super().update(group, params, grads)
