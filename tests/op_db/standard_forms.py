"""Rows of the array API standard's forms of functions, where PyTorch's agree with them."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import (
    AWAY_FROM_HALVES,
    COMPLEX,
    FLOATS,
    NONZERO,
    NORMAL,
    WIDE,
    OpInfo,
    away_from,
    sample,
    subgradient_sample,
    tensor,
)


def standard(torch, name, torchs):
    """The function of our namespace `array_api`; in PyTorch the one that `torchs` names."""
    return getattr(torch.array_api, name) if hasattr(torch, "array_api") else torchs


def rounded(torch):
    return lambda x: torch.complex(x.real.round(), x.imag.round()) if x.is_complex() else x.round()


OPS = [
    OpInfo("array_api.expm1", sample(tensor(3, 4)), sample(tensor()), domain=NORMAL,
        dtypes=FLOATS + COMPLEX + ("int64",), call=lambda torch, x: standard(torch, "expm1",
        torch.expm1)(x)),
    OpInfo("array_api.sign", sample(tensor(3, 4)), sample(tensor()), domain=NONZERO,
       dtypes=FLOATS + COMPLEX + ("int64", "uint8"),
       call=lambda torch, x: standard(torch, "sign", torch.sgn)(x)),
    OpInfo("array_api.round", sample(tensor(3, 4)), sample(tensor()), domain=AWAY_FROM_HALVES,
       dtypes=FLOATS + COMPLEX + ("int64",),
       call=lambda torch, x: standard(torch, "round", rounded(torch))(x)),
    OpInfo("array_api.floor_divide", subgradient_sample(tensor(3, 4), tensor(4)),
        subgradient_sample(tensor(3, 1), tensor(1, 4)), subgradient_sample(tensor(2, 3), tensor()),
        domain=away_from(0.0, gap=0.6), dtypes=WIDE + ("int64",),
        call=lambda torch, x, y: standard(torch, "floor_divide",
        lambda x, y: torch.div(x, y, rounding_mode="floor"))(x, y)),
]
