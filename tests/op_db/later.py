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
    Op("linalg.eigvalsh", S(T(3, 3, of=DEFINITE)), dtypes=WIDE, tol=LOOSE, why=WHY,
        call=lambda torch, x: torch.linalg.eigvalsh(symmetric(torch, x))),
    Op("linalg.eigh", S(T(3, 3, of=DEFINITE)), dtypes=WIDE, tol=LOOSE, why=WHY, torch_orders=1,
        call=lambda torch, x: _functions_of(torch, symmetric(torch, x))),
    matrices("svdvals", S(T(3, 3)), S(T(3, 4))),
    Op("linalg.svd", S(T(3, 4)), S(T(4, 3)), dtypes=WIDE, tol=LOOSE, why=WHY,
        call=lambda torch, x: _rebuilt(*torch.linalg.svd(x, full_matrices=False))),
    matrices("pinv", S(T(3, 4)), S(T(4, 3))),
    matrices("matrix_rank", S(T(3, 4)), grad=False), matrices("cond", S(T(3, 3))),
    matrices("matrix_exp", S(T(3, 3)), torch_orders=1),
]


def _functions_of(torch, x):
    """What does not depend on the eigenvectors' signs."""
    values, vectors = torch.linalg.eigh(x)
    return values, vectors * vectors


def _rebuilt(u, s, v):
    return (u * (s * s)) @ v, s


OPS = LINALG
