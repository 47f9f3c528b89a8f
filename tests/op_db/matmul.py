"""Rows of products of vectors, matrices and batches of them, and of first linear algebra."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import (
    FLOATS,
    WIDE,
    OpInfo,
    booleans,
    constant,
    error,
    forward_sample,
    literal,
    sample,
    subgradient_sample,
    tensor,
)

HALVES = {"float16": (1e-2, 2e-2), "bfloat16": (6e-2, 1e-1), "float32": (1e-5, 1e-5)}
WHY = "sums of products of rounded numbers"
ANY = (*FLOATS, "int64")


def product(name, *samples, **options):
    options.setdefault("dtypes", ANY)
    return OpInfo(name, *samples, tolerances=HALVES, tolerance_reason=WHY, **options)


PAIRS = [((3, 4), (4, 2)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 2)), ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((1, 1), (1, 1))]
MISFIT = [error(tensor(), tensor()), error(tensor(3, 4), tensor()),
    error(tensor(3, 4), tensor(3, 4)), error(tensor(), tensor(3)), error(tensor(3), tensor(4)),
    error(tensor(2, 3, 4), tensor(3, 4, 5)), error(tensor(3, 3), tensor(3, 3, dtype="float64")),
    error(tensor(3, 4), 2.0)]

PRODUCTS = [
    product("matmul", *[sample(tensor(*a), tensor(*b)) for a, b in PAIRS], errors=MISFIT,
        check_third_order=True),
    product("operator.matmul", *[sample(tensor(*a), tensor(*b)) for a, b in PAIRS[:6]],
        call=lambda torch, x, y: x @ y, errors=MISFIT),
    product("mm", sample(tensor(3, 4), tensor(4, 2)), sample(tensor(3, 0), tensor(0, 2)),
        supports_out=True, errors=[error(tensor(3, 4), tensor(3, 4)), error(tensor(3), tensor(3)),
        error(tensor(2, 3, 4), tensor(2, 4, 5))]),
    product("bmm", sample(tensor(2, 3, 4), tensor(2, 4, 5)),
        sample(tensor(0, 3, 4), tensor(0, 4, 5)),
        forward_sample(constant(0, 3, 4, dtype="int64"), tensor(0, 4, 5)), supports_out=True,
        errors=[error(tensor(2, 3, 4), tensor(3, 4, 5)), error(tensor(3, 4), tensor(4, 5)),
        error(tensor(2, 3, 4), tensor(2, 3, 4))]),
    product("mv", sample(tensor(3, 4), tensor(4)), sample(tensor(0, 4), tensor(4)),
        supports_out=True, errors=[error(tensor(3, 4), tensor(3)), error(tensor(3), tensor(3))]),
    product("dot", sample(tensor(4), tensor(4)), sample(tensor(0), tensor(0)),
        errors=[error(tensor(3), tensor(4)), error(tensor(3, 4), tensor(4))]),
    product("vdot", sample(tensor(4), tensor(4)), errors=[error(tensor(3), tensor(4))]),
    product("inner", sample(tensor(4), tensor(4)), sample(tensor(2, 4), tensor(3, 4)),
        sample(tensor(), tensor(3)), sample(tensor(2, 3, 4), tensor(4)),
        errors=[error(tensor(3), tensor(4))]),
    *(product(name, sample(tensor(3), tensor(4)), sample(tensor(0), tensor(3)),
        errors=[error(tensor(3, 1), tensor(4)),
        error(tensor(), tensor(3))]) for name in ("outer", "ger")),
    product("addmm", sample(tensor(3, 2), tensor(3, 4), tensor(4, 2)),
        sample(tensor(2), tensor(3, 4), tensor(4, 2)),
        sample(tensor(3, 2), tensor(3, 4), tensor(4, 2), beta=2, alpha=3),
        sample(tensor(3, 1), tensor(3, 4), tensor(4, 2), beta=0),
        errors=[error(tensor(3, 3), tensor(3, 4), tensor(4, 2)),
        error(tensor(3, 2), tensor(3, 4), tensor(3, 2))], inplace_variant="addmm_"),
    *(product(f"{name}.complex",
        sample(*[tensor(*lead, 3, 3, dtype="complex128") for _ in range(3)], beta=1 + 2j,
        alpha=2 - 3j), dtypes=("float64",), check_layouts=False) for name,
        *lead in (("addmm",), ("baddbmm", 2))),
    product("addmv", sample(tensor(3), tensor(3, 4), tensor(4)),
        sample(tensor(), tensor(3, 4), tensor(4), beta=2, alpha=3),
        errors=[error(tensor(2), tensor(3, 4), tensor(4))], inplace_variant="addmv_",
        skip_undefined_behavior=("sizes",)),
    product("addr", sample(tensor(3, 4), tensor(3), tensor(4)),
        sample(tensor(4), tensor(3), tensor(4), beta=2, alpha=3), dtypes=WIDE,
        inplace_variant="addr_", skip_undefined_behavior=("dtypes",)),
    product("addbmm", sample(tensor(3, 5), tensor(2, 3, 4), tensor(2, 4, 5)),
        sample(tensor(5), tensor(2, 3, 4), tensor(2, 4, 5), beta=2, alpha=3),
        errors=[error(tensor(3, 4), tensor(2, 3, 4), tensor(2, 4, 5))]),
    product("baddbmm", sample(tensor(2, 3, 5), tensor(2, 3, 4), tensor(2, 4, 5)),
        sample(tensor(5), tensor(2, 3, 4), tensor(2, 4, 5), beta=2, alpha=3),
        sample(tensor(3, 1), tensor(2, 3, 4), tensor(2, 4, 5)),
        errors=[error(tensor(2, 3, 4), tensor(2, 3, 4), tensor(2, 4, 5))]),
    product("kron", sample(tensor(2, 3), tensor(3, 2)), sample(tensor(2), tensor(3)),
        sample(tensor(2, 3), tensor(4)), sample(tensor(), tensor(2))),
    product("cross", sample(tensor(3), tensor(3)), sample(tensor(4, 3), tensor(4, 3)),
        sample(tensor(3, 4), tensor(3, 4), 0), sample(tensor(3, 4), tensor(3, 1), dim=0),
        errors=[error(tensor(4), tensor(4)), error(tensor(3, 4), tensor(3, 4), 1),
        error(booleans(3), booleans(3))]),
    product("chain_matmul", sample(tensor(2, 3), tensor(3, 4), tensor(4, 2)),
        sample(tensor(2, 3), tensor(3, 4)), dtypes=WIDE),
    product("linalg.multi_dot", sample([tensor(2, 3), tensor(3, 4), tensor(4, 2)]),
        sample([tensor(3), tensor(3, 4), tensor(4)]), dtypes=WIDE,
        call=lambda torch, xs: torch.linalg.multi_dot(xs)),
    product("tensordot", sample(tensor(2, 3, 4), tensor(3, 4, 5)),
        sample(tensor(2, 3, 4), tensor(4, 5), 1),
        sample(tensor(2, 3, 4), tensor(4, 3, 5), ([1, 2], [1, 0])),
        sample(tensor(2, 3), tensor(4), 0), sample(tensor(2, 3), tensor(2, 3), dims=2),
        errors=[error(tensor(2, 3), tensor(4, 5), 1)]),
    product("cdist.ties",
        *[subgradient_sample(literal([[0.0, 1.0], [2.0, 2.0]]), literal([[1.0, 0.0], [2.0, 2.0]]),
        p) for p in (0.0, 1.0, 2.0, 3.0, math.inf)], dtypes=WIDE),
    product("cdist", sample(tensor(3, 4), tensor(5, 4)), sample(tensor(2, 3, 4), tensor(2, 5, 4)),
        sample(tensor(3, 4), tensor(5, 4), p=1.0), sample(tensor(3, 4), tensor(5, 4), p=3.0),
        dtypes=WIDE, torch_grad_orders=1, errors=[error(tensor(3, 4), tensor(5, 3))]),
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
    product("einsum", *[sample(equation, *(tensor(*shape) for shape in shapes)) for equation,
        *shapes in EQUATIONS], dtypes=FLOATS,
        errors=[error("ij,jk->ik", tensor(2, 3), tensor(4, 5)), error("ij", tensor(2)),
        error("ij->ik", tensor(2, 3)), error("ij,jk", tensor(2, 3)), error("i->ii", tensor(3)),
        error("i1->i", tensor(2, 3))]),
    product("einsum.list", sample("ij,jk->ik", [tensor(2, 3), tensor(3, 4)]), dtypes=WIDE),
    product("einsum.sublist", sample(tensor(2, 3), [0, 1], tensor(3, 4), [1, 2], [0, 2]),
        sample(tensor(2, 3), [0, 1], tensor(3, 4), [1, 2]), dtypes=WIDE),
]

LINEAR = [
    OpInfo("F.linear", sample(tensor(3, 4), tensor(2, 4)),
        sample(tensor(3, 4), tensor(2, 4), tensor(2)), sample(tensor(4), tensor(2, 4), tensor(2)),
        sample(tensor(2, 3, 4), tensor(5, 4), tensor(5)),
        sample(tensor(0, 4), tensor(2, 4), tensor(2)), sample(tensor(3, 4), tensor(4)),
        sample(tensor(3, 4), tensor(2, 4), bias=None), tolerances=HALVES, tolerance_reason=WHY,
        check_third_order=True, errors=[error(tensor(3, 4), tensor(4, 2)),
        error(tensor(3, 4), tensor(2, 4), tensor(3)),
        error(tensor(3, 3), tensor(3, 3, dtype="float64"))]),
    OpInfo("F.bilinear", sample(tensor(3, 4), tensor(3, 5), tensor(2, 4, 5)),
        sample(tensor(3, 4), tensor(3, 5), tensor(2, 4, 5), tensor(2)),
        sample(tensor(2, 3, 4), tensor(2, 3, 5), tensor(1, 4, 5)), dtypes=WIDE,
        skip_undefined_behavior=("sizes",),
        errors=[error(tensor(3, 4), tensor(3, 5), tensor(2, 5, 4))]),
]

LOOSE = {"float32": (2e-4, 2e-4)}
UNEVEN = "inverses of drawn matrices are not well conditioned"
SQUARE = [error(tensor(2, 3)), error(tensor(3)), error(tensor(2, 2, dtype="int64"))]


def square(name, *samples, **options):
    """A row of a function of square matrices."""
    return OpInfo(name, *samples, dtypes=WIDE, tolerances=LOOSE, tolerance_reason=UNEVEN, **options)


MATRICES = [
    *(square(name, sample(tensor(3, 3)), sample(tensor(2, 2, 2)), sample(tensor(1, 1)),
        errors=SQUARE, supports_out=name == "inverse") for name in ("det", "inverse")),
        # det's `out=` refuses integers in another way
    square("linalg.det", sample(tensor(2, 3, 3)), sample(tensor(4, 4)),
        forward_sample(literal([[1.0, 2.0], [2.0, 4.0]])), errors=SQUARE,
        call=lambda torch, x: torch.linalg.det(x)),
    square("linalg.inv", sample(tensor(2, 3, 3)), sample(tensor(4, 4)),
        call=lambda torch, x: torch.linalg.inv(x), errors=[*SQUARE,
        error(literal([[1.0, 2.0], [2.0, 4.0]]))]),
    *(square(name, sample(tensor(3, 3), 2), sample(tensor(2, 3, 3), 3), sample(tensor(3, 3), 0),
        sample(tensor(3, 3), 1), sample(tensor(3, 3), -1), sample(tensor(2, 2), -2),
        sample(tensor(2, 2), 6), errors=[error(tensor(2, 3), 2), error(tensor(3), 2)],
        call=call) for name,
        call in (("matrix_power", None),
        ("linalg.matrix_power", lambda torch, x, n: torch.linalg.matrix_power(x, n)))),
    OpInfo("vander", sample(tensor(3)), sample(tensor(3), 4), sample(tensor(3), increasing=True),
        sample(tensor(3), N=2), forward_sample(tensor(3), 1), forward_sample(tensor(3), 0),
        dtypes=(*WIDE, "int64"), errors=[error(tensor(2, 2)), error(tensor(3), -1)],
        torch_grad_orders=0),  # PyTorch's gradient fails: it writes into what it has saved
    OpInfo("linalg.vander", sample(tensor(3)), sample(tensor(2, 3), N=4), dtypes=(*WIDE, "int64"),
        errors=[error(tensor(3), N=1)], call=lambda torch, x, **kw: torch.linalg.vander(x, **kw)),
]

OPS = PRODUCTS + EINSUMS + LINEAR + MATRICES
