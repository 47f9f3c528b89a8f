"""SparseAdam."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.ops.create import zeros_like
from tensorflow_lite_clone.ops.steps import sparse_adam_step
from tensorflow_lite_clone.optim.arguments import check_betas, check_one_element
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.tensor import Tensor


class SparseAdam(Optimizer):
    """Adam that leaves out rows without a gradient, as ``torch.optim.SparseAdam``.

    Gradients are dense here, those of ``Embedding(sparse=True)`` too; a row whose entries
    are all zero counts as absent. See `sparse_adam_step`.
    """

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
        check_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
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
        for param in params:
            self.state[param].setdefault("step", 0)
        means, squares = self.states(params, exp_avg=zeros_like, exp_avg_sq=zeros_like)
        for param in params:
            self.state[param]["step"] += 1
        self.run(
            sparse_adam_step,
            params,
            grads,
            means,
            squares,
            steps=[self.state[param]["step"] for param in params],
            lr=self.number(group, "lr"),
            betas=self.number(group, "betas"),
            eps=group["eps"],
            maximize=group["maximize"],
        )
