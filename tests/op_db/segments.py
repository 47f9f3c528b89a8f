"""Rows of finite differences, histograms, segments, fractional pools, copies of views."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import (
    DISTINCT,
    FLOATS,
    INTS,
    POSITIVE,
    UNIT,
    V64,
    WIDE,
    C,
    E,
    Forward,
    Kink,
    N,
    Name,
    Op,
    S,
    T,
    Unread,
    V,
)

inf, nan = math.inf, math.nan
STEPS = V([0.0, 1.0, 3.0, 7.0], grad=False)

DIFFERENCES = [
    Op("gradient", S(T(3), spacing=(V([0.0, 1.0, 3.0, 7.0], grad=False),)),
        S(T(4), spacing=(V([0.0, 1.0, 3.0], grad=False),), edge_order=2),
        S(T(4, 5)), S(T(4, 5), spacing=2.0), S(T(4, 5), spacing=(2, 0.5)),
        S(T(4, 5), dim=1), S(T(4, 5), dim=(1, 0), spacing=(2.0, 3.0)), S(T(4, 5), spacing=2.0,
        dim=(0, -1)), S(T(4, 3), edge_order=2), S(T(2, 2)), S(T(4), spacing=(STEPS,)),
        S(T(3, 4), spacing=[STEPS], dim=1, edge_order=2), S(T(4, 4), spacing=(STEPS, STEPS),
        edge_order=1), dtypes=(*WIDE, "complex64"), accidents=("empty", "zero_dim"),
        errors=[E(T(1)), E(T(2, 3), edge_order=2), E(T(3), edge_order=3),
        E(T(3, 3), spacing=(2.0,)),
        E(T(3, 3), dim=(0, 0)), E(T(3, 3), dim=5), E(T(3, 3), spacing=(2.0, 3.0), dim=1),
        E(N(3, dtype="uint8")), E(T(3), spacing=STEPS), E(T(3, dtype="bool"))]),
    Op("gradient.integers", S(N(3, 4)), S(N(4), spacing=2, edge_order=2), dtypes=("int64", "int32"),
        grad=False, accidents=("empty", "zero_dim")),
]

VALUES = V([1.0, 2.0, 4.0, 8.0, 3.0, 5.0, 7.0, 1.0], grad=False)
EDGES = V([0.0, 2.0, 4.0, 8.0], grad=False)
POINTS = V([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]], grad=False)

HISTOGRAMS = [
    Op("histogram", S(VALUES), S(VALUES, 4), S(VALUES, EDGES), S(VALUES, 4, range=(0.0, 8.0)),
        S(VALUES, 4, range=(0, 4)), S(VALUES, 4, weight=C(8)), S(VALUES, 4, density=True),
        S(VALUES, EDGES, density=True, weight=C(8, of=POSITIVE)), S(VALUES, 4, range=(3.0, 3.0)),
        S(C(0), 3), S(V([1.0, 1.0], grad=False), 3), S(V([1.0, nan], grad=False), 3,
        range=(0.0, 3.0)), S(C(3, 4), 3), dtypes=WIDE, grad=False, layout=False,
        accidents=("empty", "zero_dim"),
        errors=[E(VALUES, 0), E(VALUES, -1), E(V64([1]), 3), E(VALUES, 4, range=(3, 1)),
        E(VALUES, 4, range=(3.0,)), E(VALUES, V([[0.0, 1.0]])), E(VALUES, V([0.0])),
        E(VALUES, V([])), E(VALUES, V([0.0, 1.0], dtype="float64")), E(VALUES, 4, weight=T(3)),
        E(VALUES, 4, weight=T(8, dtype="float64")), E(V([1.0, nan]), 3), E(VALUES, [3]),
        E(VALUES, 3, range=(0.0, inf)), E(VALUES, EDGES, range=(0.0, 1.0))]),
    Op("histogramdd", S(POINTS, [3, 3]), S(POINTS, 2),
        S(POINTS, [2, 2], range=[0.0, 1.0, 0.0, 1.0]),
        S(POINTS, [2, 3], weight=C(4)), S(POINTS, [2, 2], density=True), S(POINTS, (EDGES, EDGES)),
        S(C(2, 3, 2), 2), S(C(0, 2), 2), S(C(5, 3), (1, 2, 3)), dtypes=WIDE, grad=False,
        layout=False, accidents=("empty", "zero_dim"),
        errors=[E(POINTS, [2]), E(T(2), [2, 2]), E(POINTS, [2, 2], range=[0.0, 1.0]),
        E(POINTS, [2, 0]), E(N(2, 2), [2, 2]), E(POINTS, [2, 2], weight=T(3)), E(POINTS, (EDGES,)),
        E(POINTS, EDGES), E(T(), 2)]),
]

SEGMENTS = [
    *(Op(f"segment_reduce.{how}", S(T(4, 2), how, lengths=V64([1, 3])),
        S(T(4, 2), how, offsets=V64([0, 1, 4])), S(T(6), how, lengths=V64([2, 3, 1])),
        S(T(3, 4, 2), how, lengths=V64([[1, 3], [2, 2],
        [3, 1]]), axis=1), S(T(4, 2), how, lengths=V64([1, 3]), initial=2),
        Forward(T(4), how, lengths=V64([1, 0, 3])), Forward(T(4), how, lengths=V64([0, 4]),
        initial=0.5), Forward(T(4), how, lengths=V64([1, 2]), unsafe=True),
        S(T(4), how, lengths=V([1, 3], dtype="int32", grad=False)), of=DISTINCT, dtypes=WIDE,
        torch_orders=1, accidents=("empty", "zero_dim", "resized"))
        for how in ("sum", "mean", "max", "min", "prod")),
    *(Op(f"segment_reduce.{how}_infinite", Kink(V([x, 2.0, x, 1.0]), how, lengths=V64([1, 3])),
        dtypes=WIDE) for how, x in (("max", -inf), ("min", inf))),
    Op("segment_reduce", S(T(4), "sum", lengths=V64([4])), torch_orders=1,
        tol={"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}, why="sums of rounded terms",
        accidents=("empty", "zero_dim"), errors=[E(T(4), "sum"), E(T(4), "foo", lengths=V64([4])),
        Unread(T(4), "sum", lengths=V64([1, 2])), Unread(T(4), "sum", lengths=V64([5, -1])),
        E(T(4), "sum", indices=V64([0])), E(N(4), "sum", lengths=V64([4])),
        E(T(4), "sum", lengths=V([4.0])), E(T(4, 2), "sum", lengths=V64([1, 1]), axis=1),
        E(T(), "sum", lengths=V64([1]))]),
    Op("nonzero_static", S(N(3, 4), size=2), S(N(3, 4), size=20), S(N(4), size=4, fill_value=9),
        S(N(3, 4), size=0), S(V64(3), size=2), S(V64(0), size=2), dtypes=("float32", *INTS, "bool"),
        grad=False, layout=False, errors=[E(N(3), size=-1), E(N(3)), E(N(3), 2)]),
]


def fractional(name, shape, samples, **kw):
    """A row of a fractional pool over (1, 2, ...) and given samples."""
    ndim = len(shape) - 2
    u = C(1, 2, samples, of=UNIT)
    return Op(f"F.{name}", S(T(*shape), 2, 3, _random_samples=u), S(T(*shape), 2,
        output_ratio=(0.5,) * ndim, _random_samples=u), S(T(*shape), (2, 3, 2)[:ndim],
        (3, 1, 2)[:ndim], _random_samples=u), S(T(*shape[1:]), 2, 2, _random_samples=u),
        of=DISTINCT, dtypes=WIDE, accidents=("empty", "zero_dim"), torch_orders=1,
        errors=[E(T(*shape), 2), E(T(*shape), 2, 9), E(T(1, *shape), 2, 2),
        E(T(*shape), 2, 3, _random_samples=C(2)),
        E(T(*shape), 2, 3, _random_samples=C(1, 2, 1)), E(T(1, 0, *shape[2:]), 2, 2),
        E(T(*shape), 2, 3, _random_samples=C(1, 2, ndim, dtype="float64")),
        *[E(T(*shape), 2, output_ratio=0.5)] * (ndim == 2)], **kw)


POOLS = [
    fractional("fractional_max_pool2d", (1, 2, 6, 7), 2),
    fractional("fractional_max_pool2d_with_indices", (1, 2, 6, 7), 2),
    fractional("fractional_max_pool3d", (1, 2, 5, 6, 5), 3),
    fractional("fractional_max_pool3d_with_indices", (1, 2, 5, 6, 5), 3),
]

COPIES = [
    Op("alias_copy", S(T(2, 3)), out=True), Op("detach_copy", S(T(2, 3)), grad=False, out=True),
    Op("slice_copy", S(T(2, 4), 1, 1, 3), S(T(2, 4)), S(T(3), 0, None, None, 2), S(T(4), start=1,
        step=2), S(T(4), end=-1), out=True, accidents=("zero_dim",),
        errors=[E(T(3), 0, step=0), E(T(2, 3), 5)]),
    Op("split_copy", S(T(2, 5), 2, 1), S(T(4), 2), accidents=("zero_dim",),
        errors=[E(T(2, 3), [1, 1]), E(T(2, 3), 1, 5)]),
    Op("view_as_real_copy", S(T(2, 3)), dtypes=("complex64", "complex128"), out=True,
        errors=[E(T(2))]),
    Op("view_as_complex_copy", S(T(3, 2)), dtypes=WIDE, out=True, accidents=("empty", "zero_dim"),
        grad=False, layout=False, errors=[E(T(3)), E(N(3, 2))]),
    Op("slice_inverse", S(T(6), C(2, 3)), S(T(2, 3), C(3)), dtypes=FLOATS, grad=False, layout=False,
        accidents=("empty", "zero_dim"), errors=[E(T(3), T(4))]),
]

GROUPED = [
    Op("F.grouped_mm", S(T(2, 3, 8), T(2, 8, 8)), S(T(4, 8), T(2, 8, 8), offs=V([1, 4],
        dtype="int32", grad=False)), S(T(4, 8), T(8, 8), offs=V([1, 8], dtype="int32",
        grad=False)), S(T(2, 4, 8), T(8, 8), offs=V([4, 8], dtype="int32", grad=False)),
        dtypes=("float32",), torch_orders=1, layout=False, accidents=("empty", "zero_dim"),
        same=True, errors=[E(T(4, 8), T(2, 8, 8)),
        E(T(2, 4, 8), T(2, 8, 8), out_dtype=Name("bfloat16")),
        E(T(2, 4, 8, dtype="float64"), T(2, 8, 8, dtype="float64")),
        E(T(2, 4, 8), T(2, 8, 8), offs=V([1, 4], dtype="int32"))]),
    Op("F.linear_cross_entropy", S(T(3, 4), T(5, 4), V64([0, 1, 4])),
        S(T(3, 4), T(5, 2, 4), V64([[0, 1], [1, 1], [4, 0]]), reduction="sum"),
        S(T(4), T(5, 4), V64(0)), S(T(3, 4), T(5, 4), V64([0, 1, 4]), linear_bias=T(5),
        reduction="none"), S(T(3, 4), T(5, 4), V64([0, 1, 4]), ignore_index=1,
        weight=C(5, of=POSITIVE), label_smoothing=0.1), S(T(3, 4), T(5, 4), C(3, 5, of=UNIT)),
        dtypes=WIDE, accidents=("empty", "zero_dim"),
        errors=[E(T(2, 3, 4), T(5, 4), N(2, 3)), E(T(3, 4), T(5, 2), V64([0, 1, 4])),
        E(T(3, 4), T(5, 4), V64([0, 1])), E(T(3, 4), T(5, 4), V64([0, 1, 4]), linear_bias=T(3)),
        E(T(3, 4), T(5, 4), V64([0, 1, 4]), reduction="foo")]),
]

BRANCHES = [
    Op("cond", S(V(True, dtype="bool"), T(3)), S(V([0.0], grad=False), T(3)),
        call=lambda torch, pred, *x: torch.cond(pred, lambda x: x * 2, lambda x: x.sin(), x),
        dtypes=WIDE, grad=False, accidents=("empty", "zero_dim"), layout=False,
        errors=[E(V([True, False], dtype="bool"), T(3))]),
    Op("while_loop", S(V64(0), T(3)), S(V64(4), T(3)),
        call=lambda torch, i, x: torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2),
        (i, x)), dtypes=WIDE, grad=False, accidents=("empty", "zero_dim"), layout=False),
]

OPS = GROUPED + BRANCHES + DIFFERENCES + HISTOGRAMS + SEGMENTS + POOLS + COPIES
