"""Rows of discrete Fourier transforms: values of every dtype, gradients by real and imaginary
parts, frequencies and shifts."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import ALL, COMPLEX, WIDE, C, E, Forward, Here, Name, Op, S, T, V

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
        errors=errors, accidents=(*BATCHES, *(["out"] if name == "ifft" else [])))


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
        accidents=("layouts",),  # PyTorch's is wrong in an `out` with gaps
        errors=[E(-1), E(4.0), E(True), E(4, "a"), E(4, 1j), E(4, dtype=Name("int64"))]),
    in_fft("rfftfreq", *here(*SAMPLES, Forward(0), Forward(-1), Forward(-2)), dtypes=("float32",),
        grad=False, out=True, errors=[E(-5), E(4.0), E(4, "a"), E(4, dtype=Name("bool"))]),
]

ISTFT_ERRORS = [
    ((4, 0), {}), ((4, -1), {}), ((4, 5), {}), ((4, 1, 5), {}), ((4, 1, 0), {}), ((0,), {}),
    ((4,), {"window": C(3)}), ((4,), {"window": C(1, 4)}), ((4,), {"window": V([0.0] * 4)}),
    ((4,), {"onesided": False}), ((4,), {"return_complex": True}), ((4,), {"length": 0}),
    ((4,), {"length": 2.0}), ((4.0,), {}), ((True,), {}), ((4, 2.0), {}),
    ((4,), {"window": C(4, dtype="complex64")}), ((4,), {"window": V([0.0, 1.0, 1.0, 1.0]),
    "center": False}), ((4,), {"window": [1.0]}),
]
# Weights for windows of 4 and 5, which the inverse can divide by.
HANN = V([0.1, 0.8, 1.1, 0.4])
FIVE = V([0.2, 0.9, 1.2, 0.7, 0.3])


def complexes(function):
    """A call by the real and imaginary parts of the first argument, and of the result."""
    def call(torch, x, y, *args, **kwargs):
        result = getattr(torch, function)(torch.complex(x, y), *args, **kwargs)
        return torch.view_as_real(result) if result.is_complex() else result

    return call


def reals(torch, x, *args, **kwargs):
    return torch.view_as_real(torch.stft(x, *args, return_complex=True, **kwargs))


SHORT_TIME = [
    Op("stft.values", S(T(10), 4, return_complex=True), S(T(2, 9), 5, 2, 4, return_complex=True),
        S(T(2, 9), 4, 1, window=T(4), return_complex=True, onesided=False),
        S(T(12), 6, 2, return_complex=False), S(T(10), 1, 1, return_complex=True),
        S(T(12), n_fft=6, hop_length=2, win_length=3, window=T(3), center=True,
          pad_mode="constant", normalized=True, return_complex=True),
        call=lambda torch, *args, **kw: torch.stft(*args, **kw), dtypes=WIDE, grad=False,
        layout=False, errors=[E(T(10), 4), E(T(10), 4, window=C(3), return_complex=True),
        E(T(10), 4, window=C(1, 4), return_complex=True), E(T(10), 4, 0, return_complex=True),
        E(T(10), 3, return_complex=True), E(T(10), 0, 1, return_complex=True),
        E(T(10), 4, win_length=5, return_complex=True), E(T(10), 20, return_complex=True),
        E(T(10), 4, win_length=0, return_complex=True), E(T(), 4, return_complex=True),
        E(T(2, 2, 10), 4, return_complex=True), E(T(10), 11, center=False, return_complex=True),
        E(T(10), 4, pad_mode="other", return_complex=True), E(T(10), 4.0, return_complex=True),
        E(T(10), True, 1, return_complex=True), E(T(10), 4, 2.0, return_complex=True),
        E(T(10), 4, window=[1.0], return_complex=True), E(T(10), 4, 1, align_to_window=True,
        return_complex=True), E(T(10, dtype="int64"), 4, return_complex=True),
        E(T(10, dtype="complex64"), 4, onesided=True), E(T(10, dtype="float16"), 4,
        return_complex=True), E(T(13), 7, 3, 4, center=False, align_to_window=True,
        return_complex=True), E(T(4), 8, 2, 4, center=False, align_to_window=True,
        return_complex=True)]),
    Op("stft.real", S(T(10), 4), S(T(2, 9), 5, 2), S(T(2, 9), 4, 3, window=T(4)),
        S(T(12), 6, 2, 3, T(3), normalized=True), S(T(12), 6, 2, 5, T(5), False),
        S(T(12), 6, 2, 4, T(4), onesided=False, pad_mode="circular"),
        S(T(12), 6, 5, 4, T(4), pad_mode="replicate"),
        S(T(12), 6, 2, 4, T(4), center=False, align_to_window=True),
        S(T(12), 6, 2, 4, center=False, align_to_window=False), call=reals, dtypes=WIDE,
        accidents=BATCHES),
    Op("stft.complex", S(T(10), T(10), 4), S(T(2, 9), T(2, 9), 5, 2, window=T(5)),
        S(T(2, 9), T(2, 9), 4, 1, 3, T(3), normalized=True), call=complexes("stft"), dtypes=WIDE,
        accidents=BATCHES),
    Op("stft.weights", S(T(10), T(4), T(4)), call=lambda torch, x, v, w: torch.view_as_real(
        torch.stft(x, 4, window=torch.complex(v, w))), dtypes=WIDE, accidents=BATCHES),
    Op("stft.dtypes", Forward(T(10, dtype="float32"), C(4, dtype="float64")),
        Forward(T(10, dtype="float64"), C(4, dtype="float32")), Forward(T(10, dtype="float32"),
        C(4, dtype="int64")), Forward(T(10, dtype="float32"), C(4, dtype="float16")),
        call=lambda torch, x, w: torch.stft(x, 4, window=w, return_complex=True),
        dtypes=("float32",), grad=False, layout=False),
    Op("istft.values", S(T(3, 11), 4), S(T(2, 3, 6), 4, 2), S(T(3, 6), 5, 2, window=FIVE),
        S(T(4, 6), 4, return_complex=True), S(T(4, 6), 4, 1, onesided=False),
        S(T(3, 6), 4, 2, length=20), S(T(3, 6), 4, 2, center=False, length=-1),
        call=lambda torch, *args, **kw: torch.istft(*args, **kw), dtypes=COMPLEX, grad=False,
        layout=False, errors=[E(T(3, 11), 4), E(T(3, 11, dtype="complex64"), 6),
        *(E(T(3, 11, dtype="complex64"), *args, **kw) for args, kw in ISTFT_ERRORS),
        E(T(2, 2, 3, 6, dtype="complex64"), 4), E(T(6, dtype="complex64"), 4),
        E(T(3, 0, dtype="complex64"), 4), E(T(0, 3, 4, dtype="complex64"), 4),
        E(T(3, 1, dtype="complex64"), 4), E([1.0], 4)]),
    Op("istft.parts", S(T(3, 8), T(3, 8), 4), S(T(2, 3, 6), T(2, 3, 6), 4, 2, window=HANN),
        S(T(3, 6), T(3, 6), 5, 2, window=FIVE, normalized=True), S(T(4, 7), T(4, 7), 6, 2, 5, FIVE),
        S(T(4, 7), T(4, 7), 6, 3, 4, HANN, length=15), S(T(3, 6), T(3, 6), 4, 2, window=HANN,
        center=False, length=9), S(T(3, 6), T(3, 6), 4, 2, length=25),
        S(T(4, 6), T(4, 6), 4, 2, window=HANN, return_complex=True),
        S(T(4, 6), T(4, 6), 4, 2, window=HANN, onesided=False), call=complexes("istft"),
        dtypes=WIDE, layout=False),
    Op("istft.weights", S(T(4, 6), T(4, 6), HANN, V([0.9, -0.4, 0.2, 0.5])), dtypes=WIDE,
        call=lambda torch, x, y, v, w: torch.view_as_real(torch.istft(torch.complex(x, y), 4, 2,
        window=torch.complex(v, w), return_complex=True)), layout=False),
    Op("istft.of_stft", S(T(2, 20)), call=lambda torch, x: torch.istft(torch.stft(x, 8, 3,
        window=torch.hann_window(8, dtype=x.dtype, device=x.device), return_complex=True), 8, 3,
        window=torch.hann_window(8, dtype=x.dtype, device=x.device), length=20), dtypes=WIDE,
        accidents=BATCHES),
]

OPS = TRANSFORMS + SHIFTS + FREQUENCIES + SHORT_TIME
