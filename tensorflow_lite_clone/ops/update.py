"""Optimizer steps: composites over lists of parameters, gradients and states.

A step takes parallel lists of arrays and static numbers, and returns the new values of all lists
but the gradients; a device may override it with one fused kernel that writes in place and returns
None. They are the only composites that own what they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from tensorflow_lite_clone.autograd.inplace import write
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.dispatch.table import resolve
from tensorflow_lite_clone.tensor import Tensor


def update(
    step: Callable[..., Any],
    parameters: list[Tensor],
    gradients: list[Tensor],
    *states: list[Tensor],
    **numbers: Any,
) -> None:
    """Run `step` on tensors of one device and write what it returns back into them."""
    if not parameters:
        return
    backend = parameters[0]._storage.backend
    lists = [[t._storage.array for t in tensors] for tensors in (parameters, gradients, *states)]
    results = resolve(step, backend)(*lists, **numbers)
    if results is None:
        for tensors in (parameters, *states):
            for tensor in tensors:
                tensor._storage.bump()
        return
    for tensors, values in zip((parameters, *states), results, strict=True):
        for tensor, value in zip(tensors, values, strict=True):
            write(tensor, value)


def _decayed(g: Any, p: Any, weight_decay: float, maximize: bool) -> Any:
    """The gradient of the loss to be minimised plus the L2 penalty's."""
    if maximize:
        g = -g
    return g + weight_decay * p if weight_decay else g


@composite
def sgd_step(
    F, params, grads, buffers, *, lr, momentum, dampening, weight_decay, nesterov, maximize, first
):
    """Stochastic gradient descent with momentum: b = mu b + (1 - d) g, p = p - lr b.

    `first[i]` says that parameter i has no momentum buffer yet; b is then g itself. Source:
    Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013),
    in PyTorch's form.
    """
    new_params, new_buffers = [], []
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        g = _decayed(g, p, weight_decay, maximize)
        if momentum:
            b = g if first[i] else buffers[i] * momentum + g * (1 - dampening)
            new_buffers.append(b)
            g = g + momentum * b if nesterov else b
        new_params.append(p - lr * g)
    return new_params, new_buffers


@composite
def adam_step(
    F,
    params,
    grads,
    means,
    squares,
    maxima,
    *,
    steps,
    lr,
    betas,
    eps,
    weight_decay,
    decoupled,
    amsgrad,
    maximize,
):
    """Adam; with `decoupled` weight decay AdamW, with `amsgrad` the running maximum of v.

    m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
    p = p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps).
    Sources: Kingma and Ba, "Adam" (2015); Loshchilov and Hutter, "Decoupled weight decay
    regularization" (2019); Reddi et al., "On the convergence of Adam and beyond" (2018).
    """
    beta1, beta2 = betas
    new_params, new_means, new_squares, new_maxima = [], [], [], []
    for i, (p, g, m, v) in enumerate(zip(params, grads, means, squares, strict=True)):
        if decoupled:
            g = -g if maximize else g
            p = p * (1 - lr * weight_decay) if weight_decay else p
        else:
            g = _decayed(g, p, weight_decay, maximize)
        m = m + (g - m) * (1 - beta1)
        v = v * beta2 + (g * g) * (1 - beta2)
        largest = v
        if amsgrad:
            largest = F.maximum(maxima[i], v)
            new_maxima.append(largest)
        denominator = F.sqrt(largest) / sqrt(1 - beta2 ** steps[i]) + eps
        new_params.append(p - (m / denominator) * (lr / (1 - beta1 ** steps[i])))
        new_means.append(m)
        new_squares.append(v)
    return new_params, new_means, new_squares, new_maxima


@composite
def rmsprop_step(
    F,
    params,
    grads,
    squares,
    averages,
    buffers,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
    maximize,
):
    """RMSprop: v = a v + (1 - a) g^2, p = p - lr g / (sqrt(v) + eps).

    `centered` subtracts the squared running mean of g from v. Sources: Tieleman and Hinton,
    "Lecture 6.5 - RMSProp" (2012); Graves, "Generating sequences with recurrent neural networks"
    (2013) for the centered form.
    """
    new_params, new_squares, new_averages, new_buffers = [], [], [], []
    for i, (p, g, v) in enumerate(zip(params, grads, squares, strict=True)):
        g = _decayed(g, p, weight_decay, maximize)
        v = v * alpha + (g * g) * (1 - alpha)
        new_squares.append(v)
        if centered:
            a = averages[i] + (g - averages[i]) * (1 - alpha)
            new_averages.append(a)
            denominator = F.sqrt(v - a * a) + eps
        else:
            denominator = F.sqrt(v) + eps
        direction = g / denominator
        if momentum:
            direction = buffers[i] * momentum + direction
            new_buffers.append(direction)
        new_params.append(p - lr * direction)
    return new_params, new_squares, new_averages, new_buffers


@composite
def adagrad_step(F, params, grads, sums, *, steps, lr, lr_decay, weight_decay, eps, maximize):
    """Adagrad: s = s + g^2, p = p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps).

    Source: Duchi et al., "Adaptive subgradient methods" (2011).
    """
    new_params, new_sums = [], []
    for i, (p, g, s) in enumerate(zip(params, grads, sums, strict=True)):
        g = _decayed(g, p, weight_decay, maximize)
        s = s + g * g
        rate = lr / (1 + (steps[i] - 1) * lr_decay)
        new_params.append(p - rate * (g / (F.sqrt(s) + eps)))
        new_sums.append(s)
    return new_params, new_sums
