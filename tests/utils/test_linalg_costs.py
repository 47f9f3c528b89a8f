"""Operations of linear algebra, against published counts and what the gradients' formulas do.

S. Blackford and J. Dongarra, "Installation guide for LAPACK", LAPACK Working Note 41 (1999),
appendix C, gives multiplications and additions of LAPACK's routines; they stand here as there. What
it cannot give, as it is iterated, is in G. Golub and C. Van Loan, "Matrix computations" (4th ed.,
2013): section 8.3 for symmetric eigenproblems, 8.6 for singular values, 7.5 for the others.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from math import prod

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import TABLE, is_op
from tensorflow_lite_clone.dispatch.primitives import is_primitive
from tensorflow_lite_clone.trace import Observer
from tensorflow_lite_clone.utils import _op_costs as op_costs
from tests.device import DEVICE

CLOSE = 0.1

# -- the note's tables: (multiplications, additions) ----------------------------------------------


def getrf(m, n):
    """For m >= n."""
    return (
        m * n**2 / 2 - n**3 / 6 + m * n / 2 - n**2 / 2 + 2 * n / 3,
        m * n**2 / 2 - n**3 / 6 - m * n / 2 + n / 6,
    )


def getri(n):
    return 2 * n**3 / 3 + n**2 / 2 + 5 * n / 6, 2 * n**3 / 3 - 3 * n**2 / 2 + 5 * n / 6


def getrs(n, columns):
    return n**2 * columns, (n**2 - n) * columns


def potrf(n):
    return n**3 / 6 + n**2 / 2 + n / 3, n**3 / 6 - n / 6


def trtrs(n, columns):
    return (n**2 + n) / 2 * columns, (n**2 - n) / 2 * columns


def geqrf(m, n):
    if m >= n:
        cubes = m * n**2 - n**3 / 3 + n**2 / 2
        return cubes + m * n + 23 * n / 6, cubes + 5 * n / 6
    cubes = n * m**2 - m**3 / 3 - m**2 / 2
    return cubes + 2 * m * n + 23 * m / 6, cubes + m * n + 5 * m / 6


def orgqr(m, n, k):
    return (
        2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3 + 2 * n * k - k**2 - 5 * k / 3,
        2 * m * n * k - (m + n) * k**2 + 2 * k**3 / 3 + n * k - m * k + k / 3,
    )


def ormqr(m, n, k):
    """Applied from the left."""
    return 2 * m * n * k - n * k**2 + 2 * n * k, 2 * m * n * k - n * k**2 + n * k


def sytrd(n):
    return 2 * n**3 / 3 + 5 * n**2 / 2 - n / 6 - 15, 2 * n**3 / 3 + n**2 - 8 * n / 3 - 4


def gebrd(m, n):
    """For m >= n."""
    return (
        2 * m * n**2 - 2 * n**3 / 3 + 2 * n**2 + 20 * n / 3,
        2 * m * n**2 - 2 * n**3 / 3 + n**2 - m * n + 5 * n / 3,
    )


def gemm(m, n, k):
    return m * n * k, m * n * k


def half(total):
    """Where only a total is known."""
    return total / 2, total / 2


def both(*counts):
    return tuple(map(sum, zip(*counts, strict=True)))


def operations(counts, letter="f"):
    multiplications, additions = counts
    return 6 * multiplications + 2 * additions if letter == "c" else multiplications + additions


# -- forward --------------------------------------------------------------------------------------


class Total(Observer):
    """Context that adds up what all ops and gradients cost that run inside."""

    def __init__(self):
        self.flops = self.gradients = 0

    def on_op(self, op, backend, arrays, parameters, result):
        self.flops += op_costs.flops_of(op, arrays, parameters, result)

    def around_gradient(self, node, call, grads):
        results = call(grads)
        needs = tuple([result is not None for result in results])
        self.gradients += op_costs.flops_of_gradient(node, grads, needs)
        return results


def matrices(*shape, dtype=tlc.float64):
    """Random ones; the square ones are Hermitian and positive definite."""
    x = tlc.randn(*shape, dtype=dtype, device=DEVICE)
    if shape[-1] == shape[-2]:
        x = x @ x.mH + shape[-1] * tlc.eye(shape[-1], dtype=dtype, device=DEVICE)
    return x


LA = tlc.linalg
SQUARE = {
    "det": (LA.det, lambda n: getrf(n, n)),
    "slogdet": (LA.slogdet, lambda n: getrf(n, n)),
    "cholesky": (LA.cholesky, potrf),
    "lu_factor": (LA.lu_factor, lambda n: getrf(n, n)),
    "inv": (LA.inv, lambda n: both(getrf(n, n), getri(n))),
    "solve": (lambda x: LA.solve(x, x), lambda n: both(getrf(n, n), getrs(n, n))),
    "triangular": (
        lambda x: LA.solve_triangular(x, x, upper=False),
        lambda n: trtrs(n, n),
    ),
    "cholesky_solve": (
        lambda x: tlc.cholesky_solve(x[..., :3], x),
        lambda n: both(trtrs(n, 3), trtrs(n, 3)),
    ),
    "lu_solve": (
        lambda x: LA.lu_solve(x, PIVOTS(x), x[..., :3]),
        lambda n: getrs(n, 3),
    ),
    "ldl_factor": (LA.ldl_factor, potrf),
    "eigvalsh": (LA.eigvalsh, sytrd),
    "eigh": (LA.eigh, lambda n: both(sytrd(n), orgqr(n, n, n), half(6 * n**3))),
    "eigvals": (LA.eigvals, lambda n: half(10 * n**3)),
    "eig": (LA.eig, lambda n: half(25 * n**3)),
    "qr": (LA.qr, lambda n: both(geqrf(n, n), orgqr(n, n, n))),
    "svdvals": (LA.svdvals, lambda n: gebrd(n, n)),
    "svd": (LA.svd, lambda n: half(21 * n**3)),
    "svd_thin": (partial(LA.svd, full_matrices=False), lambda n: half(22 * n**3)),
    "matmul": (lambda x: x @ x, lambda n: gemm(n, n, n)),
}


def PIVOTS(x):
    return tlc.ones(x.shape[:-1], dtype=tlc.int32, device=DEVICE)


def close(found, expected):
    assert found == pytest.approx(expected, rel=CLOSE), found / expected


@parameterized.expand(
    [
        (name, n, batch, dtype)
        for name in SQUARE
        for n, batch, dtype in ((8, (), "float64"), (24, (3,), "float64"), (32, (2,), "complex128"))
    ]
)
def test_square_matrices(name, n, batch, dtype):
    function, count = SQUARE[name]
    x = matrices(*batch, n, n, dtype=getattr(tlc, dtype))
    with Total() as total:
        function(x)
    close(total.flops, prod(batch) * operations(count(n), dtype[0]))


TALL = {
    "qr": (LA.qr, lambda m, n: both(geqrf(m, n), orgqr(m, n, n))),
    "qr_complete": (
        partial(LA.qr, mode="complete"),
        lambda m, n: both(geqrf(m, n), orgqr(m, m, n)),
    ),
    "qr_r": (partial(LA.qr, mode="r"), geqrf),
    "geqrf": (tlc.geqrf, geqrf),
    "lu_factor": (LA.lu_factor, getrf),
    "orgqr": (lambda x: tlc.orgqr(x, x[0]), lambda m, n: orgqr(m, n, n)),
    "ormqr": (lambda x: tlc.ormqr(x, x[0], x), lambda m, n: ormqr(m, n, n)),
    # LAPACK takes the QR factorization first, where that is less: with it, and without
    "svdvals": (
        LA.svdvals,
        lambda m, n: min(gebrd(m, n), both(geqrf(m, n), gebrd(n, n)), key=sum),
    ),
    "svd": (LA.svd, lambda m, n: half(4 * m**2 * n + min(8 * m * n**2 + 9 * n**3, 22 * n**3))),
    "svd_thin": (
        partial(LA.svd, full_matrices=False),
        lambda m, n: half(min(14 * m * n**2 + 8 * n**3, 6 * m * n**2 + 20 * n**3)),
    ),
    "pinv": (
        LA.pinv,
        lambda m, n: both(
            half(min(14 * m * n**2 + 8 * n**3, 6 * m * n**2 + 20 * n**3)), gemm(m, n, n)
        ),
    ),
}


@parameterized.expand(list(product(TALL, ((24, 16), (60, 12)))))
def test_tall_matrices(name, shape):
    function, count = TALL[name]
    x = matrices(*shape)
    with Total() as total:
        function(x)
    close(total.flops, operations(count(*shape)))


def test_wide_matrices():
    x = matrices(12, 60)
    with Total() as total:
        LA.qr(x)
    close(total.flops, operations(both(geqrf(12, 60), orgqr(12, 12, 12))))
    with Total() as total:
        LA.lu_factor(x)
    # the (12, 12) triangles, and as many substitutions as there are columns beside them
    close(total.flops, operations(both(getrf(12, 12), trtrs(12, 48))) - 12 * 48)
    with Total() as total:
        LA.svdvals(x)
    close(total.flops, operations(both(geqrf(60, 12), gebrd(12, 12))))


def test_matrix_exp():
    """Six products, one with the odd part, and an equation: the approximant of degree 13."""
    x = matrices(24, 24) / 100
    with Total() as total:
        LA.matrix_exp(x)
    n = 24
    close(total.flops, 8 * operations(gemm(n, n, n)) + operations(both(getrf(n, n), getrs(n, n))))


# -- gradients ------------------------------------------------------------------------------------


def solve_count(a, b, **options):
    n, columns = b.shape[-2:]
    return both(getrf(n, n), getrs(n, columns))


def svd_count(x, full_matrices=True):
    m, n = max(x.shape[-2:]), min(x.shape[-2:])
    return TALL["svd" if full_matrices else "svd_thin"][1](m, n)


#: What a formula may call, and what a matrix costs there.
COUNTED = {
    "matmul": lambda x, y: gemm(x.shape[-2], y.shape[-1], x.shape[-1]),
    "solve": solve_count,
    "solve_triangular": lambda a, b, **options: trtrs(*b.shape[-2:]),
    "inv": lambda x: both(getrf(*x.shape[-2:]), getri(x.shape[-1])),
    "linalg.svd": svd_count,
    "linalg.det": lambda x: getrf(*x.shape[-2:]),
}


class Recording:
    """F over arrays that notes its products, equations and decompositions."""

    def __init__(self, made, F=None, room=""):
        self._made, self._room = made, room
        self._F = backends.load("cpu").F if F is None else F

    def __getattr__(self, name):
        full = self._room + name
        if full == "linalg":
            return Recording(self._made, self._F.linalg, "linalg.")
        found = getattr(self._F, name)
        if full in COUNTED:
            return partial(self._noted, full, found)
        entry = None if is_primitive(name) else TABLE.get(name)
        if entry is None:
            return found
        return partial(entry.forward if is_op(entry) else entry, self)

    def _noted(self, name, call, *arrays, **options):
        result = call(*arrays, **options)
        first = result[0] if isinstance(result, tuple) else result
        batch = max(prod(first.shape[:-2]), prod(arrays[0].shape[:-2]))
        count = operations(COUNTED[name](*arrays, **options), arrays[0].dtype.kind)
        self._made.append(batch * count)
        return result


def through_recording(node, made):
    """The node's gradients call their formulas with a recording F."""
    F = Recording(made)

    class Backend:
        gradients = joint_gradients = type("Itself", (dict,), {"__missing__": lambda s, key: key})()

        def __getattr__(self, name):
            return F if name == "F" else getattr(backends.load("cpu"), name)

    node.backend = Backend()
    return node


GRADIENTS = {
    "det": (LA.det, (48, 48)),
    "slogdet": (lambda x: LA.slogdet(x)[1], (2, 48, 48)),
    "cholesky": (LA.cholesky, (48, 48)),
    "inv": (LA.inv, (2, 48, 48)),
    "eigh": (lambda x: sum_of(LA.eigh(x)), (48, 48)),
    "eig": (lambda x: sum_of(LA.eig(x)).abs(), (48, 48)),
    "qr": (lambda x: sum_of(LA.qr(x)), (64, 40)),
    "svd": (lambda x: sum_of(LA.svd(x, full_matrices=False)), (64, 40)),
    "svd_square": (lambda x: sum_of(LA.svd(x)), (2, 48, 48)),
    "svdvals": (LA.svdvals, (64, 40)),
    "lu_factor": (lambda x: LA.lu_factor(x)[0], (48, 48)),
    "solve": (lambda x: LA.solve(x, x), (48, 48)),
    "triangular": (lambda x: LA.solve_triangular(x, x, upper=True), (48, 48)),
    "pinv": (LA.pinv, (64, 40)),
    "lstsq": (lambda x: LA.lstsq(x, x[:, :8]).solution, (64, 40)),
}


def sum_of(parts):
    return sum([part.sum() for part in parts])


@parameterized.expand([(name,) for name in GRADIENTS])
def test_gradients(name):
    """As many products and solutions as the formula does, and elementwise work beside them."""
    if DEVICE != "cpu":
        pytest.skip("the recording F is over the CPU's arrays")
    function, shape = GRADIENTS[name]
    x = matrices(*shape).requires_grad_()
    found, made = 0, []
    nodes = []

    def gradient(node, call, grads):
        nonlocal found
        results = call(grads)
        if node.name().startswith(("Linalg", "Lu", "Svd", "Det", "Inv")):
            needs = tuple([result is not None for result in results])
            flops = op_costs.flops_of_gradient(node, grads, needs)
            backend = node.backend
            through_recording(node, made).gradients(grads, False, needs)
            node.backend = backend
            found += flops
            nodes.append(node.name())
        return results

    y = function(x)
    hooks.around_gradient.append(gradient)
    try:
        y.abs().sum().backward()
    finally:
        hooks.around_gradient.remove(gradient)
    assert made, nodes
    close(found, sum(made))
