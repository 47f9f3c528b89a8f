"""Rows of the array API standard's forms of functions, where PyTorch's agree with them."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import (
    COMPLEX,
    FLOATS,
    NONZERO,
    NORMAL,
    STEPS,
    WIDE,
    Kink,
    Op,
    S,
    T,
    away,
)


def standard(torch, name, torchs):
    """The function of our namespace `array_api`; in PyTorch the one that `torchs` names."""
    return getattr(torch.array_api, name) if hasattr(torch, "array_api") else torchs


def rounded(torch):
    return lambda x: torch.complex(x.real.round(), x.imag.round()) if x.is_complex() else x.round()


OPS = [
    Op("array_api.expm1", S(T(3, 4)), S(T()), of=NORMAL, dtypes=FLOATS + COMPLEX + ("int64",),
       call=lambda torch, x: standard(torch, "expm1", torch.expm1)(x)),
    Op("array_api.sign", S(T(3, 4)), S(T()), of=NONZERO,
       dtypes=FLOATS + COMPLEX + ("int64", "uint8"),
       call=lambda torch, x: standard(torch, "sign", torch.sgn)(x)),
    Op("array_api.round", S(T(3, 4)), S(T()), of=STEPS,
       dtypes=FLOATS + COMPLEX + ("int64",),
       call=lambda torch, x: standard(torch, "round", rounded(torch))(x)),
    Op("array_api.floor_divide", Kink(T(3, 4), T(4)), Kink(T(3, 1), T(1, 4)), Kink(T(2, 3), T()),
       of=away(0.0, gap=0.6), dtypes=WIDE + ("int64",),
       call=lambda torch, x, y: standard(
           torch, "floor_divide", lambda x, y: torch.div(x, y, rounding_mode="floor"))(x, y)),
]
