"""SparseAdam."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.optim.arguments import check_hyperparameters, check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import Record
from tensorflow_lite_clone.tensor import Tensor


class SparseAdam(Optimizer):
    """Adam for sparse gradients, as ``torch.optim.SparseAdam``: what has no gradient stays.

    Moments are dense. RuntimeError for dense gradients.
    """

    _record = Record()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_hyperparameters(lr=lr, betas=betas)
        super().__init__(params, self.hyperparameters(locals()))
        sparse = [
            [number, index]
            for number, group in enumerate(self.param_groups)
            for index, param in enumerate(group["params"])
            if param.is_sparse
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )
        found = [
            [number, index]
            for number, group in enumerate(self.param_groups)
            for index, param in enumerate(group["params"])
            if param.is_complex()
        ]
        if found:
            raise ValueError(
                f"Complex params at indices {found}: SparseAdam does not support complex parameters"
            )

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        """Always RuntimeError: `Adam` takes dense gradients."""
        raise RuntimeError(
            "SparseAdam does not support dense gradients, please consider Adam instead"
        )

    def _without_sparse(self, group: dict[str, Any], params: list[Tensor]) -> list[Tensor]:
        dense = [p for p in params if p._grad is not None and not p._grad.is_sparse]
        return dense or super()._without_sparse(group, params)  # nothing is updated beside dense

    def update_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Any]) -> None:
        """As `sparse_adam`."""
        for param in params:
            self.state[param].setdefault("step", 0)
        means, squares = self.states(params, exp_avg=zeros_like, exp_avg_sq=zeros_like)
        for param in params:
            self.state[param]["step"] += 1
        steps = [self.state[param]["step"] for param in params]
        numbers = self._numbers(group)
        beta1, beta2 = numbers.pop("betas")
        sparse_adam(params, grads, means, squares, steps, beta1=beta1, beta2=beta2, **numbers)


def sparse_adam(
    params: list[Tensor],
    grads: list[Any],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """With the gradient g at its places, and nothing elsewhere:

    m = m + (1 - beta1) (g - m),   v = v + (1 - beta2) (g^2 - v)
    p = p - lr sqrt(1 - beta2^step) / (1 - beta1^step) m / (sqrt(v) + eps)

    `state_steps` count this step already.
    """
    states = zip(exp_avgs, exp_avg_sqs, state_steps, strict=True)
    for param, g, (mean, square, step) in zip(params, grads, states, strict=True):
        g = (-g if maximize else g).coalesce()
        if not g._nnz():
            continue
        values = g._values()
        m, v = mean.sparse_mask(g)._values(), square.sparse_mask(g)._values()
        m_change, v_change = (values - m) * (1 - beta1), (values * values - v) * (1 - beta2)
        mean.add_(_at(g, m_change))
        square.add_(_at(g, v_change))
        moved = (m + m_change) / ((v + v_change).sqrt() + eps)
        rate = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        param.add_(_at(g, moved * -rate))


def _at(g: Any, values: Tensor) -> Any:
    """A sparse tensor of `values` at the places of g."""
    return g.new(g._indices(), values, g.size())
