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
    WIDE,
    Attribute,
    OpInfo,
    constant,
    cpu_only_error,
    error,
    forward_sample,
    int64,
    integers,
    literal,
    sample,
    subgradient_sample,
    tensor,
)

inf, nan = math.inf, math.nan
STEPS = literal([0.0, 1.0, 3.0, 7.0], requires_grad=False)

DIFFERENCES = [
    OpInfo("gradient",
        sample(tensor(3), spacing=(literal([0.0, 1.0, 3.0, 7.0], requires_grad=False),)),
        sample(tensor(4), spacing=(literal([0.0, 1.0, 3.0], requires_grad=False),), edge_order=2),
        sample(tensor(4, 5)), sample(tensor(4, 5), spacing=2.0),
        sample(tensor(4, 5), spacing=(2, 0.5)), sample(tensor(4, 5), dim=1),
        sample(tensor(4, 5), dim=(1, 0), spacing=(2.0, 3.0)),
        sample(tensor(4, 5), spacing=2.0, dim=(0, -1)), sample(tensor(4, 3), edge_order=2),
        sample(tensor(2, 2)), sample(tensor(4), spacing=(STEPS,)),
        sample(tensor(3, 4), spacing=[STEPS], dim=1, edge_order=2),
        sample(tensor(4, 4), spacing=(STEPS, STEPS), edge_order=1), dtypes=(*WIDE, "complex64"),
        skip_undefined_behavior=("empty", "zero_dim"), errors=[error(tensor(1)),
        error(tensor(2, 3), edge_order=2), error(tensor(3), edge_order=3),
        error(tensor(3, 3), spacing=(2.0,)), error(tensor(3, 3), dim=(0, 0)),
        error(tensor(3, 3), dim=5), error(tensor(3, 3), spacing=(2.0, 3.0), dim=1),
        error(integers(3, dtype="uint8")), error(tensor(3), spacing=STEPS),
        error(tensor(3, dtype="bool"))]),
    OpInfo("gradient.integers", sample(integers(3, 4)),
        sample(integers(4), spacing=2, edge_order=2), dtypes=("int64", "int32"),
        supports_autograd=False, skip_undefined_behavior=("empty", "zero_dim")),
]

VALUES = literal([1.0, 2.0, 4.0, 8.0, 3.0, 5.0, 7.0, 1.0], requires_grad=False)
EDGES = literal([0.0, 2.0, 4.0, 8.0], requires_grad=False)
POINTS = literal([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]], requires_grad=False)

HISTOGRAMS = [
    OpInfo("histogram", sample(VALUES), sample(VALUES, 4), sample(VALUES, EDGES),
        sample(VALUES, 4, range=(0.0, 8.0)), sample(VALUES, 4, range=(0, 4)),
        sample(VALUES, 4, weight=constant(8)), sample(VALUES, 4, density=True),
        sample(VALUES, EDGES, density=True, weight=constant(8, domain=POSITIVE)),
        sample(VALUES, 4, range=(3.0, 3.0)), sample(constant(0), 3),
        sample(literal([1.0, 1.0], requires_grad=False), 3),
        sample(literal([1.0, nan], requires_grad=False), 3, range=(0.0, 3.0)),
        sample(constant(3, 4), 3), dtypes=WIDE, supports_autograd=False, check_layouts=False,
        skip_undefined_behavior=("empty", "zero_dim"), errors=[error(VALUES, 0), error(VALUES, -1),
        error(int64([1]), 3), error(VALUES, 4, range=(3, 1)), error(VALUES, 4, range=(3.0,)),
        error(VALUES, literal([[0.0, 1.0]])), error(VALUES, literal([0.0])),
        error(VALUES, literal([])), error(VALUES, literal([0.0, 1.0], dtype="float64")),
        error(VALUES, 4, weight=tensor(3)), error(VALUES, 4, weight=tensor(8, dtype="float64")),
        error(literal([1.0, nan]), 3), error(VALUES, [3]), error(VALUES, 3, range=(0.0, inf)),
        error(VALUES, EDGES, range=(0.0, 1.0))]),
    OpInfo("histogramdd", sample(POINTS, [3, 3]), sample(POINTS, 2),
        sample(POINTS, [2, 2], range=[0.0, 1.0, 0.0, 1.0]),
        sample(POINTS, [2, 3], weight=constant(4)), sample(POINTS, [2, 2], density=True),
        sample(POINTS, (EDGES, EDGES)), sample(constant(2, 3, 2), 2), sample(constant(0, 2), 2),
        sample(constant(5, 3), (1, 2, 3)), dtypes=WIDE, supports_autograd=False,
        check_layouts=False, skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(POINTS, [2]), error(tensor(2), [2, 2]),
        error(POINTS, [2, 2], range=[0.0, 1.0]), error(POINTS, [2, 0]),
        error(integers(2, 2), [2, 2]), error(POINTS, [2, 2], weight=tensor(3)),
        error(POINTS, (EDGES,)), error(POINTS, EDGES), error(tensor(), 2)]),
]

SEGMENTS = [
    *(OpInfo(f"segment_reduce.{how}", sample(tensor(4, 2), how, lengths=int64([1, 3])),
        sample(tensor(4, 2), how, offsets=int64([0, 1, 4])),
        sample(tensor(6), how, lengths=int64([2, 3, 1])),
        sample(tensor(3, 4, 2), how, lengths=int64([[1, 3], [2, 2], [3, 1]]), axis=1),
        sample(tensor(4, 2), how, lengths=int64([1, 3]), initial=2),
        forward_sample(tensor(4), how, lengths=int64([1, 0, 3])),
        forward_sample(tensor(4), how, lengths=int64([0, 4]), initial=0.5),
        forward_sample(tensor(4), how, lengths=int64([1, 2]), unsafe=True),
        sample(tensor(4), how, lengths=literal([1, 3], dtype="int32", requires_grad=False)),
        domain=DISTINCT, dtypes=WIDE, torch_grad_orders=1,
        skip_undefined_behavior=("empty", "zero_dim", "resized")) for how
        in ("sum", "mean", "max", "min", "prod")),
    *(OpInfo(f"segment_reduce.{how}_infinite",
        subgradient_sample(literal([x, 2.0, x, 1.0]), how, lengths=int64([1, 3])),
        dtypes=WIDE) for how, x in (("max", -inf), ("min", inf))),
    OpInfo("segment_reduce", sample(tensor(4), "sum", lengths=int64([4])), torch_grad_orders=1,
        tolerances={"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)},
        tolerance_reason="sums of rounded terms", skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(4), "sum"), error(tensor(4), "foo", lengths=int64([4])),
        cpu_only_error(tensor(4), "sum", lengths=int64([1, 2])),
        cpu_only_error(tensor(4), "sum", lengths=int64([5, -1])),
        error(tensor(4), "sum", indices=int64([0])), error(integers(4), "sum", lengths=int64([4])),
        error(tensor(4), "sum", lengths=literal([4.0])),
        error(tensor(4, 2), "sum", lengths=int64([1, 1]), axis=1),
        error(tensor(), "sum", lengths=int64([1]))]),
    OpInfo("nonzero_static", sample(integers(3, 4), size=2), sample(integers(3, 4), size=20),
        sample(integers(4), size=4, fill_value=9), sample(integers(3, 4), size=0),
        sample(int64(3), size=2), sample(int64(0), size=2), dtypes=("float32", *INTS, "bool"),
        supports_autograd=False, check_layouts=False, errors=[error(integers(3), size=-1),
        error(integers(3)), error(integers(3), 2)]),
]


def fractional(name, shape, samples, **kw):
    """A row of a fractional pool over (1, 2, ...) and given samples."""
    ndim = len(shape) - 2
    u = constant(1, 2, samples, domain=UNIT)
    return OpInfo(f"F.{name}", sample(tensor(*shape), 2, 3, _random_samples=u),
        sample(tensor(*shape), 2, output_ratio=(0.5,) * ndim, _random_samples=u),
        sample(tensor(*shape), (2, 3, 2)[:ndim], (3, 1, 2)[:ndim], _random_samples=u),
        sample(tensor(*shape[1:]), 2, 2, _random_samples=u), domain=DISTINCT, dtypes=WIDE,
        skip_undefined_behavior=("empty", "zero_dim"), torch_grad_orders=1,
        errors=[error(tensor(*shape), 2), error(tensor(*shape), 2, 9),
        error(tensor(1, *shape), 2, 2), error(tensor(*shape), 2, 3, _random_samples=constant(2)),
        error(tensor(*shape), 2, 3, _random_samples=constant(1, 2, 1)),
        error(tensor(1, 0, *shape[2:]), 2, 2),
        error(tensor(*shape), 2, 3, _random_samples=constant(1, 2, ndim, dtype="float64")),
        *[error(tensor(*shape), 2, output_ratio=0.5)] * (ndim == 2)], **kw)


POOLS = [
    fractional("fractional_max_pool2d", (1, 2, 6, 7), 2),
    fractional("fractional_max_pool2d_with_indices", (1, 2, 6, 7), 2),
    fractional("fractional_max_pool3d", (1, 2, 5, 6, 5), 3),
    fractional("fractional_max_pool3d_with_indices", (1, 2, 5, 6, 5), 3),
]

COPIES = [
    OpInfo("alias_copy", sample(tensor(2, 3)), supports_out=True), OpInfo("detach_copy",
        sample(tensor(2, 3)), supports_autograd=False, supports_out=True),
    OpInfo("slice_copy", sample(tensor(2, 4), 1, 1, 3), sample(tensor(2, 4)),
        sample(tensor(3), 0, None, None, 2), sample(tensor(4), start=1, step=2),
        sample(tensor(4), end=-1), supports_out=True, skip_undefined_behavior=("zero_dim",),
        errors=[error(tensor(3), 0, step=0), error(tensor(2, 3), 5)]),
    OpInfo("split_copy", sample(tensor(2, 5), 2, 1), sample(tensor(4), 2),
        skip_undefined_behavior=("zero_dim",), errors=[error(tensor(2, 3), [1, 1]),
        error(tensor(2, 3), 1, 5)]),
    OpInfo("view_as_real_copy", sample(tensor(2, 3)), dtypes=("complex64", "complex128"),
        supports_out=True, errors=[error(tensor(2))]),
    OpInfo("view_as_complex_copy", sample(tensor(3, 2)), dtypes=WIDE, supports_out=True,
        skip_undefined_behavior=("empty", "zero_dim"), supports_autograd=False, check_layouts=False,
        errors=[error(tensor(3)), error(integers(3, 2))]),
    OpInfo("slice_inverse", sample(tensor(6), constant(2, 3)), sample(tensor(2, 3), constant(3)),
        dtypes=FLOATS, supports_autograd=False, check_layouts=False,
        skip_undefined_behavior=("empty", "zero_dim"), errors=[error(tensor(3), tensor(4))]),
]

GROUPED = [
    OpInfo("F.grouped_mm", sample(tensor(2, 3, 8), tensor(2, 8, 8)),
        sample(tensor(4, 8), tensor(2, 8, 8),
        offs=literal([1, 4], dtype="int32", requires_grad=False)),
        sample(tensor(4, 8), tensor(8, 8),
        offs=literal([1, 8], dtype="int32", requires_grad=False)),
        sample(tensor(2, 4, 8), tensor(8, 8),
        offs=literal([4, 8], dtype="int32", requires_grad=False)), dtypes=("float32",),
        torch_grad_orders=1, check_layouts=False, skip_undefined_behavior=("empty", "zero_dim"),
        same_dtype_oracle=True, errors=[error(tensor(4, 8), tensor(2, 8, 8)),
        error(tensor(2, 4, 8), tensor(2, 8, 8), out_dtype=Attribute("bfloat16")),
        error(tensor(2, 4, 8, dtype="float64"), tensor(2, 8, 8, dtype="float64")),
        error(tensor(2, 4, 8), tensor(2, 8, 8), offs=literal([1, 4], dtype="int32"))]),
    OpInfo("F.linear_cross_entropy", sample(tensor(3, 4), tensor(5, 4), int64([0, 1, 4])),
        sample(tensor(3, 4), tensor(5, 2, 4), int64([[0, 1], [1, 1], [4, 0]]), reduction="sum"),
        sample(tensor(4), tensor(5, 4), int64(0)),
        sample(tensor(3, 4), tensor(5, 4), int64([0, 1, 4]), linear_bias=tensor(5),
        reduction="none"),
        sample(tensor(3, 4), tensor(5, 4), int64([0, 1, 4]), ignore_index=1,
        weight=constant(5, domain=POSITIVE), label_smoothing=0.1),
        sample(tensor(3, 4), tensor(5, 4), constant(3, 5, domain=UNIT)), dtypes=WIDE,
        skip_undefined_behavior=("empty", "zero_dim"),
        errors=[error(tensor(2, 3, 4), tensor(5, 4), integers(2, 3)),
        error(tensor(3, 4), tensor(5, 2), int64([0, 1, 4])),
        error(tensor(3, 4), tensor(5, 4), int64([0, 1])),
        error(tensor(3, 4), tensor(5, 4), int64([0, 1, 4]), linear_bias=tensor(3)),
        error(tensor(3, 4), tensor(5, 4), int64([0, 1, 4]), reduction="foo")]),
]

BRANCHES = [
    OpInfo("cond", sample(literal(True, dtype="bool"), tensor(3)),
        sample(literal([0.0], requires_grad=False), tensor(3)),
        call=lambda torch, pred, *x: torch.cond(pred, lambda x: x * 2, lambda x: x.sin(), x),
        dtypes=WIDE, supports_autograd=False, skip_undefined_behavior=("empty", "zero_dim"),
        check_layouts=False, errors=[error(literal([True, False], dtype="bool"), tensor(3))]),
    OpInfo("while_loop", sample(int64(0), tensor(3)), sample(int64(4), tensor(3)),
        call=lambda torch, i, x: torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2),
        (i, x)), dtypes=WIDE, supports_autograd=False,
        skip_undefined_behavior=("empty", "zero_dim"), check_layouts=False),
]

OPS = GROUPED + BRANCHES + DIFFERENCES + HISTOGRAMS + SEGMENTS + POOLS + COPIES
