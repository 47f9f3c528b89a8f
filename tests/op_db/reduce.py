"""Rows of reductions, scans and sorting."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import (
    ALL,
    BOOL,
    COMPLEX,
    DISTINCT,
    NONZERO,
    NORMAL,
    NUMBERS,
    POSITIVE,
    UNIT,
    V64,
    WIDE,
    B,
    C,
    E,
    Forward,
    Kink,
    N,
    Name,
    Op,
    S,
    T,
    V,
    whole,
)

inf, nan = math.inf, math.nan
HOLES = [[1.0, nan, 3.0], [nan, nan, -2.0]]
BAD_DIM = [E(T(2, 3), 2), E(T(2, 3), -3), E(T(2, 3), "x")]
SUMS = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}
WHY = "sums of rounded terms"


def reduction(name, *more, of=NORMAL, many=True, **options):
    """A row of a reduction: everything, one dimension, several, kept or not, none, empty ones."""
    samples = [
        S(T(3, 4)), S(T()), S(T(2, 3, 4), 1), S(T(2, 3, 4), -1, keepdim=True), S(T(3), dim=0),
        S(T(0, 3), 1),
    ]
    if many:
        samples += [
            S(T(2, 3, 4), (0, 2)), S(T(2, 3, 4), dim=[-1, 0], keepdim=True), S(T(2, 3), dim=()),
            S(T(2, 3), dim=None),
        ]
    options.setdefault("errors", BAD_DIM + ([E(T(2, 3), (0, 0))] if many else []))
    return Op(name, *samples, *more, of=of, **options)


def pair(name, *more, of=DISTINCT, **options):
    """A row of a function along one dimension that gives values and indices."""
    options.setdefault("errors", BAD_DIM)
    return Op(name, *more, of=of, **options)


SUMS_ROWS = [
    reduction("sum", S(T(3, 4), dtype=Name("float64")), Forward(T(2, 3), 0, dtype=Name("int32")),
        S(T(3, 4), axis=0), dtypes=ALL, tol=SUMS, why=WHY),
    reduction("mean", S(T(3, 4), dtype=Name("float64")), S(T(3, 4), 1, True), tol=SUMS, why=WHY,
        order3=True, errors=BAD_DIM + [E(N(3)), E(B(2))]),
    reduction("nansum", Kink(V(HOLES)), Kink(V(HOLES), 1), tol=SUMS, why=WHY),
    reduction("nanmean", Kink(V(HOLES)), Kink(V(HOLES), 1), tol=SUMS, why=WHY),
    reduction("prod", S(T(3, 4), dtype=Name("float64")), Kink(V([0.0, 2.0, 3.0])),
        Kink(V([0.0, 0.0, 3.0])), S(T(0)), S(V([0.0, 2.0, 3.0])), many=False, of=NONZERO,
        dtypes=ALL, tol=SUMS, why=WHY),
    Op("logsumexp", S(T(3, 4), 1), S(T(), 0), S(T(2, 3, 4), -2, True), S(T(2, 3, 4), dim=(0, 2)),
        S(T(0, 3), 1), S(V([[100.0, 101.0], [-200.0, 3.0]]), 1),
        Forward(V([[inf, 1.0], [-inf, -inf]]), 1), tol=SUMS, why=WHY, order3=True,
        errors=[E(T(2, 3), 2), E(T(2, 3))]),
    reduction("amax", of=DISTINCT, dtypes=ALL), reduction("amin", of=DISTINCT, dtypes=ALL),
    Op("amax.ties", Kink(V([[1.0, 1.0, 0.0], [2.0, 1.0, 2.0]])),
        Kink(V([[1.0, 1.0, 0.0], [2.0, 1.0, 2.0]]), 1), Forward(V([1.0, nan, 0.0]))),
    Op("aminmax", S(T(3, 4)), S(T(3, 4), dim=0), S(T(3, 4), dim=1, keepdim=True), S(T()),
        of=DISTINCT, dtypes=ALL, errors=[E(T(0)), E(T(2, 3), dim=2)]),
    *(reduction(name, Forward(V([0.0, nan])), S(T(0)), dtypes=ALL, grad=False, of=whole(0, 2))
        for name in ("any", "all")),
    Op("hash_tensor", S(T(3, 4)), S(T(3, 4), 0), S(T(2, 3, 5), (0, -1), keepdim=True), S(T()),
       errors=[E(T(2, 0), 1), E(T(3), 2), E(T(3), mode=1)],
       dtypes=(*NUMBERS, "bool"), grad=False, same=True, accidents=("empty",)),
    Op("count_nonzero", S(T(3, 4)), S(T(3, 4), 0), S(T(3, 4), dim=(0, 1)), S(T(3, 4), -1),
        of=whole(-1, 2), dtypes=ALL, grad=False),
    *(Op(name, S(T(3, 4)), S(T(2, 3, 4), 1), S(T(2, 3, 4), (0, 2)),
        S(T(2, 3), dim=1, unbiased=False), S(T(3, 4), False), S(T(3, 4), 0, True, True),
        S(T(2, 3, 4), dim=(1, 2), correction=0, keepdim=True), S(T(5), correction=2),
        S(T(3, 4), dim=0, correction=1), tol=SUMS, why=WHY, errors=BAD_DIM + [E(N(3,
        dtype="int64"))]) for name in ("var", "std")),
    *(Op(name, S(T(3, 4)), S(T(2, 3, 4), 1), S(T(2, 3, 4), (0, 2), keepdim=True),
        S(T(3, 4), dim=0, correction=0), S(T(3, 4), 0, False), tol=SUMS, why=WHY,
        errors=[E(T(2, 3), 2)], accidents=("odd",)) for name in ("var_mean", "std_mean")),
    Op("norm", S(T(3, 4)), S(T(3, 4), 1), S(T(3, 4), p=2, dim=0), S(T(3, 4), 3, 1, True),
        S(T(3, 4), inf), S(T(3, 4), -inf, 1), S(T(3, 4), p=1, dim=(0, 1)),
        S(T(3, 4), p="fro", dim=(0, 1)), Forward(T(3, 4), 0), Kink(V([0.0, 0.0])), S(T(3, 4), 0.5),
        S(T(3, 4), "fro"), of=DISTINCT, tol=SUMS, why=WHY),
    Op("dist", S(T(3, 4), T(4)), S(T(3), T(3), 1), S(T(3), T(3), 3.0), S(T(3), T(3), inf), tol=SUMS,
        why=WHY),
    Op("linalg.vector_norm", S(T(3, 4)), S(T(3, 4), 1, dim=1),
        S(T(3, 4), ord=3, dim=(0, 1), keepdim=True), S(T(3, 4), inf, 0),
        S(T(3, 4), dtype=Name("float64")),
        call=lambda torch, *args, **kw: torch.linalg.vector_norm(*args, **kw), tol=SUMS, why=WHY),
    Op("trace", S(T(3, 3)), S(T(2, 4)), dtypes=WIDE + ("int64",), errors=[E(T(3)), E(T(2, 2, 2))]),
]

EXTREMES = [
    *(pair(f"{name}.dim", S(T(3, 4), 1), S(T(2, 3, 4), -2), S(T(2, 3, 4), dim=0, keepdim=True),
        S(T(), 0), dtypes=NUMBERS, errors=BAD_DIM + [E(T(0, 3), 0)]) for name in ("max", "min")),
    *(Op(name, S(T(3, 4)), S(T()), of=DISTINCT, dtypes=ALL, errors=[E(T(0))])
        for name in ("max", "min")),
    *(Op(f"{name}.other", S(T(3, 4), T(4)), S(T(3), T()), of=NORMAL, dtypes=NUMBERS,
        errors=[E(T(3), T(4))]) for name in ("max", "min")),
    *(Op(f"{name}.ties", Kink(V([[1.0, 1.0, 0.0], [2.0, 1.0, 2.0]])), Forward(V([1.0, nan, 0.0])),
        Forward(V([[nan, 1.0, nan]]), 1)) for name in ("max", "min")),
    *(Op(name, S(T(3, 4)), S(T(3, 4), 1), S(T(2, 3, 4), -2), S(T(2, 3), dim=0, keepdim=True),
        S(T()), S(T(3, 4), dim=None), Forward(V([1.0, nan, 0.0])), Forward(V([3.0, 1.0, 3.0, 1.0])),
        of=DISTINCT, dtypes=NUMBERS, grad=False, errors=[E(T(0)), E(T(2, 3), 2)])
        for name in ("argmax", "argmin")),
    pair("median.dim", S(T(3, 5), 1), S(T(3, 4), 0), S(T(2, 4), dim=-1, keepdim=True),
        Forward(V([[1.0, nan, 0.0]]), 1), dtypes=WIDE + ("int64",), accidents=("dtypes",)),
    Op("median", S(T(3, 5)), S(T(4)), S(T()), Forward(T(0, 5)),
        Forward(V([1.0, nan, 0.0])), of=DISTINCT,
        dtypes=WIDE + ("int64",)),
    Op("nanmedian", S(T(3, 5)), S(V([1.0, nan, 0.5, 2.0])), of=DISTINCT, dtypes=WIDE,
        accidents=("gradient",)),  # PyTorch's gradient of an empty gradient's sum is NaN
    pair("nanmedian.dim", S(T(3, 5), 1), Kink(V([[1.0, nan, 0.5, 2.0]]), 1), dtypes=WIDE),
    pair("mode", Kink(V([[1.0, 2.0, 2.0], [3.0, 1.0, 3.0]]), 1),
        Kink(V([[1.0, 2.0, 2.0]]), -1, True), Kink(V([3.0, 3.0, 1.0])), dtypes=WIDE + ("int64",),
        ),
    pair("kthvalue", S(T(5), 2), S(T(3, 4), 3, 0), S(T(3, 4), k=1, dim=1, keepdim=True),
        dtypes=WIDE + ("int64",), errors=[E(T(3), 0), E(T(3), 4), E(T(2, 3), 1, 2)],
        accidents=("dtypes",)),  # as in topk
    pair("topk", S(T(5), 2), S(T(3, 4), 3, 0), S(T(3, 4), 2, largest=False), S(T(3, 4), k=1, dim=1),
        S(T(3, 4), 0), dtypes=NUMBERS[:-1],  # uint8 values tie, in no order of PyTorch's promise
        errors=[E(T(3), 4), E(T(3), -1), E(T(2, 3), 1, 2)], accidents=("dtypes",)),
    pair("sort", S(T(5)), S(T(3, 4), 0), S(T(3, 4), descending=True),
        S(T(3, 4), dim=1, stable=True), S(T()), S(T(0)), Forward(V([2.0, nan, 1.0, inf, -inf])),
        dtypes=NUMBERS, errors=[E(T(2, 3), 2)]),
    Op("sort.stable", Kink(V([2.0, 1.0, 2.0, 1.0, 1.0]), stable=True),
        Kink(V([2.0, 1.0, 2.0, 1.0]), stable=True, descending=True), dtypes=WIDE + ("int64",),
        ),
    pair("argsort", S(T(5)), S(T(3, 4), 0), S(T(3, 4), dim=1, descending=True),
        S(T(3, 4), stable=True), dtypes=NUMBERS, grad=False),
    pair("msort", S(T(5)), S(T(3, 4)), dtypes=WIDE),
    Op("quantile.of_tensors", S(T(3, 4), T(of=UNIT)), S(T(3, 4), T(2, of=UNIT), 1, True),
        *[S(T(5), T(of=UNIT), interpolation=how) for how in ("lower", "midpoint", "nearest")],
        of=DISTINCT, dtypes=WIDE, torch_orders=1),
    Op("quantile", S(T(3, 4), 0.3), S(T(3, 4), 0.5, 1), S(T(3, 4), C(2, of=whole(0, 2)), dim=0,
        keepdim=True), S(T(5), 0.6, interpolation="nearest"), S(T(5), 0.6, interpolation="lower"),
        of=DISTINCT, dtypes=WIDE, errors=[E(T(3), 1.5), E(N(3), 0.5)]),
]

SCANS = [
    Op("cumsum", S(T(5), 0), S(T(3, 4), 1), S(T(3, 4), dim=-2),
        S(T(3, 4), 0, dtype=Name("float64")), S(T(), 0), S(T(0, 3), 0), dtypes=NUMBERS,
        tol=SUMS, why=WHY, inplace="cumsum_", out=True, errors=BAD_DIM),
    Op("cumsum.bool", S(T(5), 0), S(T(3, 4), 1), dtypes=BOOL, grad=False),
    Op("cumprod", S(T(5), 0), S(T(3, 4), 1), S(T(3, 4), dim=-2), S(T(), 0),
        Kink(V([2.0, 0.0, 3.0, 4.0]), 0), Kink(V([0.0, 2.0, 0.0]), 0),
        S(V([2.0, 0.0, 3.0, 4.0]), 0), of=NONZERO, dtypes=NUMBERS, tol=SUMS, why=WHY,
        inplace="cumprod_", out=True, errors=BAD_DIM),
    *(pair(name, S(T(5), 0), S(T(3, 4), 1), S(T(3, 4), dim=0), dtypes=WIDE + ("int64",))
        for name in ("cummax", "cummin")),
    Op("logcumsumexp", S(T(5), 0), S(T(3, 4), 1), *[Kink(V(values), 0) for values in
        ([-inf, 2.0, inf, 1.0], [1.0, 2.0, inf, 3.0], [-inf, -inf, 0.5, 1.0], [inf, inf, 1.0])],
        dtypes=WIDE + COMPLEX),
    Op("logcumsumexp.complex", *[S(V(values, "complex128"), 0) for values in
        ([-2 + 6.28j, 6.28j, 1 - 6.28j], [1.4 + 6.2j, -0.9 + 5.7j, 1 - 5.2j, 5.3 - 6.3j])],
        dtypes=("float64",), layout=False),
    *(Op(f"{name}.complex", S(T(4, dtype="complex128"), 0), S(T(3, 4, dtype="complex128"), 1),
        dtypes=("float64",), layout=False) for name in ("prod", "cumprod")),
    Op("logsumexp.complex", S(V([2.6 + 0.7j, -1 + 0.4j, 2.7 - 5.1j, 6.3 + 4.6j], "complex128"), 0),
        dtypes=("float64",), layout=False, accidents=("out",)),  # of another dtype than the row's
    Op("diff", S(T(5)), S(T(3, 4), 2), S(T(3, 4), dim=0), S(T(3, 4), prepend=T(3, 1)),
        S(T(5), 0, prepend=T(2)), dtypes=WIDE + ("int64",)),
]

COUNTING = [
    Op("unique", S(T(9)), S(T(3, 4)), S(T(9), return_inverse=True), S(T(9), return_counts=True),
        S(T(9), True, True, True), S(T(0)), of=whole(0, 4), dtypes=ALL, grad=False),
    Op("unique.dim", S(T(6, 2), dim=0), S(T(6, 2), dim=0, return_inverse=True, return_counts=True),
        S(T(2, 5), dim=1), of=whole(0, 2), dtypes=("int64", "float32"), grad=False,
        accidents=("odd",)),
    Op("unique_consecutive", S(T(9)), S(T(9), return_inverse=True, return_counts=True),
        of=whole(0, 2), dtypes=("int64", "float32"), grad=False),
    Op("bincount", S(N(9, high=5)), S(N(9, high=5), minlength=8), S(N(9, high=5), C(9)), S(N(0)),
        dtypes=WIDE, grad=False, errors=[E(T(3)), E(N(2, 2)), E(V64([-1, 2]))]),
    Op("histc", S(T(20), 5), S(T(20), 5, -1.0, 1.0), S(T(3, 4), bins=4, min=0, max=2), dtypes=WIDE,
        grad=False, errors=[E(T(3), 0), E(T(3), 4, 2, 1)]),
    Op("bucketize", S(C(3, 4), V([-1.0, 0.0, 1.0])), S(V([-1.0, 0.0]), V([-1.0, 0.0, 1.0]),
        right=True), dtypes=WIDE, grad=False),
    Op("searchsorted", S(V([-1.0, 0.0, 1.0]), C(3, 4)), S(V([[-1.0, 0.0, 1.0]]), V([[-1.0, 0.0]]),
        right=True), dtypes=WIDE, grad=False),
    Op("isin", S(T(3, 4), T(5)), S(T(3), 1), of=whole(0, 9), dtypes=("int64", "float32"),
        grad=False),
]

WEIGHED = {"fweights": V64([1, 2, 1, 1, 3]), "aweights": C(5, of=POSITIVE)}
STATISTICS = [
    Op("cov", S(T(3, 5)), S(T(5)), S(T(3, 5), correction=0), S(T(3, 5), **WEIGHED),
        S(T(3, 5), correction=0, **WEIGHED), dtypes=WIDE, tol=SUMS, why=WHY, accidents=("odd",),
        errors=[E(T(2, 2, 2)), E(B(2, 2)), E(T(2, 3), fweights=V64([1, 2]))]),
    Op("corrcoef", S(T(3, 5)), dtypes=WIDE, tol=SUMS, why=WHY, errors=[E(T(2, 2, 2))]),
    Op("nanquantile", S(T(3, 4), 0.3), Kink(V([[1.0, nan, 0.5, 2.0]]), 0.4, 1),
        Kink(V([[1.0, nan, 0.5, 2.0], [nan, nan, nan, nan]]), V([0.4, 0.0]), 1),
        Kink(V([[1.0, nan, 0.5, 2.0], [nan, nan, nan, nan]]), V(0.4), 1), of=DISTINCT,
        dtypes=WIDE, errors=[E(T(3), 1.5)]),
    Op("trapezoid", S(T(3, 4)), S(T(3, 4), T(4)), S(T(3, 4), dx=2.0, dim=0),
        Forward(T(3, 0), T(0)), Forward(T(3, 1), T()), dtypes=WIDE,
        accidents=("odd",)),
    Op("cumulative_trapezoid", S(T(3, 4)), S(T(3, 4), T(4)), dtypes=WIDE,
        errors=[E(T(3), 2.0), E(T(3, 4), T())]),
    Op("trapezoid.int", S(T(3, 0)), S(T(3, 0), T(0)), S(T(3, 1)), S(T(3, 2)), 
        dtypes=("int64", "int32", "uint8"), grad=False),
    Op("renorm.nan", Kink(V([[nan, 1.0], [3.0, 4.0]]), 2, 0, 1.0), dtypes=WIDE),
    Op("renorm", S(T(3, 4), 2, 0, 1.5), S(T(3, 4), 1, 1, 2.0), dtypes=WIDE, inplace="renorm_",
        errors=[E(T(3, 4), 0, 0, 1.0), E(T(3, 4), 2, 0, -1.0)]),
    Op("linalg.norm", S(T(3, 4)), S(T(3, 4), 1), S(T(3, 4), -inf), S(T(4), 3), S(T(3, 4), dim=1),
        S(T(2, 3, 4), "fro", (0, 2), True), dtypes=WIDE,
        call=lambda torch, *args, **kw: torch.linalg.norm(*args, **kw),
        errors=[E(T(2, 3, 4), 2), E(N(3))]),
    Op("linalg.matrix_norm", S(T(3, 4)), S(T(2, 3, 4), inf), S(T(2, 3, 4), 1, (0, 1), True),
        dtypes=WIDE,
        call=lambda torch, *args, **kw: torch.linalg.matrix_norm(*args, **kw),
        errors=[E(T(3)), E(T(3, 4), 3), E(T(3, 4), "fro", (0, 0))]),
]

OPS = SUMS_ROWS + EXTREMES + SCANS + COUNTING + STATISTICS
