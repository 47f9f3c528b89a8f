"""Rows of convolutions, pooling, sliding windows and resizing."""

# fmt: off
from __future__ import annotations

import math

from tests.op_db._case import (
    DISTINCT,
    FLOATS,
    POSITIVE,
    WIDE,
    E,
    Forward,
    Kink,
    Op,
    S,
    T,
    V,
    whole,
)

HALVES = {"float16": (1e-2, 2e-2), "bfloat16": (6e-2, 1e-1), "float32": (1e-5, 2e-5)}
WHY = "sums of products of rounded numbers"
RESIZE = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2), "float32": (1e-5, 1e-5)}


def conv(name, *samples, **options):
    return Op("F." + name, *samples, tol=HALVES, why=WHY, accidents=("sizes",), **options)


CONV = [
    conv("conv1d", S(T(2, 3, 7), T(4, 3, 3)), S(T(2, 3, 7), T(4, 3, 3), T(4)),
        S(T(2, 3, 7), T(4, 3, 3), None, 2), S(T(2, 3, 7), T(4, 3, 3), padding=1),
        S(T(2, 3, 9), T(4, 3, 2), stride=3, padding=2, dilation=2),
        S(T(2, 4, 7), T(6, 2, 3), T(6), groups=2), S(T(3, 7), T(4, 3, 3), T(4)),
        S(T(2, 3, 7), T(4, 3, 3), padding="same"), S(T(2, 3, 7), T(4, 3, 4), padding="same",
        dilation=2), S(T(2, 3, 7), T(4, 3, 3), padding="valid"), S(T(1, 1, 1), T(1, 1, 1)),
        S(T(0, 3, 7), T(4, 3, 3)), S(T(2, 3, 7), T(4, 3, 3), stride=(2,), padding=(1,)),
        errors=[E(T(2, 3, 7), T(4, 2, 3)), E(T(2, 3, 2), T(4, 3, 3)),
        E(T(2, 3, 7), T(4, 3, 3), T(3)), E(T(2, 3, 7), T(4, 3, 3), stride=0),
        E(T(2, 3, 7), T(4, 3, 3), groups=2), E(T(2, 3, 7), T(4, 3, 3), padding="same", stride=2),
        E(T(2, 3, 7), T(4, 3, 3), padding=-1), E(T(2), T(4, 3, 3)),
        E(T(2, 3, 7), T(4, 3, 3, dtype="float64"))]),
    conv("conv2d", S(T(2, 3, 6, 5), T(4, 3, 3, 3)), S(T(2, 3, 6, 5), T(4, 3, 3, 2), T(4)),
        S(T(2, 3, 6, 5), T(4, 3, 3, 3), T(4), 2, 1), S(T(2, 3, 6, 5), T(4, 3, 3, 3), stride=(2, 1),
        padding=(0, 2)), S(T(1, 3, 7, 7), T(2, 3, 3, 2), dilation=(2, 3), padding=1),
        S(T(2, 4, 5, 5), T(6, 2, 3, 3), T(6), groups=2), S(T(2, 4, 5, 5), T(4, 1, 3, 3), groups=4,
        padding=1), S(T(2, 4, 5, 5), T(8, 1, 3, 3), groups=4, stride=2),
        S(T(3, 5, 5), T(4, 3, 3, 3), T(4)), S(T(2, 3, 5, 5), T(4, 3, 3, 3), padding="same"),
        S(T(2, 3, 5, 6), T(4, 3, 2, 4), padding="same", dilation=(1, 2)),
        S(T(2, 3, 5, 5), T(4, 3, 3, 3), padding="valid"), S(T(2, 3, 5, 5), T(4, 3, 1, 1)),
        S(T(0, 3, 5, 5), T(4, 3, 3, 3)), S(T(1, 1, 3, 3), T(1, 1, 3, 3)),
        S(T(2, 3, 8, 8), T(4, 3, 3, 3), stride=3), order3=True,
        errors=[E(T(2, 3, 5, 5), T(4, 2, 3, 3)), E(T(2, 3, 2, 2), T(4, 3, 3, 3)),
        E(T(2, 3, 5, 5), T(4, 3, 3, 3), T(3)), E(T(2, 3, 5, 5), T(4, 3, 3, 3), stride=0),
        E(T(2, 3, 5, 5), T(4, 3, 3, 3), padding="same", stride=2), E(T(2, 3, 5, 5), T(4, 3, 3)),
        E(T(5, 5), T(4, 3, 3, 3)), E(T(2, 3, 5, 5), T(4, 3, 3, 3), stride=(1, 1, 1)),
        E(T(2, 3, 5, 5), T(4, 3, 3, 3), padding="other")]),
    conv("conv3d", S(T(1, 2, 4, 4, 3), T(3, 2, 2, 3, 2)), S(T(1, 2, 4, 4, 3), T(3, 2, 2, 2, 2),
        T(3), stride=2, padding=1), S(T(1, 2, 4, 4, 4), T(2, 1, 2, 2, 2), groups=2, dilation=2),
        S(T(2, 4, 4, 3), T(3, 2, 2, 3, 2), padding="same"), dtypes=WIDE,
        errors=[E(T(1, 2, 4, 4, 3), T(3, 1, 2, 3, 2))]),
    conv("conv_transpose1d", S(T(2, 3, 5), T(3, 4, 3)), S(T(2, 3, 5), T(3, 4, 3), T(4), stride=2,
        padding=1, output_padding=1), S(T(2, 4, 5), T(4, 3, 3), groups=2, dilation=2),
        S(T(3, 5), T(3, 4, 3)), S(T(2, 3, 5), T(3, 4, 2), None, 3),
        errors=[E(T(2, 3, 5), T(4, 3, 3)), E(T(2, 3, 5), T(3, 4, 3), output_padding=2),
        E(T(2, 3, 5), T(3, 4, 3), T(3)), E(T(0, 3, 5), T(3, 4, 1), padding=3)]),
    conv("conv_transpose2d", S(T(2, 3, 4, 5), T(3, 4, 3, 3)), S(T(2, 3, 4, 4), T(3, 4, 3, 2), T(4),
        stride=2, padding=1, output_padding=1), S(T(2, 3, 4, 4), T(3, 2, 3, 3), stride=(2, 3),
        padding=(1, 0), output_padding=(0, 2)), S(T(2, 4, 3, 3), T(4, 3, 2, 3), T(6), groups=2,
        dilation=(2, 1)), S(T(3, 4, 4), T(3, 4, 3, 3)), S(T(2, 3, 4, 4), T(3, 2, 2, 2), stride=2),
        errors=[E(T(2, 3, 4, 4), T(4, 3, 3, 3)), E(T(2, 3, 4, 4), T(3, 4, 3, 3), output_padding=2),
        E(T(2, 3, 4, 4), T(3, 4, 3, 3), T(3))]),
    conv("conv_transpose3d", S(T(1, 2, 3, 3, 2), T(2, 3, 2, 2, 2)),
        S(T(1, 2, 3, 3, 2), T(2, 3, 2, 2, 2), T(3), stride=2, padding=1, output_padding=1),
        dtypes=WIDE),
    conv("unfold", S(T(2, 3, 5, 6), 3), S(T(2, 3, 5, 6), (2, 3), stride=2),
        S(T(2, 3, 5, 6), (2, 2), dilation=2, padding=1, stride=(1, 2)), S(T(3, 5, 6), 2),
        errors=[E(T(2, 3, 2, 2), 3), E(T(2, 3), 2)]),
    conv("fold", S(T(2, 12, 20), (5, 6), 2), S(T(2, 12, 6), (5, 6), (2, 2), stride=2),
        S(T(2, 8, 24), (4, 6), kernel_size=2, dilation=2, padding=1), S(T(12, 20), (5, 6), 2),
        S(T(2, 12, 12), (4, 5), kernel_size=(2, 2)), errors=[E(T(2, 12, 21), (5, 6), 2),
        E(T(2, 13, 20), (5, 6), 2)]),
]

MAX1 = [S(T(2, 3, 8), 2), S(T(2, 3, 8), 3, 2), S(T(2, 3, 8), 3, stride=2, padding=1),
    S(T(2, 3, 8), 3, 1, 0, 2), S(T(2, 3, 8), 3, 3, ceil_mode=True), S(T(3, 8), 2),
    S(T(2, 3, 7), (2,), (3,), (1,), ceil_mode=True)]
MAX2 = [S(T(2, 3, 6, 5), 2), S(T(2, 3, 6, 5), 3, 2), S(T(2, 3, 6, 5), (3, 2), stride=(2, 1),
    padding=(1, 0)), S(T(2, 3, 7, 7), 3, 1, 1, 2), S(T(2, 3, 6, 5), 2, ceil_mode=True),
    S(T(2, 3, 7, 6), 3, 2, 1, ceil_mode=True), S(T(3, 6, 5), 2), S(T(1, 1, 2, 2), 2),
    S(T(2, 3, 6, 5), 3, 1, 1), S(T(0, 3, 6, 5), 2)]
POOL = [
    Op("F.max_pool1d", *MAX1, of=DISTINCT, errors=[E(T(2, 3, 8), 0), E(T(2, 3, 2), 3),
        E(T(2, 3, 8), 2, padding=2), E(T(8), 2)]),
    Op("F.max_pool1d.indices", *[s._replace(kwargs=s.kwargs | {"return_indices": True})
        for s in MAX1], of=DISTINCT),
    Op("F.max_pool2d", *MAX2, Kink(V([[[1.0, 1.0], [1.0, 1.0]]]), 2),
        Forward(V([[[1.0, math.nan], [-math.inf, 1.0]]]), 2), of=DISTINCT,
        dtypes=(*FLOATS, "int64"), errors=[E(T(2, 3, 6, 5), 0), E(T(2, 3, 2, 2), 3),
        E(T(2, 3, 6, 5), 2, padding=2), E(T(6, 5), 2), E(T(2, 3, 6, 5), (2, 2, 2))]),
    Op("F.max_pool2d.indices", *[s._replace(kwargs=s.kwargs | {"return_indices": True})
        for s in MAX2], of=DISTINCT),
    Op("F.max_pool3d", S(T(1, 2, 4, 4, 4), 2), S(T(1, 2, 5, 4, 4), 2, 1, ceil_mode=True),
        S(T(1, 2, 4, 4, 4), 3, 2, 1, return_indices=True), of=DISTINCT, dtypes=WIDE),
    Op("F.max_unpool2d", S(T(1, 1, 2, 2), V([[[[0, 3], [9, 14]]]], dtype="int64"), 2),
        S(T(1, 1, 2, 2), V([[[[0, 3], [10, 14]]]], dtype="int64"), 2, output_size=(5, 4)),
        dtypes=WIDE),
    Op("F.avg_pool1d", S(T(2, 3, 8), 2), S(T(2, 3, 8), 3, 2, 1),
        S(T(2, 3, 8), 3, stride=2, padding=1, count_include_pad=False),
        S(T(2, 3, 8), 3, 2, ceil_mode=True), S(T(3, 8), 2), tol=HALVES, why=WHY,
        errors=[E(T(2, 3, 8), 2, padding=2), E(T(2, 3, 2), 3)]),
    Op("F.avg_pool2d", S(T(2, 3, 6, 5), 2), S(T(2, 3, 6, 5), 3, 2, 1),
        S(T(2, 3, 6, 5), (3, 2), (2, 1), (1, 0)), S(T(2, 3, 6, 5), 3, 2, 1,
        count_include_pad=False), S(T(2, 3, 6, 5), 2, ceil_mode=True),
        S(T(2, 3, 6, 5), 2, divisor_override=3), S(T(2, 3, 7, 6), 3, 2, 1, ceil_mode=True,
        count_include_pad=True), S(T(2, 3, 7, 6), 3, 2, 1, ceil_mode=True, count_include_pad=False),
        S(T(3, 6, 5), 2), tol=HALVES, why=WHY, errors=[E(T(2, 3, 6, 5), 2, padding=2),
        E(T(2, 3, 2, 2), 3), E(T(2, 3, 6, 5), 2, divisor_override=0)]),
    Op("F.avg_pool3d", S(T(1, 2, 4, 4, 4), 2), S(T(1, 2, 4, 4, 4), 3, 2, 1,
        count_include_pad=False), dtypes=WIDE),
    Op("F.lp_pool1d", S(T(2, 3, 8), 2, 3), dtypes=WIDE, of=POSITIVE),
    Op("F.lp_pool2d", S(T(2, 3, 6, 6), 2, 2), S(T(2, 3, 6, 6), 3, (2, 3), 2), dtypes=WIDE,
        of=POSITIVE),
    Op("F.adaptive_avg_pool1d", S(T(2, 3, 8), 4), S(T(2, 3, 7), 3), S(T(3, 7), 1), S(T(2, 3, 3), 5),
        tol=HALVES, why=WHY, errors=[E(T(7), 2), E(T(2, 3, 8), -1)]),
    Op("F.adaptive_avg_pool2d", S(T(2, 3, 6, 4), 2), S(T(2, 3, 7, 5), (3, 2)), S(T(2, 3, 6, 4), 1),
        S(T(2, 3, 6, 4), (None, 2)), S(T(3, 7, 5), (3, 1)), S(T(2, 3, 2, 3), (4, 5)),
        S(T(2, 3, 6, 4), (1, 1)), tol=HALVES, why=WHY, errors=[E(T(7, 2), 2),
        E(T(2, 3, 8, 8), (1, 2, 3))]),
    Op("F.adaptive_avg_pool3d", S(T(1, 2, 4, 5, 3), 2), Forward(T(1, 2, 4, 5, 3), (2, 0, 1)),
        dtypes=WIDE),
    *(Op(f"F.adaptive_max_pool1d{suffix}", S(T(2, 3, 8), 4, **kw), S(T(2, 3, 7), 3, **kw),
        S(T(3, 7), 1, **kw), of=DISTINCT, errors=[E(T(7), 2)]) for suffix,
        kw in (("", {}), (".indices", {"return_indices": True}))),
    *(Op(f"F.adaptive_max_pool2d{suffix}", S(T(2, 3, 6, 4), 2, **kw),
        S(T(2, 3, 7, 5), (3, 2), **kw), S(T(3, 7, 5), 1, **kw), S(T(2, 3, 6, 4), (None, 2), **kw),
        of=DISTINCT, errors=[E(T(7, 2), 2)]) for suffix, kw in (("", {}),
        (".indices", {"return_indices": True}))),
]

RESIZING = [
    Op("F.interpolate", S(T(2, 3, 4), 7), S(T(2, 3, 4), scale_factor=2), S(T(2, 3, 4, 5), (7, 3)),
        S(T(2, 3, 4, 5), scale_factor=2), S(T(2, 3, 4, 5), scale_factor=(1.5, 0.5)),
        S(T(2, 3, 4, 5), scale_factor=0.7, recompute_scale_factor=True),
        S(T(1, 2, 2, 3, 2), scale_factor=2), S(T(2, 3, 4, 5), size=8, mode="nearest"),
        S(T(2, 3, 4, 5), (7, 3), mode="nearest-exact"), tol=RESIZE, why=WHY, dtypes=FLOATS,
        errors=[E(T(2, 3, 4)), E(T(2, 3, 4), 3, 2.0), E(T(2, 3), 4), E(T(2, 3, 4), (3, 3)),
        E(T(2, 3, 4), 3, align_corners=True), E(T(2, 3, 4), 3, mode="bilinear"),
        E(T(2, 3, 4), 3, mode="other")]),
    Op("F.interpolate.bilinear", *[S(T(2, 3, 4, 5), mode="bilinear", align_corners=corners, **kw)
        for corners in (False, True) for kw in ({"size": (7, 3)}, {"scale_factor": 2},
        {"scale_factor": (1.5, 0.5)}, {"size": (1, 1)})], S(T(1, 1, 1, 1), 3, mode="bilinear"),
        S(T(2, 3, 4, 5), scale_factor=1.6, mode="bilinear", recompute_scale_factor=True),
        tol=RESIZE, why=WHY),
    Op("F.interpolate.linear", S(T(2, 3, 4), 7, mode="linear"),
        S(T(2, 3, 4), 7, mode="linear", align_corners=True), S(T(2, 3, 4), scale_factor=0.5,
        mode="linear"), dtypes=WIDE),
    Op("F.interpolate.trilinear", S(T(1, 2, 2, 3, 2), (3, 4, 5), mode="trilinear"),
        S(T(1, 2, 2, 3, 2), (3, 4, 5), mode="trilinear", align_corners=True), dtypes=WIDE),
    Op("F.interpolate.bytes", *[S(T(1, 3, 5, 6), (4, 9), mode=mode, **options)
        for mode in ("bilinear", "bicubic")
        for options in ({}, {"align_corners": True}, {"antialias": True})],
        of=whole(0, 256), dtypes=("uint8",), grad=False,
        layout=False),  # PyTorch mixes up strides where a width is 1
    Op("F.interpolate.bicubic", S(T(1, 2, 4, 5), (7, 3), mode="bicubic"),
        S(T(1, 2, 4, 5), scale_factor=2, mode="bicubic", align_corners=True), dtypes=WIDE),
    Op("F.interpolate.area", S(T(1, 2, 4, 6), (2, 3), mode="area"),
        S(T(1, 2, 4, 5), 3, mode="area"), dtypes=WIDE,
        accidents=("gradient",)),  # PyTorch refuses it
    Op("F.upsample", S(T(1, 2, 4, 5), scale_factor=2), S(T(1, 2, 4, 5), (7, 3), mode="bilinear"),
        dtypes=WIDE),
    Op("F.affine_grid", S(T(2, 2, 3), (2, 1, 3, 4)), S(T(2, 2, 3), (2, 1, 3, 4),
        align_corners=True), dtypes=WIDE),
    Op("F.grid_sample", *[S(T(1, 2, 4, 5), T(1, 3, 3, 2), mode=mode, padding_mode=pad,
        align_corners=corners) for mode in ("bilinear", "nearest")
        for pad in ("zeros", "border", "reflection") for corners in (False, True)], dtypes=WIDE,
        torch_orders=1, errors=[E(T(1, 2, 4, 5), T(1, 3, 3))]),
]

OPS = CONV + POOL + RESIZING
