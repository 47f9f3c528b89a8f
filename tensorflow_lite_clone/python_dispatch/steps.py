"""Optimizers' steps in place, one parameter after the other: where PyTorch's operations are seen.

Steps that are not here are the operations of their formulas, and a copy into each parameter.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.python_dispatch.calls import steps
from tensorflow_lite_clone.tensor import Tensor

_Tensors = list[Tensor]


def _sgd(
    params: _Tensors, grads: _Tensors, buffers: _Tensors, *, lr: Any, momentum: float,
    dampening: float, weight_decay: float, nesterov: bool, maximize: bool, first: list[bool],
) -> None:  # fmt: skip
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        g = -g if maximize else g
        if weight_decay:
            g = g.add(p, alpha=weight_decay)
        if momentum:
            if first[i]:
                buffers[i].copy_(g)
            else:
                buffers[i].mul_(momentum).add_(g, alpha=1 - dampening)
            g = g.add(buffers[i], alpha=momentum) if nesterov else buffers[i]
        p.add_(g, alpha=-float(lr))


def _adam(
    params: _Tensors, grads: _Tensors, means: _Tensors, squares: _Tensors, maxima: _Tensors, *,
    steps: list[Any], lr: Any, betas: tuple, eps: float, weight_decay: float, amsgrad: bool,
    decoupled_weight_decay: bool, maximize: bool,
) -> None:  # fmt: skip
    beta1, beta2 = [float(beta) for beta in betas]
    lr = float(lr)
    for i, (p, g, m, v) in enumerate(zip(params, grads, means, squares, strict=True)):
        g = -g if maximize else g
        if weight_decay and decoupled_weight_decay:
            p.mul_(1 - lr * weight_decay)
        elif weight_decay:
            g = g.add(p, alpha=weight_decay)
        m.lerp_(g, 1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        if amsgrad:
            v = maxima[i].copy_(maxima[i].maximum(v))
        step = float(steps[i])
        denominator = (v.sqrt() / math.sqrt(1 - beta2**step)).add_(eps)
        p.addcdiv_(m, denominator, value=-lr / (1 - beta1**step))


steps.update(sgd_step=_sgd, adam_step=_adam)
