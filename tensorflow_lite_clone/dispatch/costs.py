"""What calls cost: the formulas that primitives and ops share; docs/profiler.md says what counts.

A formula is called as ``formula(shapes, *arrays, **parameters)`` with the shape of the result, or a
list of those of several, and with what the primitive or op was called with; of arrays it asks for
``shape`` and ``dtype``. A gradient's is called as ``formula(needs, g, *arrays, **parameters)``:
`needs` says which inputs' gradients are calculated, `g` is that of the first result, and inputs of
which the graph knows nothing are None.

An op without a formula is counted (`utils._op_costs`): its text is run over the meta device, and
what the primitives and ops cost that it calls is added up. So only what counts otherwise stands
here and beside the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Array
    from tensorflow_lite_clone.core.shape import Shape

Formula = Callable[..., float]


class Cost(NamedTuple):
    """What an op costs; without a formula it is counted."""

    flops: Formula | None = None
    gradient_flops: Formula | None = None
    product: bool = False  # whether PyTorch's counter has it, which counts nothing else
    #: What is read of the first operand: "all", "as returned" (as much as the result has), "none".
    reads: str = "all"


# -- elements -------------------------------------------------------------------------------------


def _elements(shapes: Any) -> int:
    """Of the first result."""
    return int(prod(shapes if not shapes or isinstance(shapes[0], int) else shapes[0]))


def _size(value: Any) -> int:
    return 0 if value is None else int(prod(getattr(value, "shape", ())))


def free(shapes: Shape | list[Shape], *args: Any, **parameters: Any) -> float:
    """Nothing is calculated: elements are moved, compared or made."""
    return 0


def per_result(count: int = 1) -> Formula:
    """`count` for an element of the result."""
    return lambda shapes, *args, **parameters: count * _elements(shapes)


def per_operand(count: int = 1, position: int = 0) -> Formula:
    """`count` for an element of the operand at `position`."""
    return lambda shapes, *args, **parameters: count * _size(args[position])


def _per_window(shapes: Shape, *args: Any, kernel: Shape, **parameters: Any) -> float:
    return _elements(shapes) * int(prod(kernel))


def _per_wanted(needs: Sequence[bool], g: Array, *args: Any, **parameters: Any) -> float:
    return _size(g) * int(sum(needs))


def _per_larger(count: int) -> Formula:
    """`count` for an element of the input or of the result, whichever has more."""
    return lambda needs, g, x, *args, **parameters: count * max(_size(g), _size(x))


elementwise = Cost(per_result(), _per_wanted)
with_a_sum = Cost(per_result(3), _per_wanted)
normalization = Cost(per_operand(7), _per_larger(14))
scaling = Cost(per_operand(4), _per_larger(8))
loss_of_differences = Cost(per_operand(3), _per_larger(2))
loss_of_logarithms = Cost(per_operand(5), _per_larger(2))
pool = Cost(_per_window, lambda needs, g, *args, **more: _per_window(g.shape, **more))
lookup = Cost(free, _per_wanted, reads="as returned")  # its gradient adds up what is taken twice


# -- products -------------------------------------------------------------------------------------


def _pairs(x: Array, count: float) -> float:
    """Operations of so many multiplications, each with an addition."""
    return count * (8 if x.dtype.kind == "c" else 2)


def product_flops(shapes: Shape, x: Array, *args: Any, axis: int = -1, **parameters: Any) -> float:
    """(..., m, k) times (..., k, n), whatever stands for the second operand."""
    return _pairs(x, prod(shapes) * (x.shape[axis] if x.shape else 1))


def added_product_flops(shapes: Shape, x: Array, y: Array, z: Array, **parameters: Any) -> float:
    """`product_flops` of the second and the third operand."""
    return product_flops(shapes, y, z)


def contraction_flops(shapes: Shape, x: Array, y: Array, *args: Any, **parameters: Any) -> float:
    """Products of which the number of terms in each sum follows from the axes that vanish."""
    total = _size(x) * _size(y)
    return _pairs(x, float(total * max(prod(shapes), 1)) ** 0.5)


def conv_flops(shapes: Shape, x: Array, w: Array, *args: Any, **parameters: Any) -> float:
    """Every element of the result is a sum over the window of one filter."""
    return _pairs(x, prod(shapes) * prod(w.shape[1:]))


def conv_transpose_flops(shapes: Shape, x: Array, w: Array, *args: Any, **parameters: Any) -> float:
    """Every element of the input is multiplied with one filter."""
    return _pairs(x, _size(x) * prod(w.shape[1:]))


def conv_weight_flops(
    shapes: Shape, g: Array, x: Array, *, kernel: Shape, groups: int, **parameters: Any
) -> float:
    """The gradient of a convolution's weight: as many products as the convolution has."""
    return _pairs(x, _size(g) * (x.shape[1] // groups) * prod(kernel))


def attention_flops(
    shapes: Shape, q: Array, k: Array, v: Array, *args: Any, **parameters: Any
) -> float:
    """Scores (L, S) from E features, results (L, Ev) from S of them; masked ones count."""
    return _pairs(q, prod(q.shape[:-1]) * k.shape[-2] * (k.shape[-1] + v.shape[-1]))


def attention_gradient_flops(
    needs: Sequence[bool], g: Array, q: Array, k: Array, v: Array, *args: Any, **parameters: Any
) -> float:
    """Five products: the scores again, the weights' gradient, and those of q, k and v."""
    features = k.shape[-1] + v.shape[-1] * needs[2]
    if needs[0] or needs[1] or needs[3]:
        features += v.shape[-1] + k.shape[-1] * (needs[0] + needs[1])
    return _pairs(g, prod(g.shape[:-1]) * k.shape[-2] * features)


attention = Cost(attention_flops, attention_gradient_flops, product=True)


def product(formula: Formula, *factors: int) -> Cost:
    """Of a product whose gradients are products of its own size, one for each of the factors."""

    def gradient_flops(needs: Sequence[bool], g: Array, *args: Any, **parameters: Any) -> float:
        count = sum([needs[position] for position in factors])
        return count * formula(g.shape, *args, **parameters) if count else 0

    return Cost(formula, gradient_flops, product=True)


# -- linear algebra -------------------------------------------------------------------------------
# (multiplications, additions) by LAPACK's names are those of LAPACK Working Note 41, appendix C.


def _batch(x: Array) -> int:
    return int(prod(x.shape[:-2]))


def _operations(x: Array, multiplications: float, additions: float) -> float:
    if x.dtype.kind == "c":
        return 6 * multiplications + 2 * additions
    return multiplications + additions


def _of_matrices(count: Callable[[int, int], tuple[float, float]]) -> Formula:
    """``count(m, n)`` gives the multiplications and the additions of an (m, n) matrix."""
    return lambda shapes, x, *args, **parameters: _batch(x) * _operations(x, *count(*x.shape[-2:]))


def _cubes(count: float) -> Formula:
    """`count` n^3, half of them multiplications."""
    return _of_matrices(lambda m, n: (count / 2 * n**3, count / 2 * n**3))


def _getrf(m: int, n: int) -> tuple[float, float]:
    k = min(m, n)
    additions = k * (m * n - (m + n) * (k + 1) / 2 + (k + 1) * (2 * k + 1) / 6)
    return additions + k * (m - (k - 1) / 2), additions


def _geqrf(m: int, n: int) -> tuple[float, float]:
    k, cubes = min(m, n), max(m, n) * min(m, n) ** 2 - min(m, n) ** 3 / 3
    if m < n:
        return cubes - k**2 / 2 + 2 * m * n + 23 * k / 6, cubes - k**2 / 2 + m * n + 5 * k / 6
    return cubes + k**2 / 2 + m * n + 23 * k / 6, cubes + k**2 / 2 + 5 * k / 6


def _orgqr(m: int, n: int, k: int) -> tuple[float, float]:
    cubes = 2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3
    return cubes + 2 * n * k - k**2 - 5 * k / 3, cubes + (n - m) * k + k / 3


lu_flops = _of_matrices(_getrf)
inverse_flops = _of_matrices(lambda m, n: (n**3 + n**2 / 2 + 3 * n / 2, n**3 - 2 * n**2 + n))
determinant_flops = _of_matrices(lambda m, n: (n**3 / 3 + 5 * n / 3, n**3 / 3 - n**2 / 2 + n / 6))
cholesky_flops = _of_matrices(lambda m, n: (n**3 / 6 + n**2 / 2 + n / 3, n**3 / 6 - n / 6))
reflections_flops = _of_matrices(_geqrf)
eigenvalues_flops, eigenvectors_flops = _cubes(10), _cubes(25)
hermitian_eigenvectors_flops = _cubes(9)
#: The tridiagonal form; finding the eigenvalues takes an order less.
hermitian_eigenvalues_flops = _of_matrices(
    lambda m, n: (2 * n**3 / 3 + 5 * n**2 / 2 - n / 6, 2 * n**3 / 3 + n**2 - 8 * n / 3)
)


def qr_flops(shapes: Shape, x: Array, *, mode: str = "reduced", **parameters: Any) -> float:
    """The reflections, and their product unless R alone is wanted."""
    m, k = x.shape[-2], min(x.shape[-2:])
    formed = _orgqr(m, m if mode == "complete" else k, k) if mode != "r" else (0, 0)
    return reflections_flops(shapes, x) + _batch(x) * _operations(x, *formed)


def reflected_flops(shapes: Shape, x: Array, tau: Array, **parameters: Any) -> float:
    """The first columns of a product of reflections."""
    m, n = x.shape[-2:]
    return _batch(x) * _operations(x, *_orgqr(m, n, tau.shape[-1]))


def applied_reflections_flops(
    shapes: Shape, x: Array, tau: Array, y: Array, *, left: bool, **parameters: Any
) -> float:
    """k reflections of (m, n) matrices from the left; from the right, of their transposes."""
    m, n, k = y.shape[-2 if left else -1], y.shape[-1 if left else -2], tau.shape[-1]
    cubes = (2 * m - k) * n * k
    return _elements(shapes[:-2]) * _operations(x, cubes + 2 * n * k, cubes + n * k)


def _gebrd(m: int, n: int) -> tuple[float, float]:
    cubes = 2 * m * n**2 - 2 * n**3 / 3
    return cubes + 2 * n**2 + 20 * n / 3, cubes + n**2 - m * n + 5 * n / 3


def _singular_values(m: int, n: int) -> tuple[float, float]:
    m, n = max(m, n), min(m, n)
    reduced, square = _geqrf(m, n), _gebrd(n, n)
    return min(_gebrd(m, n), (reduced[0] + square[0], reduced[1] + square[1]), key=sum)


#: The bidiagonal form, of R where the matrix is long; finding the values takes an order less.
singular_values_flops = _of_matrices(_singular_values)


def svd_flops(shapes: Shape, x: Array, *, full_matrices: bool = True, **parameters: Any) -> float:
    """Golub and Reinsch's algorithm, for long matrices after a QR factorization."""
    m, n = max(x.shape[-2:]), min(x.shape[-2:])
    if full_matrices:
        half = 2 * m**2 * n + min(4 * m * n**2 + 4.5 * n**3, 11 * n**3)
    else:
        half = min(7 * m * n**2 + 4 * n**3, 3 * m * n**2 + 10 * n**3)
    return _batch(x) * _operations(x, half, half)


def substitution_flops(shapes: Shape, a: Array, *args: Any, **parameters: Any) -> float:
    """A triangular system of equations for each right side."""
    n = a.shape[-1]
    return _elements(shapes) * _operations(a, (n + 1) / 2, (n - 1) / 2)


def factored_solution_flops(shapes: Shape, a: Array, *args: Any, **parameters: Any) -> float:
    """Two triangular systems of equations, of which one has ones on its diagonal."""
    return _elements(shapes) * _operations(a, a.shape[-1], a.shape[-1] - 1)


def solution_flops(shapes: Shape, a: Array, *args: Any, **parameters: Any) -> float:
    """The LU factorization and the two triangular systems."""
    return lu_flops(shapes, a) + factored_solution_flops(shapes, a)


# -- Fourier transforms ---------------------------------------------------------------------------


def transform_flops(count: float, several: bool) -> Formula:
    """`count` n log2(n) for each transform of n points, along one axis or `several` together."""

    def formula(
        shapes: Shape,
        x: Array,
        *args: Any,
        axis: int = -1,
        axes: Any = None,
        s: Any = None,
        **more: Any,
    ) -> float:
        if axes is None:
            axes = range(-len(x.shape if s is None else s), 0) if several else (axis,)
        points = prod([max(x.shape[a], shapes[a]) for a in axes])
        return count * max(_size(x), prod(shapes)) * log2(points) if points > 1 else 0

    return formula
