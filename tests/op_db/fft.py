"""Rows of discrete Fourier transforms: values of every dtype, gradients by real and imaginary
parts, frequencies and shifts."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import ALL, COMPLEX, WIDE, E, Forward, Here, Name, Op, S, T

# PyTorch's transforms (MKL's) refuse a batch of no rows, ours are empty.
BATCHES = ("empty",)
REAL = (*WIDE, "int64", "bool")
ANY = (*REAL, *COMPLEX)

LINES = [S(T(3, 4)), S(T(5)), S(T(3, 5), 3), S(T(3, 4), 7), S(T(3, 4), n=1, dim=0),
    S(T(2, 3, 4), dim=1, norm="ortho"), S(T(4, 3), 5, 0, "forward"), S(T(2, 5), norm="backward"),
    Forward(T(2, 6), axis=0)]
GRIDS = [S(T(3, 4)), S(T(2, 3, 5)), S(T(5)), S(T(2, 3, 4), (4, 3)), S(T(2, 3, 4), dim=(2, 0)),
    S(T(3, 4), s=(2, 7), dim=(1, 0), norm="forward"), S(T(3, 5), (-1, 4), norm="ortho"),
    S(T(2, 3, 4), s=5, dim=1), S(T(2, 3, 4), dim=(-3, -2), norm="backward")]
PLANES = [S(T(3, 4)), S(T(2, 3, 5)), S(T(2, 3, 4), (4, 3)), S(T(2, 3, 4), None, (0, 1), "ortho"),
    S(T(3, 4, 2), s=(2, 7), dim=(1, -3), norm="forward"), S(T(2, 4), dim=0)]

WRONG_LINES = [E(T()), E(T(3), 0), E(T(3), -1), E(T(3), 2.0), E(T(3), True), E(T(3), dim=1),
    E(T(3), dim=(0,)), E(T(3), norm="no"), E(T(3), norm=1), E(T(3, dtype="float16")),
    E(T(3, dtype="bfloat16")), E(T(0)), E(T(2, 0)), E(3.0), E([1.0, 2.0])]
WRONG_GRIDS = [E(T(3, 4), (2, 2), (0,)), E(T(3), (2, 2)), E(T(3, 4), dim=(0, 0)),
    E(T(3, 4), dim=(0, -2)), E(T(3, 4), dim=(2,)), E(T(), dim=(0,)), E(T(3, 4), (0, 2)),
    E(T(3, 4), (2, -2)), E(T(3, 4), norm="no"), E(T(3, 4, dtype="float16")), E(T(0, 3)),
    E(T(3, 4), (2.0, 2)), E(T(3, 4), dim="a"), E(3.0)]
WRONG_PLANES = [E(T(3)), E(T(3, 4), (2,)), E(T(3, 4), dim=None), E(T(3, 4), dim=(1, 1))]
COMPLEX_INPUT = [E(T(3, 4, dtype="complex64"))]
NO_AXES = [E(T(3, 4), dim=()), E(T(3, 4), s=()), E(T())]
ONE_COLUMN = [E(T(3, 1))]  # n would be 0


def transform(name, samples, errors, dtypes):
    """The values of one function, in every dtype it takes."""
    call = lambda torch, *args, **kwargs: getattr(torch.fft, name)(*args, **kwargs)
    right = not name.startswith("ihfft")  # PyTorch's leaves `out` in wrong shapes or refuses it
    return Op(f"fft.{name}", *samples, call=call, dtypes=dtypes, grad=False, out=right,
        errors=errors, accidents=BATCHES)


def parts(name, samples):
    """Its gradients, by the real and imaginary parts of inputs and results."""
    def call(torch, x, *args, **kwargs):
        result = getattr(torch.fft, name)(x, *args, **kwargs)
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result

    def complex_call(torch, x, y, *args, **kwargs):
        return call(torch, torch.complex(x, y), *args, **kwargs)

    if name in FROM_REAL:
        return Op(f"fft.{name}.real", *samples, call=call, dtypes=WIDE, accidents=BATCHES)
    pairs = [sample._replace(args=(sample.args[0], *sample.args)) for sample in samples]
    return Op(f"fft.{name}.parts", *pairs, call=complex_call, dtypes=WIDE, accidents=BATCHES)


FROM_REAL = {"rfft", "ihfft", "rfft2", "ihfft2", "rfftn", "ihfftn"}
TO_REAL = {"irfft", "hfft", "irfft2", "hfft2", "irfftn", "hfftn"}
TABLE = [
    *((name, LINES, WRONG_LINES) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *((name, GRIDS, WRONG_GRIDS) for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn",
        "ihfftn")),
    *((name, PLANES, WRONG_PLANES) for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2",
        "ihfft2")),
]


def errors_of(name, errors):
    errors = [*errors, *(COMPLEX_INPUT if name in FROM_REAL else [])]
    if name in FROM_REAL | TO_REAL and name.endswith("n"):
        errors += NO_AXES
    return [*errors, *(ONE_COLUMN if name in TO_REAL else [])]


TRANSFORMS = [
    *(transform(name, samples, errors_of(name, errors), REAL if name in FROM_REAL else ANY)
        for name, samples, errors in TABLE),
    *(parts(name, samples) for name, samples, _ in TABLE),
    *(Op(f"fft.{name}.of_real", S(T(3, 4)), S(T(3, 5), 4), S(T(3, 4), 6, 0),
        call=lambda torch, *args, name=name, **kw: torch.view_as_real(
        getattr(torch.fft, name)(*args, **kw) * (1 - 2j)), dtypes=WIDE, accidents=BATCHES)
        for name in ("fft", "ifft")),
    *(Op(f"fft.{name}.of_real", S(T(3, 4)), S(T(3, 3), 4), S(T(3, 3), 5, 0),
        call=lambda torch, *args, name=name, **kw: getattr(torch.fft, name)(*args, **kw),
        dtypes=WIDE, accidents=BATCHES) for name in ("irfft", "hfft")),
    # No axes: nothing is transformed, and the result is complex all the same.
    *(Op(f"fft.{name}.none", Forward(T(3, 4), dim=()), Forward(T(), ()), Forward(T(3), s=()),
        call=lambda torch, *args, name=name, **kw: getattr(torch.fft, name)(*args, **kw),
        dtypes=ANY, grad=False) for name in ("fftn", "ifftn")),
    Op("fft.power", S(T(3, 5)), S(T(3, 4)), dtypes=WIDE, order3=True, accidents=BATCHES,
        call=lambda torch, x: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x), x.shape[-1])),
]


def in_fft(name, *samples, **options):
    call = lambda torch, *args, **kwargs: getattr(torch.fft, name)(*args, **kwargs)
    return Op(f"fft.{name}", *samples, call=call, **options)


SHIFTS = [
    in_fft(name, S(T(5)), S(T(4)), S(T(3, 4)), S(T(2, 3, 5), dim=(0, 2)), S(T(3, 4), 1),
        S(T(3, 4), dim=-2), S(T(3, 4), dim=(1, 1)), Forward(T(0, 3)), dtypes=(*ALL, *COMPLEX),
        errors=[E(T()), E(T(), dim=0), E(T(3), dim=1), E(T(3), dim=()), E([1.0])])
    for name in ("fftshift", "ifftshift")
]


def here(*samples):
    return [sample._replace(kwargs=sample.kwargs | {"device": Here()}) for sample in samples]


SAMPLES = [Forward(5), Forward(4, 0.5), Forward(1), Forward(6, d=2, dtype=Name("float64")),
    Forward(5, -0.1, dtype=Name("float16")), Forward(5, dtype=Name("bfloat16")), Forward(4, 0.0),
    Forward(7, d=0.3, requires_grad=True)]
FREQUENCIES = [
    in_fft("fftfreq", *here(*SAMPLES, Forward(0)), dtypes=("float32",), grad=False, out=True,
        errors=[E(-1), E(4.0), E(True), E(4, "a"), E(4, 1j), E(4, dtype=Name("int64"))]),
    in_fft("rfftfreq", *here(*SAMPLES, Forward(0), Forward(-1), Forward(-2)), dtypes=("float32",),
        grad=False, out=True, errors=[E(-5), E(4.0), E(4, "a"), E(4, dtype=Name("bool"))]),
]

OPS = TRANSFORMS + SHIFTS + FREQUENCIES
