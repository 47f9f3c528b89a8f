"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.optim.arguments import check_fused, check_hyperparameters
from tensorflow_lite_clone.optim.optimizer import Optimizer, ParamsT
from tensorflow_lite_clone.optim.record import Record, State, functional
from tensorflow_lite_clone.optim.rule import plus, step, times, with_penalty
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["SGD", "sgd"]


@step("first")
def sgd_step(F: Any, h: Any, p: Any, g: Any, b: Any, is_first: bool) -> tuple:
    """The rule of `SGD`; where `is_first`, there is no momentum yet."""
    g = with_penalty(F, h, p, g)
    if h.momentum:
        b = g if is_first else plus(F, times(F, b, h.momentum), g, 1 - h.dampening)
        g = plus(F, g, b, h.momentum) if h.nesterov else b
    return plus(F, p, g, -h.lr), b


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    With the gradient g, m being `momentum` and d `dampening`::

        b = m b + (1 - d) g    (at the first step b = g)
        p = p - lr b           (p = p - lr (g + m b) with `nesterov`)

    ``weight_decay * p`` is added to g, which `maximize` negates. `foreach` and `fused` change
    nothing. Gradients may be sparse, without weight decay. With `differentiable` gradients flow
    through the first momentum too, which PyTorch takes as a constant. Raises ValueError for a
    negative hyperparameter, and for `nesterov` without momentum or with dampening. Source:
    Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013), in
    PyTorch's form.

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        loss_fn(model(x), y).backward()
        optimizer.step()
    """

    _record = Record(
        sgd_step,
        (State("momentum_buffer", when="momentum"),),
        newer="nesterov maximize foreach differentiable fused",
        filled={"fused": False},
    )

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_hyperparameters(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, self.hyperparameters(locals()))
        check_fused(fused, foreach, differentiable)

    def update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        buffers: list[Any] = []
        first: list[bool] = []
        if group["momentum"]:
            buffers = [self.state[param].get("momentum_buffer") for param in params]
            first = _begin(params, buffers)
            if True in first:
                for param, buffer in zip(params, buffers, strict=True):
                    self.state[param]["momentum_buffer"] = buffer
        self.run(sgd_step, (params, grads, buffers), {**self._numbers(group), "first": first})

    def _run_rule(
        self, numbers: dict, params: list[Tensor], grads: list[Tensor], states: dict[str, list]
    ) -> None:
        buffers = states.get("momentum_buffer", [])
        numbers["first"] = _begin(params, buffers)
        self.run(sgd_step, (params, grads, buffers), numbers)

    def update_sparse(self, group: dict[str, Any], params: list[Tensor], grads: list[Any]) -> None:
        """As `sgd_step`; momenta are sparse, with the places of all gradients so far."""
        if group["fused"]:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        momentum, lr = self.number(group, "momentum"), self.number(group, "lr")
        for param, g in zip(params, grads, strict=True):
            if group["maximize"]:
                g = -g
            if group["weight_decay"]:
                g = g.add(param, alpha=self.number(group, "weight_decay"))  # raises, as in PyTorch
            if momentum:
                buffer: Any = self.state[param].get("momentum_buffer")
                if buffer is None:
                    buffer = self.state[param]["momentum_buffer"] = g.clone().detach()
                else:
                    buffer.mul_(momentum).add_(g, alpha=1 - self.number(group, "dampening"))
                g = g.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            param.add_(g, alpha=-lr)


def _begin(params: list[Tensor], buffers: list[Any]) -> list[bool]:
    """Whether each parameter's momentum is None; zeros take the places of those in the list."""
    first = [buffer is None for buffer in buffers]
    if True in first:
        begun = zip(params, buffers, first, strict=True)
        buffers[:] = [zeros_like(p) if is_first else b for p, b, is_first in begun]
    return first


sgd = functional(
    SGD,
    "params d_p_list momentum_buffer_list",
    "has_sparse_grad foreach fused grad_scale found_inf",
)
