"""Rows of names still to come, which only the table's own check runs.

When one of the names exists tests/ops/test_methods.py fails: the row moves to its family.
"""
# fmt: off

from __future__ import annotations

import numpy as np

from tests.op_db._case import WIDE, Domain, E, Op, S, T

LOOSE = {"float32": (2e-4, 2e-4)}
WHY = "inverses of drawn matrices are not well conditioned"


def _definite(rng, shape):
    """Symmetric matrices with positive eigenvalues that keep their distance."""
    x = rng.standard_normal(shape)
    return x @ x.swapaxes(-1, -2) + np.diag(np.arange(1.0, shape[-1] + 1))


DEFINITE = Domain(_definite)
# Equal rows would make a matrix singular.
REGULAR = Domain(lambda rng, shape: rng.standard_normal(shape), distinct=True)
SQUARE = [E(T(2, 3)), E(T(3))]


def matrices(name, *samples, **options):
    """A row of a function in torch.linalg."""
    call = lambda torch, *args, **kw: getattr(torch.linalg, name)(*args, **kw)
    return Op("linalg." + name, *samples, call=call, dtypes=WIDE, of=REGULAR, tol=LOOSE, why=WHY,
        **options)


def symmetric(torch, x):
    return (x + x.mT) / 2


LINALG = [
    Op("logdet", S(T(3, 3, of=DEFINITE)), dtypes=WIDE, tol=LOOSE, why=WHY),
    matrices("slogdet", S(T(3, 3)), S(T(2, 3, 3)), errors=SQUARE),
    matrices("solve", S(T(3, 3), T(3)), S(T(3, 3), T(3, 2)), S(T(2, 3, 3), T(2, 3, 2)),
        errors=[E(T(3, 3), T(2)), E(T(2, 3), T(2))]),
    matrices("solve_triangular", S(T(3, 3, of=DEFINITE), T(3, 2), upper=True),
        S(T(3, 3, of=DEFINITE), T(3, 2), upper=False, unitriangular=True),
        S(T(3, 3, of=DEFINITE), T(2, 3), upper=True, left=False)),
    Op("linalg.cholesky", S(T(3, 3, of=DEFINITE)), S(T(2, 3, 3, of=DEFINITE)), dtypes=WIDE,
        tol=LOOSE, why=WHY, call=lambda torch, x: torch.linalg.cholesky(symmetric(torch, x))),
    matrices("lstsq", S(T(4, 3), T(4, 2)), grad=False),
]


OPS = LINALG
