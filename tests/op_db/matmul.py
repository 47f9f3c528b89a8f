"""Rows of products of vectors, matrices and batches of them, and of first linear algebra."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import FLOATS, WIDE, B, C, E, Forward, Kink, Op, S, T, V

HALVES = {"float16": (1e-2, 2e-2), "bfloat16": (6e-2, 1e-1), "float32": (1e-5, 1e-5)}
WHY = "sums of products of rounded numbers"
ANY = (*FLOATS, "int64")


def product(name, *samples, **options):
    options.setdefault("dtypes", ANY)
    return Op(name, *samples, tol=HALVES, why=WHY, **options)


PAIRS = [((3, 4), (4, 2)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 2)), ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((1, 1), (1, 1))]
MISFIT = [E(T(), T()), E(T(3, 4), T()), E(T(3, 4), T(3, 4)), E(T(), T(3)), E(T(3), T(4)),
    E(T(2, 3, 4), T(3, 4, 5)),
    E(T(3, 3), T(3, 3, dtype="float64")), E(T(3, 4), 2.0)]

PRODUCTS = [
    product("matmul", *[S(T(*a), T(*b)) for a, b in PAIRS], errors=MISFIT, order3=True),
    product("operator.matmul", *[S(T(*a), T(*b)) for a, b in PAIRS[:6]],
        call=lambda torch, x, y: x @ y, errors=MISFIT),
    product("mm", S(T(3, 4), T(4, 2)), S(T(3, 0), T(0, 2)), out=True,
        errors=[E(T(3, 4), T(3, 4)), E(T(3), T(3)), E(T(2, 3, 4), T(2, 4, 5))]),
    product("bmm", S(T(2, 3, 4), T(2, 4, 5)), S(T(0, 3, 4), T(0, 4, 5)),
        Forward(C(0, 3, 4, dtype="int64"), T(0, 4, 5)), out=True,
        errors=[E(T(2, 3, 4), T(3, 4, 5)), E(T(3, 4), T(4, 5)), E(T(2, 3, 4), T(2, 3, 4))]),
    product("mv", S(T(3, 4), T(4)), S(T(0, 4), T(4)), out=True,
        errors=[E(T(3, 4), T(3)), E(T(3), T(3))]),
    product("dot", S(T(4), T(4)), S(T(0), T(0)), errors=[E(T(3), T(4)), E(T(3, 4), T(4))]),
    product("vdot", S(T(4), T(4)), errors=[E(T(3), T(4))]),
    product("inner", S(T(4), T(4)), S(T(2, 4), T(3, 4)), S(T(), T(3)), S(T(2, 3, 4), T(4)),
        errors=[E(T(3), T(4))]),
    *(product(name, S(T(3), T(4)), S(T(0), T(3)), errors=[E(T(3, 1), T(4)), E(T(), T(3))])
        for name in ("outer", "ger")),
    product("addmm", S(T(3, 2), T(3, 4), T(4, 2)), S(T(2), T(3, 4), T(4, 2)),
        S(T(3, 2), T(3, 4), T(4, 2), beta=2, alpha=3), S(T(3, 1), T(3, 4), T(4, 2), beta=0),
        errors=[E(T(3, 3), T(3, 4), T(4, 2)), E(T(3, 2), T(3, 4), T(3, 2))], inplace="addmm_"),
    *(product(f"{name}.complex", S(*[T(*lead, 3, 3, dtype="complex128") for _ in range(3)],
        beta=1 + 2j, alpha=2 - 3j), dtypes=("float64",), layout=False)
        for name, *lead in (("addmm",), ("baddbmm", 2))),
    product("addmv", S(T(3), T(3, 4), T(4)), S(T(), T(3, 4), T(4), beta=2, alpha=3),
        errors=[E(T(2), T(3, 4), T(4))], inplace="addmv_", accidents=("sizes",)),
    product("addr", S(T(3, 4), T(3), T(4)), S(T(4), T(3), T(4), beta=2, alpha=3), dtypes=WIDE,
        inplace="addr_", accidents=("dtypes",)),
    product("addbmm", S(T(3, 5), T(2, 3, 4), T(2, 4, 5)), S(T(5), T(2, 3, 4), T(2, 4, 5), beta=2,
        alpha=3), errors=[E(T(3, 4), T(2, 3, 4), T(2, 4, 5))]),
    product("baddbmm", S(T(2, 3, 5), T(2, 3, 4), T(2, 4, 5)), S(T(5), T(2, 3, 4), T(2, 4, 5),
        beta=2, alpha=3), S(T(3, 1), T(2, 3, 4), T(2, 4, 5)), errors=[E(T(2, 3, 4), T(2, 3, 4),
        T(2, 4, 5))]),
    product("kron", S(T(2, 3), T(3, 2)), S(T(2), T(3)), S(T(2, 3), T(4)), S(T(), T(2))),
    product("cross", S(T(3), T(3)), S(T(4, 3), T(4, 3)), S(T(3, 4), T(3, 4), 0),
        S(T(3, 4), T(3, 1), dim=0), errors=[E(T(4), T(4)), E(T(3, 4), T(3, 4), 1),
        E(B(3), B(3))]),
    product("chain_matmul", S(T(2, 3), T(3, 4), T(4, 2)), S(T(2, 3), T(3, 4)), dtypes=WIDE),
    product("linalg.multi_dot", S([T(2, 3), T(3, 4), T(4, 2)]), S([T(3), T(3, 4), T(4)]),
        dtypes=WIDE, call=lambda torch, xs: torch.linalg.multi_dot(xs)),
    product("tensordot", S(T(2, 3, 4), T(3, 4, 5)), S(T(2, 3, 4), T(4, 5), 1),
        S(T(2, 3, 4), T(4, 3, 5), ([1, 2], [1, 0])), S(T(2, 3), T(4), 0),
        S(T(2, 3), T(2, 3), dims=2), errors=[E(T(2, 3), T(4, 5), 1)]),
    product("cdist.ties", *[Kink(V([[0.0, 1.0], [2.0, 2.0]]), V([[1.0, 0.0], [2.0, 2.0]]), p)
        for p in (0.0, 1.0, 2.0, 3.0, math.inf)], dtypes=WIDE),
    product("cdist", S(T(3, 4), T(5, 4)), S(T(2, 3, 4), T(2, 5, 4)), S(T(3, 4), T(5, 4), p=1.0),
        S(T(3, 4), T(5, 4), p=3.0), dtypes=WIDE, torch_orders=1, errors=[E(T(3, 4), T(5, 3))]),
]

EQUATIONS = [("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ii", (3, 3)),
    ("ii->i", (3, 3)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)),
    ("i,j->ij", (2,), (3,)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 2)), ("bhid,bhjd->bhij", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("ij,ij->", (2, 3), (2, 3)), ("a,b,c->abc", (2,), (3,), (2,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("bn,anm,bm->ba", (2, 3), (4, 3, 5), (2, 5)),
    ("i,i->i", (3,), (3,)), ("...,...->...", (2, 3), (3,)), (" i j , j -> i ", (2, 3), (3,)),
    ("ij,kj->ik", (1, 3), (2, 3)), ("ijk->kji", (2, 3, 4)), ("b...->...b", (2, 3, 4)),
    ("iij->ij", (2, 2, 3)), ("ij,jk->ki", (0, 3), (3, 2)), (",i->i", (), (3,))]
EINSUMS = [
    product("einsum", *[S(equation, *(T(*shape) for shape in shapes)) for equation,
        *shapes in EQUATIONS], dtypes=FLOATS, errors=[E("ij,jk->ik", T(2, 3), T(4, 5)),
        E("ij", T(2)), E("ij->ik", T(2, 3)), E("ij,jk", T(2, 3)), E("i->ii", T(3)),
        E("i1->i", T(2, 3))]),
    product("einsum.list", S("ij,jk->ik", [T(2, 3), T(3, 4)]), dtypes=WIDE),
    product("einsum.sublist", S(T(2, 3), [0, 1], T(3, 4), [1, 2], [0, 2]),
        S(T(2, 3), [0, 1], T(3, 4), [1, 2]), dtypes=WIDE),
]

LINEAR = [
    Op("F.linear", S(T(3, 4), T(2, 4)), S(T(3, 4), T(2, 4), T(2)), S(T(4), T(2, 4), T(2)),
        S(T(2, 3, 4), T(5, 4), T(5)), S(T(0, 4), T(2, 4), T(2)), S(T(3, 4), T(4)),
        S(T(3, 4), T(2, 4), bias=None), tol=HALVES, why=WHY, order3=True,
        errors=[E(T(3, 4), T(4, 2)), E(T(3, 4), T(2, 4), T(3)),
        E(T(3, 3), T(3, 3, dtype="float64"))]),
    Op("F.bilinear", S(T(3, 4), T(3, 5), T(2, 4, 5)), S(T(3, 4), T(3, 5), T(2, 4, 5), T(2)),
        S(T(2, 3, 4), T(2, 3, 5), T(1, 4, 5)), dtypes=WIDE, accidents=("sizes",),
        errors=[E(T(3, 4), T(3, 5), T(2, 5, 4))]),
]

LOOSE = {"float32": (2e-4, 2e-4)}
UNEVEN = "inverses of drawn matrices are not well conditioned"
SQUARE = [E(T(2, 3)), E(T(3)), E(T(2, 2, dtype="int64"))]


def square(name, *samples, **options):
    """A row of a function of square matrices."""
    return Op(name, *samples, dtypes=WIDE, tol=LOOSE, why=UNEVEN, **options)


MATRICES = [
    *(square(name, S(T(3, 3)), S(T(2, 2, 2)), S(T(1, 1)), errors=SQUARE, out=name == "inverse")
        for name in ("det", "inverse")),  # det's `out=` refuses integers in another way
    square("linalg.det", S(T(2, 3, 3)), S(T(4, 4)), Forward(V([[1.0, 2.0], [2.0, 4.0]])),
        errors=SQUARE, call=lambda torch, x: torch.linalg.det(x)),
    square("linalg.inv", S(T(2, 3, 3)), S(T(4, 4)), call=lambda torch, x: torch.linalg.inv(x),
        errors=[*SQUARE, E(V([[1.0, 2.0], [2.0, 4.0]]))]),
    *(square(name, S(T(3, 3), 2), S(T(2, 3, 3), 3), S(T(3, 3), 0), S(T(3, 3), 1),
        S(T(3, 3), -1), S(T(2, 2), -2), S(T(2, 2), 6), errors=[E(T(2, 3), 2), E(T(3), 2)],
        call=call) for name, call in (("matrix_power", None),
        ("linalg.matrix_power", lambda torch, x, n: torch.linalg.matrix_power(x, n)))),
    Op("vander", S(T(3)), S(T(3), 4), S(T(3), increasing=True), S(T(3), N=2), Forward(T(3), 1),
        Forward(T(3), 0), dtypes=(*WIDE, "int64"), errors=[E(T(2, 2)), E(T(3), -1)],
        torch_orders=0),  # PyTorch's gradient fails: it writes into what it has saved
    Op("linalg.vander", S(T(3)), S(T(2, 3), N=4), dtypes=(*WIDE, "int64"), errors=[E(T(3), N=1)],
        call=lambda torch, x, **kw: torch.linalg.vander(x, **kw)),
]

OPS = PRODUCTS + EINSUMS + LINEAR + MATRICES
