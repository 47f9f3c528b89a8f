"""What calls cost: the conventions, and the formulas that primitives and ops share.

A formula is called as ``formula(shapes, *arrays, **parameters)`` with the shape of the result, or a
list of those of several, and with what the primitive or op was called with; of arrays it asks for
``shape``, ``ndim`` and ``dtype``. That of a gradient is called as ``formula(needs, g, *arrays,
**parameters)``: `needs` says which inputs' gradients are calculated, `g` is the gradient of the
first result, and an input that the graph knows nothing of is None.

An op that has no formula is counted (`utils._op_costs`): its text is run over the meta device, and
what the primitives and ops cost that it calls is added up. So only what is counted otherwise stands
here and beside the ops, for an element each (of the result, unless said otherwise):

* products of matrices, convolutions and attention count as PyTorch's counter has them: two
  operations for a multiplication and its addition, none for biases and scales;
* any function of elements counts 1, however it is computed; a product with a sum in it 3;
  comparisons, copies and what only moves elements count nothing;
* reductions count 1 for an element of the input; variances 4 (sum, difference, square, sum);
* softmax counts 5 (maximum, difference, exponential, sum, quotient), its gradient 4;
* norms count 7 (a variance, the scale, the weight, the bias), RMS norms 4, with given statistics 4,
  their gradients twice as much; losses of differences 3, of logarithms 5, their gradients 2;
* pools count 1 for an element of a window; Fourier transforms 5 n log2(n), half of it from or to
  real numbers (the usual figure for Cooley and Tukey's algorithm);
* factorizations, inverses and solutions of equations count what S. Blackford and J. Dongarra give
  in "Installation guide for LAPACK" (LAPACK Working Note 41, 1999), appendix C; what iterates until
  it converges, eigenvalues and singular values, what G. Golub and C. Van Loan give in "Matrix
  computations" (4th ed., 2013), sections 7.5, 8.3 and 8.6;
* a gradient of a function of elements counts 1 for an element and an input that wants one.

Of complex numbers, a multiplication in linear algebra counts 6 (four multiplications and two
additions of real numbers), an addition 2; so a product of matrices counts four times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.shape import Shape

Formula = Callable[..., float]


class Cost(NamedTuple):
    """What an op costs; without a formula it is counted."""

    flops: Formula | None = None
    gradient_flops: Formula | None = None
    product: bool = False  # whether PyTorch's counter has it, which counts nothing else
    #: What is read of the first operand: "all", "as returned" (as much as the result has), "none".
    reads: str = "all"


def first(shapes: Any) -> Shape:
    """The shape of the first result."""
    return shapes[0] if shapes and not isinstance(shapes[0], int) else shapes


def _size(value: Any) -> int:
    return 0 if value is None else prod(getattr(value, "shape", ()))


# -- elements -------------------------------------------------------------------------------------


def free(shapes: Any, *args: Any, **parameters: Any) -> float:
    """Nothing is calculated: elements are moved, compared or made."""
    return 0


def per_result(count: int = 1) -> Formula:
    """`count` for an element of the result."""
    return lambda shapes, *args, **parameters: count * prod(first(shapes))


def per_operand(count: int = 1, position: int = 0) -> Formula:
    """`count` for an element of the operand at `position`."""
    return lambda shapes, *args, **parameters: count * _size(args[position])


def per_window(shapes: Any, *args: Any, kernel: Any, **parameters: Any) -> float:
    """1 for each element of a window whose extreme or mean an element of the result is."""
    return prod(first(shapes)) * prod(kernel)


def per_wanted(needs: Any, g: Any, *args: Any, **parameters: Any) -> float:
    """1 for an element of the result and an input that wants a gradient."""
    return prod(g.shape) * sum(needs)


def per_larger(count: int) -> Formula:
    """`count` for an element of the input or of the result, whichever has more."""
    return lambda needs, g, x, *args, **parameters: count * max(_size(g), _size(x))


moving = Cost(free, free)  # or comparing, sorting and counting
drawing = Cost(free)  # random numbers, however many attempts they take
elementwise = Cost(per_result(), per_wanted)
with_a_sum = Cost(per_result(3), per_wanted)
reduction = Cost(per_operand(), per_larger(1))
normalization = Cost(per_operand(7), per_larger(14))
scaling = Cost(per_operand(4), per_larger(8))
loss_of_differences = Cost(per_operand(3), per_larger(2))
loss_of_logarithms = Cost(per_operand(5), per_larger(2))
pool = Cost(per_window, lambda needs, g, *args, **parameters: per_window(g.shape, **parameters))
lookup = Cost(free, per_wanted, reads="as returned")  # its gradient adds up what is looked up twice


# -- products -------------------------------------------------------------------------------------


def _pairs(x: Any, count: float) -> float:
    """Operations of so many multiplications, each with an addition."""
    return count * (8 if x.dtype.kind == "c" else 2)


def product_flops(shapes: Any, x: Any, *args: Any, **parameters: Any) -> float:
    """(..., m, k) times (..., k, n), whatever stands for the second operand."""
    return _pairs(x, prod(shapes) * (x.shape[-1] if x.shape else 1))


def added_product_flops(shapes: Any, x: Any, y: Any, z: Any, **parameters: Any) -> float:
    """`product_flops` of the second and the third operand."""
    return product_flops(shapes, y, z)


def contraction_flops(shapes: Any, x: Any, y: Any, *args: Any, **parameters: Any) -> float:
    """Products of which the number of terms in each sum follows from the axes that vanish."""
    total = prod(x.shape) * prod(y.shape)
    return _pairs(x, (total * max(prod(shapes), 1)) ** 0.5) if total else 0


def conv_flops(shapes: Any, x: Any, w: Any, *args: Any, **parameters: Any) -> float:
    """Every element of the result is a sum over the window of one filter."""
    return _pairs(x, prod(shapes) * prod(w.shape[1:]))


def conv_transpose_flops(shapes: Any, x: Any, w: Any, *args: Any, **parameters: Any) -> float:
    """Every element of the input is multiplied with one filter."""
    return _pairs(x, prod(x.shape) * prod(w.shape[1:]))


def conv_weight_flops(
    shapes: Any, g: Any, x: Any, *, kernel: Any, groups: int, **parameters: Any
) -> float:
    """The gradient of a convolution's weight: as many products as the convolution has."""
    return _pairs(x, prod(g.shape) * (x.shape[1] // groups) * prod(kernel))


def attention_flops(shapes: Any, q: Any, k: Any, v: Any, *args: Any, **parameters: Any) -> float:
    """Two products: scores (L, S) from E features, results (L, Ev) from S of them.

    Masked scores count, as in PyTorch.
    """
    return 2 * prod(q.shape[:-1]) * k.shape[-2] * (k.shape[-1] + v.shape[-1])


def attention_gradient_flops(
    needs: Any, g: Any, q: Any, k: Any, v: Any, *args: Any, **parameters: Any
) -> float:
    """Five products: the scores again, the weights' gradient, and those of q, k and v."""
    features = k.shape[-1] + v.shape[-1] * needs[2]
    if needs[0] or needs[1] or needs[3]:
        features += v.shape[-1] + k.shape[-1] * (needs[0] + needs[1])
    return 2 * prod(g.shape[:-1]) * k.shape[-2] * features


attention = Cost(attention_flops, attention_gradient_flops, product=True)


def product(formula: Formula, *factors: int) -> Cost:
    """Of a product whose gradients are products of its own size, one for each of the factors."""

    def gradient_flops(needs: Any, g: Any, *args: Any, **parameters: Any) -> float:
        count = sum([needs[position] for position in factors])
        return count * formula(g.shape, *args, **parameters) if count else 0

    return Cost(formula, gradient_flops, product=True)


# -- linear algebra -------------------------------------------------------------------------------


def _of_matrices(count: Callable[..., tuple[float, float]]) -> Formula:
    """The formula that gives the operations of ``count(m, n)``, multiplications and additions."""

    def formula(shapes: Any, x: Any, *args: Any, **parameters: Any) -> float:
        return prod(x.shape[:-2]) * _operations(x, *count(*x.shape[-2:]))

    return formula


def _operations(x: Any, multiplications: float, additions: float) -> float:
    if x.dtype.kind == "c":
        return 6 * multiplications + 2 * additions
    return multiplications + additions


def _halves(total: float) -> tuple[float, float]:
    """Where only the sum is known: as many multiplications as additions."""
    return total / 2, total / 2


def _getrf(m: int, n: int) -> tuple[float, float]:
    k = min(m, n)
    additions = k * (m * n - (m + n) * (k + 1) / 2 + (k + 1) * (2 * k + 1) / 6)
    return additions + k * (m - (k - 1) / 2), additions


def _getri(n: int) -> tuple[float, float]:
    return 2 * n**3 / 3 + n**2 / 2 + 5 * n / 6, 2 * n**3 / 3 - 3 * n**2 / 2 + 5 * n / 6


def _geqrf(m: int, n: int) -> tuple[float, float]:
    if m < n:
        cubes = m**2 * n - m**3 / 3 - m**2 / 2
        return cubes + 2 * m * n + 23 * m / 6, cubes + m * n + 5 * m / 6
    cubes = m * n**2 - n**3 / 3 + n**2 / 2
    return cubes + m * n + 23 * n / 6, cubes + 5 * n / 6


def _orgqr(m: int, n: int, k: int) -> tuple[float, float]:
    cubes = 2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3
    return cubes + 2 * n * k - k**2 - 5 * k / 3, cubes + (n - m) * k + k / 3


lu_flops = _of_matrices(_getrf)


@_of_matrices
def inverse_flops(m: int, n: int) -> tuple[float, float]:
    """From the LU factors: 2 n^3 in all."""
    factored, inverted = _getrf(n, n), _getri(n)
    return factored[0] + inverted[0], factored[1] + inverted[1]


@_of_matrices
def determinant_flops(m: int, n: int) -> tuple[float, float]:
    """The product of the pivots of the LU factorization."""
    multiplications, additions = _getrf(n, n)
    return multiplications + n, additions


@_of_matrices
def cholesky_flops(m: int, n: int) -> tuple[float, float]:
    """n^3 / 3, also where D of blocks stands between the factors."""
    return n**3 / 6 + n**2 / 2 + n / 3, n**3 / 6 - n / 6


reflections_flops = _of_matrices(_geqrf)


def qr_flops(shapes: Any, x: Any, *, mode: str = "reduced", **parameters: Any) -> float:
    """The reflections, and their product unless R alone is wanted."""
    m, n = x.shape[-2:]
    total = reflections_flops(shapes, x)
    if mode != "r":
        columns = m if mode == "complete" else min(m, n)
        total += prod(x.shape[:-2]) * _operations(x, *_orgqr(m, columns, min(m, n)))
    return total


def reflected_flops(shapes: Any, x: Any, tau: Any, **parameters: Any) -> float:
    """The first columns of a product of reflections."""
    count = _orgqr(*x.shape[-2:], tau.shape[-1])
    return prod(x.shape[:-2]) * _operations(x, *count)


def applied_reflections_flops(
    shapes: Any, x: Any, tau: Any, y: Any, *, left: bool, **parameters: Any
) -> float:
    """k reflections of (m, n) matrices from the left; from the right, of their transposes."""
    m, n = y.shape[-2:] if left else y.shape[:-3:-1]
    k = tau.shape[-1]
    cubes = 2 * m * n * k - n * k**2
    return prod(shapes[:-2]) * _operations(x, cubes + 2 * n * k, cubes + n * k)


@_of_matrices
def eigenvalues_flops(m: int, n: int) -> tuple[float, float]:
    return _halves(10 * n**3)


@_of_matrices
def eigenvectors_flops(m: int, n: int) -> tuple[float, float]:
    return _halves(25 * n**3)


@_of_matrices
def hermitian_eigenvalues_flops(m: int, n: int) -> tuple[float, float]:
    """The tridiagonal form; finding its eigenvalues takes an order less."""
    multiplications = 2 * n**3 / 3 + 5 * n**2 / 2 - n / 6
    return multiplications, 2 * n**3 / 3 + n**2 - 8 * n / 3


@_of_matrices
def hermitian_eigenvectors_flops(m: int, n: int) -> tuple[float, float]:
    return _halves(9 * n**3)


@_of_matrices
def singular_values_flops(m: int, n: int) -> tuple[float, float]:
    """The bidiagonal form, of R where the matrix is long; its values take an order less."""
    m, n = max(m, n), min(m, n)
    return _halves(min(4 * m * n**2 - 4 * n**3 / 3, 2 * m * n**2 + 2 * n**3))


def svd_flops(shapes: Any, x: Any, *, full_matrices: bool = True, **parameters: Any) -> float:
    """Golub and Reinsch's algorithm, for long matrices after a QR factorization."""
    m, n = max(x.shape[-2:]), min(x.shape[-2:])
    if full_matrices:
        total = min(4 * m**2 * n + 8 * m * n**2 + 9 * n**3, 4 * m**2 * n + 22 * n**3)
    else:
        total = min(14 * m * n**2 + 8 * n**3, 6 * m * n**2 + 20 * n**3)
    return prod(x.shape[:-2]) * _operations(x, *_halves(total))


def pseudoinverse_flops(shapes: Any, x: Any, *args: Any, **parameters: Any) -> float:
    """The singular vectors and a product of them."""
    m, n = max(x.shape[-2:]), min(x.shape[-2:])
    product = prod(x.shape[:-2]) * _pairs(x, m * n * n)
    return svd_flops(shapes, x, full_matrices=False) + product


def substitution_flops(shapes: Any, a: Any, *args: Any, **parameters: Any) -> float:
    """n^2 for each right side."""
    n = a.shape[-1]
    columns = prod(first(shapes)) // n if n else 0
    return columns * _operations(a, n * (n + 1) / 2, n * (n - 1) / 2)


def factored_solution_flops(shapes: Any, a: Any, *args: Any, **parameters: Any) -> float:
    """Two triangular systems of equations."""
    n = a.shape[-1]
    columns = prod(first(shapes)) // n if n else 0
    return columns * _operations(a, n * n, n * (n - 1))


def solution_flops(shapes: Any, a: Any, *args: Any, **parameters: Any) -> float:
    """The LU factorization and the two triangular systems."""
    return lu_flops(shapes, a) + factored_solution_flops(shapes, a)


# -- Fourier transforms ---------------------------------------------------------------------------


def transform_flops(count: float, several: bool) -> Formula:
    """`count` n log2(n) for each transform of n points, along one axis or `several` together."""

    def formula(
        shapes: Any,
        x: Any,
        *args: Any,
        axis: int = -1,
        axes: Any = None,
        s: Any = None,
        **more: Any,
    ) -> float:
        if axes is None:
            axes = range(-len(x.shape if s is None else s), 0) if several else (axis,)
        points = prod([max(x.shape[a], shapes[a]) for a in axes])
        size = max(prod(x.shape), prod(shapes))
        return count * size * log2(points) if points > 1 else 0

    return formula
