"""Steps of further optimizers: composites over lists of arrays, as those of `update`.

`steps` are step counts: Python floats on the CPU, zero-dim float32 arrays on other devices. What is
derived from a count is then an array as well, of float32 or, beside float64 parameters, float64.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.dtypes import bfloat16, float32, float64
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.ops.update import _decayed, _unless


def _wide(F: Any, step: Any) -> Any:
    """A step count for formulas that cancel: a float, or a float64 array."""
    return step if isinstance(step, float) else F.astype(step, float64)


def _beside(F: Any, x: Any, p: Any) -> Any:
    """A number derived from a count, in a dtype that does not widen formulas with `p`."""
    if isinstance(x, float):
        return x
    return F.astype(x, p.dtype if p.dtype.itemsize == 8 else float32)


def _sqrt(F: Any, x: Any) -> Any:
    return math.sqrt(x) if isinstance(x, float) else F.sqrt(x)


def _prepared(p: Any, g: Any, lr: Any, weight_decay: Any, decoupled: bool, maximize: bool) -> tuple:
    """Parameter and gradient with weight decay in the one or the other."""
    if decoupled:
        return (p * (1 - lr * weight_decay) if weight_decay else p), (-g if maximize else g)
    return p, _decayed(g, p, weight_decay, maximize)


@composite
def adadelta_step(
    F,
    params,
    grads,
    squares,
    deltas,
    *,
    lr,
    rho,
    eps,
    weight_decay,
    maximize,
    found_inf=None,
):
    """Adadelta: v = r v + (1 - r) g^2, d = sqrt(u + eps) / sqrt(v + eps) g, p = p - lr d.

    u is the running mean of d^2. Source: Zeiler, "ADADELTA: an adaptive learning rate method"
    (2012).
    """
    new_params, new_squares, new_deltas = [], [], []
    for p, g, v, u in zip(params, grads, squares, deltas, strict=True):
        g = _decayed(g, p, weight_decay, maximize)
        v = v * rho + ((1 - rho) * g) * g
        delta = F.sqrt(u + eps) / F.sqrt(v + eps) * g
        new_params.append(p - lr * delta)
        new_squares.append(v)
        new_deltas.append(u * rho + ((1 - rho) * delta) * delta)
    return _unless(F, found_inf, (params, new_params), (squares, new_squares), (deltas, new_deltas))


@composite
def adamax_step(
    F,
    params,
    grads,
    means,
    maxima,
    *,
    steps,
    lr,
    betas,
    eps,
    weight_decay,
    maximize,
    found_inf=None,
):
    """Adamax: m = b1 m + (1 - b1) g, u = max(b2 u, |g| + eps), p = p - lr / (1 - b1^t) m / u.

    Source: Kingma and Ba, "Adam" (2015), section 7.
    """
    beta1, beta2 = betas
    new_params, new_means, new_maxima = [], [], []
    for p, g, m, u, step in zip(params, grads, means, maxima, steps, strict=True):
        g = _decayed(g, p, weight_decay, maximize)
        m = m + (g - m) * (1 - beta1)
        u = F.maximum(u * beta2, F.abs(g) + eps)
        rate = _beside(F, lr / (1 - beta1 ** _wide(F, step)), p)
        new_params.append(p - (rate * m) / u)
        new_means.append(m)
        new_maxima.append(u)
    return _unless(F, found_inf, (params, new_params), (means, new_means), (maxima, new_maxima))


def _momentum(beta1: Any, step: Any, momentum_decay: float) -> Any:
    """NAdam's schedule: b1 (1 - 0.96^(t psi) / 2)."""
    return beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))


@composite
def nadam_products(F, products, *, steps, beta1, momentum_decay, found_inf=None):
    """The product of all momenta mu_1 ... mu_t."""
    news = []
    for product, step in zip(products, steps, strict=True):
        momentum = _momentum(beta1, _wide(F, step), momentum_decay)
        news.append(
            product * (momentum if isinstance(step, float) else F.astype(momentum, product.dtype))
        )
    return _unless(F, found_inf, (products, news))


@composite
def nadam_step(
    F,
    params,
    grads,
    means,
    squares,
    *,
    steps,
    products,
    lr,
    betas,
    eps,
    weight_decay,
    momentum_decay,
    decoupled,
    maximize,
    found_inf=None,
):
    """NAdam, where `products` are those of the momenta, mu_t's included.

    p = p - lr ((1 - mu_t) / (1 - prod_t) g + mu_t+1 / (1 - prod_t mu_t+1) m) / d, with Adam's m and
    v, and d = sqrt(v / (1 - b2^t)) + eps. Source: Dozat, "Incorporating Nesterov momentum into
    Adam" (2016).
    """
    beta1, beta2 = betas
    new_params, new_means, new_squares = [], [], []
    for i, (p, g, m, v) in enumerate(zip(params, grads, means, squares, strict=True)):
        p, g = _prepared(p, g, lr, weight_decay, decoupled, maximize)
        m = m + (g - m) * (1 - beta1)
        v = v * beta2 + ((1 - beta2) * g) * g
        step, product = _wide(F, steps[i]), _wide(F, products[i])
        now = _momentum(beta1, step, momentum_decay)
        coming = _momentum(beta1, step + 1, momentum_decay)
        denominator = F.sqrt(v / _beside(F, 1 - beta2**step, p)) + eps
        by_gradient = _beside(F, lr * (1 - now) / (1 - product), p)
        by_mean = _beside(F, lr * coming / (1 - product * coming), p)
        p = p - (by_gradient * g) / denominator
        new_params.append(p - (by_mean * m) / denominator)
        new_means.append(m)
        new_squares.append(v)
    return _unless(F, found_inf, (params, new_params), (means, new_means), (squares, new_squares))


@composite
def radam_step(
    F,
    params,
    grads,
    means,
    squares,
    *,
    steps,
    lr,
    betas,
    eps,
    weight_decay,
    decoupled,
    maximize,
    found_inf=None,
):
    """RAdam: Adam's step times r_t where the variance of v is tractable, else momentum alone.

    With rho = 2 / (1 - b2) - 1 and rho_t = rho - 2 t b2^t / (1 - b2^t), that is where rho_t > 5,
    and r_t^2 = (rho_t - 4) (rho_t - 2) rho / ((rho - 4) (rho - 2) rho_t). Source: Liu et al., "On
    the variance of the adaptive learning rate and beyond" (2020).
    """
    beta1, beta2 = betas
    limit = 2 / (1 - beta2) - 1
    new_params, new_means, new_squares = [], [], []
    for p, g, m, v, step in zip(params, grads, means, squares, steps, strict=True):
        p, g = _prepared(p, g, lr, weight_decay, decoupled, maximize)
        m = m + (g - m) * (1 - beta1)
        v = v * beta2 + ((1 - beta2) * g) * g
        step = _wide(F, step)
        share2 = 1 - beta2**step
        length = limit - 2 * step * beta2**step / share2
        direction = m / _beside(F, 1 - beta1**step, p) * lr
        if not isinstance(length, float):
            factor = _rectification(F, F.clip(length, 5.0, None), limit) * F.sqrt(share2)
            rectified = direction * _beside(F, factor, p) / (F.sqrt(v) + eps)
            direction = F.where(length > 5, rectified, direction)
        elif length > 5:
            adaptive = _sqrt(F, share2) / (F.sqrt(v) + eps)
            direction = direction * adaptive * _rectification(F, length, limit)
        new_params.append(p - direction)
        new_means.append(m)
        new_squares.append(v)
    return _unless(F, found_inf, (params, new_params), (means, new_means), (squares, new_squares))


def _rectification(F: Any, length: Any, limit: float) -> Any:
    square = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
    return _sqrt(F, square)


@composite
def rprop_step(
    F,
    params,
    grads,
    previous,
    sizes,
    *,
    etas,
    step_sizes,
    maximize,
    found_inf=None,
):
    """Rprop: p = p - s sign(g); s grows where g keeps its sign and shrinks where that turns.

    Where it turns, the parameter rests and g counts as 0. Source: Riedmiller and Braun, "A direct
    adaptive method for faster backpropagation learning: the RPROP algorithm" (1993).
    """
    smaller, larger = etas
    low, high = step_sizes
    new_params, new_previous, new_sizes = [], [], []
    for p, g, before, s in zip(params, grads, previous, sizes, strict=True):
        g = -g if maximize else g
        agreement = g * before
        grown = F.where(agreement > 0, s * larger, s)
        s = F.clip(F.where(agreement < 0, s * smaller, grown), low, high)
        g = F.where(agreement < 0, F.zeros_like(g), g)
        new_params.append(p - F.sign(g) * s)
        new_previous.append(g)
        new_sizes.append(s)
    return _unless(F, found_inf, (params, new_params), (previous, new_previous), (sizes, new_sizes))


@composite
def asgd_step(
    F,
    params,
    grads,
    averages,
    *,
    etas,
    mus,
    lambd,
    weight_decay,
    maximize,
    found_inf=None,
):
    """Averaged SGD: p = (1 - lambda eta) p - eta g, a = a + mu (p - a).

    Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992).
    """
    new_params, new_averages = [], []
    for p, g, a, eta, mu in zip(params, grads, averages, etas, mus, strict=True):
        g = _decayed(g, p, weight_decay, maximize)
        eta, mu = _beside(F, eta, p), _beside(F, mu, p)
        p = p * (1 - lambd * eta) - eta * g
        mean = a + (p - a) * mu
        if isinstance(mu, float):  # two results are two arrays, whatever the number is
            new_averages.append(F.copy(p) if mu == 1 else mean)
        else:
            new_averages.append(F.where(mu == 1, p, mean))
        new_params.append(p)
    return _unless(F, found_inf, (params, new_params), (averages, new_averages))


@composite
def asgd_rates(F, etas, mus, *, steps, lr, lambd, alpha, t0, found_inf=None):
    """The next rates: eta = lr / (1 + lambda lr t)^alpha, mu = 1 / max(1, t - t0)."""
    new_etas, new_mus = [], []
    for step in steps:
        step = _wide(F, step)
        new_etas.append(lr / (1 + lambd * lr * step) ** alpha)
        age = step - t0
        new_mus.append(1 / (max(1.0, age) if isinstance(age, float) else F.clip(age, 1.0, None)))
    return _unless(F, found_inf, (etas, new_etas), (mus, new_mus))


@composite
def adafactor_step(
    F,
    params,
    grads,
    rows,
    columns,
    variances,
    *,
    steps,
    lr,
    beta2_decay,
    least,
    eps2,
    threshold,
    weight_decay,
    maximize,
    found_inf=None,
):
    """Adafactor: p = p - alpha u / max(1, RMS(u) / d), where u = g / sqrt(v).

    alpha = max(eps2, RMS(p)) min(lr, 1 / sqrt(t)). v is a running mean of
    g^2 with the weight t^beta2_decay for what is new; `least` has bounds for its parts. A parameter
    of two or more dimensions has only the means of its rows and columns, in the order in which such
    parameters come; the others have `variances`. Source: Shazeer and Stern,
    "Adafactor: adaptive learning rates with sublinear memory cost" (2018).
    """
    new_params, new_rows, new_columns, new_variances = [], [], [], []
    for p, g, step, eps1 in zip(params, grads, steps, least, strict=True):
        g = -g if maximize else g
        step = _wide(F, step)
        weight = _beside(F, step**beta2_decay, p)
        rate = _beside(F, _least(F, lr, 1 / _sqrt(F, step)), p)
        alpha = F.clip(_root_mean_square(F, p), eps2, None) * rate
        if weight_decay:
            p = p * (1 - lr * weight_decay)
        square = g * g
        if p.ndim > 1:
            row, column = rows[len(new_rows)], columns[len(new_columns)]
            row = row + (F.mean(square, axis=-1, keepdims=True) - row) * weight
            column = column + (F.mean(square, axis=-2, keepdims=True) - column) * weight
            new_rows.append(row)
            new_columns.append(column)
            mean = F.mean(row, axis=-2, keepdims=True)
            variance = row * column / F.clip(mean, eps1, None)
        else:
            variance = variances[len(new_variances)]
            variance = variance + (square - variance) * weight
            new_variances.append(variance)
        u = g / F.sqrt(F.clip(variance, eps1 * eps1, None))
        excess = F.clip(_root_mean_square(F, u) / threshold, 1.0, None)
        new_params.append(p - (alpha / excess) * u)
    return _unless(
        F,
        found_inf,
        (params, new_params),
        (rows, new_rows),
        (columns, new_columns),
        (variances, new_variances),
    )


def _least(F: Any, a: Any, b: Any) -> Any:
    """The smaller one of two numbers, which may be zero-dim arrays."""
    if isinstance(a, float):
        return min(a, b) if isinstance(b, float) else F.clip(b, None, a)
    return F.clip(a, None, b) if isinstance(b, float) else F.minimum(a, b)


def _root_mean_square(F: Any, x: Any) -> Any:
    return F.sqrt(F.mean(x * x))


@composite
def muon_step(
    F,
    params,
    grads,
    buffers,
    *,
    lr,
    weight_decay,
    momentum,
    nesterov,
    coefficients,
    eps,
    iterations,
    scales,
    found_inf=None,
):
    """Muon: p = (1 - lr w) p - lr s O, where O is nearly the momentum made orthogonal.

    `scales` has a factor s of the rate for each parameter's shape. Source: Jordan et al., "Muon: an
    optimizer for hidden layers in neural networks" (2024).
    """
    new_params, new_buffers = [], []
    for p, g, b, scale in zip(params, grads, buffers, scales, strict=True):
        b = b + (g - b) * (1 - momentum)
        g = g + (b - g) * momentum if nesterov else b
        g = F.orthogonal(g, coefficients=coefficients, eps=eps, iterations=iterations)
        p = p * (1 - lr * weight_decay) if weight_decay else p
        new_params.append(p - (lr * scale) * g)
        new_buffers.append(b)
    return _unless(F, found_inf, (params, new_params), (buffers, new_buffers))


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
