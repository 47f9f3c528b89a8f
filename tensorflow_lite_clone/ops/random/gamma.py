"""Binomial, gamma and Dirichlet numbers, and the gradients of the latter two."""

from __future__ import annotations

from tensorflow_lite_clone.autograd.apply import apply, together
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.random._implicit import beta_gradient, gamma_gradient
from tensorflow_lite_clone.ops.random.generators import Generator, as_drawn, drawing, source_of
from tensorflow_lite_clone.tensor import Tensor


class Binomial(Op):
    """Binomial numbers. They are drawn and recorded by hand, as those below."""

    def forward(F, count, prob):
        raise NotImplementedError("random numbers are drawn from generators")

    def backward(F, g, *, needs):
        raise RuntimeError("derivative for aten::binomial is not implemented")


class StandardGamma(Op):
    """Gamma numbers of rate 1."""

    def forward(F, alpha):
        raise NotImplementedError("random numbers are drawn from generators")

    def backward_alpha(F, g, alpha, out):
        return g * F.standard_gamma_grad(alpha, out)


class StandardGammaGrad(Op):
    """dx/dalpha of gamma numbers x, at a fixed place in the stream."""

    def forward(F, alpha, x):
        slope = gamma_gradient(F, F.astype(alpha, F.float64), F.astype(x, F.float64))
        return F.astype(F.where(x > 0, slope, 0.0), x.dtype)

    def backward_alpha(F, g):
        raise NotImplementedError("the derivative for '_standard_gamma_grad' is not implemented.")


class SampleDirichlet(Op):
    """Points of the simplex over the last axis."""

    def forward(F, alpha):
        raise NotImplementedError("random numbers are drawn from generators")

    def backward_alpha(F, g, alpha, out):
        # dx[j] / dalpha[i] = slope[i] ((i == j) - x[j])
        total = F.broadcast_to(F.sum(alpha, axis=-1, keepdims=True), alpha.shape)
        inner = F.sum(out * g, axis=-1, keepdims=True)
        return F.dirichlet_grad(out, alpha, total) * (g - inner)


class DirichletGrad(Op):
    """dx/dalpha / (1 - x) of beta numbers x of alpha and total - alpha."""

    def forward(F, x, alpha, total):
        wide = [F.astype(value, F.float64) for value in (x, alpha, total)]
        return F.astype(F.where(x > 0, beta_gradient(F, *wide), 0.0), x.dtype)

    def backward(F, g, *, needs):
        raise NotImplementedError("the derivative for '_dirichlet_grad' is not implemented.")


def _expect_float(kernel: str, *tensors: Tensor) -> None:
    """NotImplementedError for other dtypes than float32 and float64; RuntimeError for a mix."""
    first = tensors[0].dtype
    for tensor in tensors[1:]:
        if tensor.dtype != first:
            raise RuntimeError(
                f"Found dtype {tensor.dtype.short_name} but expected {first.short_name}"
            )
    if first not in (dtypes.float32, dtypes.float64):
        refuse(kernel, first)


def _common_shape(*tensors: Tensor) -> list[Tensor]:
    if len({tensor._storage.backend for tensor in tensors}) > 1:
        tensors = together(tensors, StandardGammaGrad)
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return [tensor.expand(shape) for tensor in tensors]


@public("torch")
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of successes in `count` trials of probability `prob`; the two broadcast.

    float32 or float64. On the CPU PyTorch's numbers, except for float32 counts above 2**24.
    ValueError: `count` of integers; NotImplementedError: another dtype.
    """
    if not count.is_floating_point():
        raise ValueError(
            f"binomial only supports floating-point dtypes for count, got: {count.dtype.short_name}"
        )
    if not prob.is_floating_point():
        raise ValueError(
            f"binomial only supports floating-point dtypes for prob, got: {prob.dtype.short_name}"
        )
    count, prob = _common_shape(drawing(count), drawing(prob))
    _expect_float("binomial_cpu", count, prob)
    source = source_of(generator, count._storage.backend)
    array = source.binomial(count._storage.array, prob._storage.array)
    return as_drawn(array, Binomial, count, prob)


@public("torch", names=("_standard_gamma",))
def standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Gamma numbers of the shapes that `input` holds and rate 1, differentiable by `input`.

    float32 or float64 (else NotImplementedError); at least the dtype's smallest normal number.
    Marsaglia and Tsang (2000); on the CPU PyTorch's numbers.
    """
    _expect_float("gamma_cpu", input)
    input = drawing(input)
    source = source_of(generator, input._storage.backend)
    return as_drawn(source.standard_gamma(input._storage.array), StandardGamma, input)


@public("torch", names=("_standard_gamma_grad",))
def standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """The derivatives of gamma numbers `output` by their shapes `input`; the two broadcast.

    Figurnov, Mohamed and Mnih (2018). Relative error below 1e-9, then rounded to the dtype.
    """
    input, output = _common_shape(input, output)
    _expect_float("_standard_gamma_grad_cpu", input, output)
    return apply(StandardGammaGrad, input, output)


@public("torch", names=("_sample_dirichlet",))
def sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Points of the simplex over the last dimension with the concentrations `input`,
    differentiable by them.

    float32 or float64 (else NotImplementedError). On the CPU PyTorch's numbers.
    """
    _expect_float("dirichlet", input)
    input = drawing(input)
    source = source_of(generator, input._storage.backend)
    return as_drawn(source.dirichlet(input._storage.array), SampleDirichlet, input)


@public("torch", names=("_dirichlet_grad",))
def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """dx/dalpha / (1 - x) of beta numbers `x` of the parameters alpha and total - alpha.

    A Dirichlet point x has dx[j] / dalpha[i] = slope[i] ((i == j) - x[j]) with this slope.
    Figurnov, Mohamed and Mnih (2018). Relative error below 1e-9, then rounded to the dtype.
    """
    x, alpha, total = _common_shape(x, alpha, total)
    _expect_float("_dirichlet_grad_cpu", x, alpha, total)
    return apply(DirichletGrad, x, alpha, total)
