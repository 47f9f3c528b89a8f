"""Rows of discrete Fourier transforms: values of every dtype, gradients by real and imaginary
parts, frequencies and shifts."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import (
    ALL,
    COMPLEX,
    WIDE,
    Attribute,
    DeviceUnderTest,
    OpInfo,
    constant,
    error,
    forward_sample,
    literal,
    sample,
    tensor,
)

# PyTorch's transforms (MKL's) refuse a batch of no rows, ours are empty.
BATCHES = ("empty",)
REAL = (*WIDE, "int64", "bool")
ANY = (*REAL, *COMPLEX)

LINES = [sample(tensor(3, 4)), sample(tensor(5)), sample(tensor(3, 5), 3), sample(tensor(3, 4), 7),
    sample(tensor(3, 4), n=1, dim=0), sample(tensor(2, 3, 4), dim=1, norm="ortho"),
    sample(tensor(4, 3), 5, 0, "forward"), sample(tensor(2, 5), norm="backward"),
    forward_sample(tensor(2, 6), axis=0)]
GRIDS = [sample(tensor(3, 4)), sample(tensor(2, 3, 5)), sample(tensor(5)),
    sample(tensor(2, 3, 4), (4, 3)), sample(tensor(2, 3, 4), dim=(2, 0)),
    sample(tensor(3, 4), s=(2, 7), dim=(1, 0), norm="forward"),
    sample(tensor(3, 5), (-1, 4), norm="ortho"), sample(tensor(2, 3, 4), s=5, dim=1),
    sample(tensor(2, 3, 4), dim=(-3, -2), norm="backward")]
PLANES = [sample(tensor(3, 4)), sample(tensor(2, 3, 5)), sample(tensor(2, 3, 4), (4, 3)),
    sample(tensor(2, 3, 4), None, (0, 1), "ortho"),
    sample(tensor(3, 4, 2), s=(2, 7), dim=(1, -3), norm="forward"), sample(tensor(2, 4), dim=0)]

WRONG_LINES = [error(tensor()), error(tensor(3), 0), error(tensor(3), -1), error(tensor(3), 2.0),
    error(tensor(3), True), error(tensor(3), dim=1), error(tensor(3), dim=(0,)),
    error(tensor(3), norm="no"), error(tensor(3), norm=1), error(tensor(3, dtype="float16")),
    error(tensor(3, dtype="bfloat16")), error(tensor(0)), error(tensor(2, 0)), error(3.0),
    error([1.0, 2.0])]
WRONG_GRIDS = [error(tensor(3, 4), (2, 2), (0,)), error(tensor(3), (2, 2)),
    error(tensor(3, 4), dim=(0, 0)), error(tensor(3, 4), dim=(0, -2)),
    error(tensor(3, 4), dim=(2,)), error(tensor(), dim=(0,)), error(tensor(3, 4), (0, 2)),
    error(tensor(3, 4), (2, -2)), error(tensor(3, 4), norm="no"),
    error(tensor(3, 4, dtype="float16")), error(tensor(0, 3)), error(tensor(3, 4), (2.0, 2)),
    error(tensor(3, 4), dim="a"), error(3.0)]
WRONG_PLANES = [error(tensor(3)), error(tensor(3, 4), (2,)), error(tensor(3, 4), dim=None),
    error(tensor(3, 4), dim=(1, 1))]
COMPLEX_INPUT = [error(tensor(3, 4, dtype="complex64"))]
NO_AXES = [error(tensor(3, 4), dim=()), error(tensor(3, 4), s=()), error(tensor())]
ONE_COLUMN = [error(tensor(3, 1))]  # n would be 0


def transform(name, samples, errors, dtypes):
    """The values of one function, in every dtype it takes."""
    call = lambda torch, *args, **kwargs: getattr(torch.fft, name)(*args, **kwargs)
    right = not name.startswith("ihfft")  # PyTorch's leaves `out` in wrong shapes or refuses it
    return OpInfo(f"fft.{name}", *samples, call=call, dtypes=dtypes, supports_autograd=False,
        supports_out=right, errors=errors,
        skip_undefined_behavior=(*BATCHES, *(["out"] if name == "ifft" else [])))


def parts(name, samples):
    """Its gradients, by the real and imaginary parts of inputs and results."""
    def call(torch, x, *args, **kwargs):
        result = getattr(torch.fft, name)(x, *args, **kwargs)
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result

    def complex_call(torch, x, y, *args, **kwargs):
        return call(torch, torch.complex(x, y), *args, **kwargs)

    if name in FROM_REAL:
        return OpInfo(f"fft.{name}.real", *samples, call=call, dtypes=WIDE,
            skip_undefined_behavior=BATCHES)
    pairs = [sample._replace(args=(sample.args[0], *sample.args)) for sample in samples]
    return OpInfo(f"fft.{name}.parts", *pairs, call=complex_call, dtypes=WIDE,
        skip_undefined_behavior=BATCHES)


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
    *(OpInfo(f"fft.{name}.of_real", sample(tensor(3, 4)), sample(tensor(3, 5), 4),
        sample(tensor(3, 4), 6, 0),
        call=lambda torch, *args, name=name, **kw: torch.view_as_real(getattr(torch.fft,
        name)(*args, **kw) * (1 - 2j)), dtypes=WIDE,
        skip_undefined_behavior=BATCHES) for name in ("fft", "ifft")),
    *(OpInfo(f"fft.{name}.of_real", sample(tensor(3, 4)), sample(tensor(3, 3), 4),
        sample(tensor(3, 3), 5, 0),
        call=lambda torch, *args, name=name, **kw: getattr(torch.fft, name)(*args, **kw),
        dtypes=WIDE, skip_undefined_behavior=BATCHES) for name in ("irfft", "hfft")),
    # No axes: nothing is transformed, and the result is complex all the same.
    *(OpInfo(f"fft.{name}.none", forward_sample(tensor(3, 4), dim=()), forward_sample(tensor(), ()),
        forward_sample(tensor(3), s=()),
        call=lambda torch, *args, name=name, **kw: getattr(torch.fft, name)(*args, **kw),
        dtypes=ANY, supports_autograd=False) for name in ("fftn", "ifftn")),
    OpInfo("fft.power", sample(tensor(3, 5)), sample(tensor(3, 4)), dtypes=WIDE,
        check_third_order=True, skip_undefined_behavior=BATCHES,
        call=lambda torch, x: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x), x.shape[-1])),
]


def fft_function(name, *samples, **options):
    call = lambda torch, *args, **kwargs: getattr(torch.fft, name)(*args, **kwargs)
    return OpInfo(f"fft.{name}", *samples, call=call, **options)


SHIFTS = [
    fft_function(name, sample(tensor(5)), sample(tensor(4)), sample(tensor(3, 4)),
        sample(tensor(2, 3, 5), dim=(0, 2)), sample(tensor(3, 4), 1), sample(tensor(3, 4), dim=-2),
        sample(tensor(3, 4), dim=(1, 1)), forward_sample(tensor(0, 3)), dtypes=(*ALL, *COMPLEX),
        errors=[error(tensor()), error(tensor(), dim=0), error(tensor(3), dim=1),
        error(tensor(3), dim=()), error([1.0])])
    for name in ("fftshift", "ifftshift")
]


def on_device(*samples):
    return [sample._replace(kwargs=sample.kwargs | {"device": DeviceUnderTest()}) for sample
        in samples]


SAMPLES = [forward_sample(5), forward_sample(4, 0.5), forward_sample(1),
    forward_sample(6, d=2, dtype=Attribute("float64")),
    forward_sample(5, -0.1, dtype=Attribute("float16")),
    forward_sample(5, dtype=Attribute("bfloat16")), forward_sample(4, 0.0),
    forward_sample(7, d=0.3, requires_grad=True)]
FREQUENCIES = [
    fft_function("fftfreq", *on_device(*SAMPLES, forward_sample(0)), dtypes=("float32",),
        supports_autograd=False, supports_out=True, skip_undefined_behavior=("layouts",),
        # PyTorch's is wrong in an `out` with gaps
        errors=[error(-1), error(4.0), error(True), error(4, "a"), error(4, 1j),
        error(4, dtype=Attribute("int64"))]),
    fft_function("rfftfreq", *on_device(*SAMPLES, forward_sample(0), forward_sample(-1),
        forward_sample(-2)), dtypes=("float32",), supports_autograd=False, supports_out=True,
        errors=[error(-5), error(4.0), error(4, "a"), error(4, dtype=Attribute("bool"))]),
]

ISTFT_ERRORS = [
    ((4, 0), {}), ((4, -1), {}), ((4, 5), {}), ((4, 1, 5), {}), ((4, 1, 0), {}), ((0,), {}),
    ((4,), {"window": constant(3)}), ((4,), {"window": constant(1, 4)}),
        ((4,), {"window": literal([0.0] * 4)}),
    ((4,), {"onesided": False}), ((4,), {"return_complex": True}), ((4,), {"length": 0}),
    ((4,), {"length": 2.0}), ((4.0,), {}), ((True,), {}), ((4, 2.0), {}),
    ((4,), {"window": constant(4, dtype="complex64")}),
        ((4,), {"window": literal([0.0, 1.0, 1.0, 1.0]), "center": False}),
        ((4,), {"window": [1.0]}),
]
# Weights for windows of 4 and 5, which the inverse can divide by.
HANN = literal([0.1, 0.8, 1.1, 0.4])
FIVE = literal([0.2, 0.9, 1.2, 0.7, 0.3])


def complexes(function):
    """A call by the real and imaginary parts of the first argument, and of the result."""
    def call(torch, x, y, *args, **kwargs):
        result = getattr(torch, function)(torch.complex(x, y), *args, **kwargs)
        return torch.view_as_real(result) if result.is_complex() else result

    return call


def reals(torch, x, *args, **kwargs):
    return torch.view_as_real(torch.stft(x, *args, return_complex=True, **kwargs))


SHORT_TIME = [
    OpInfo("stft.values", sample(tensor(10), 4, return_complex=True),
        sample(tensor(2, 9), 5, 2, 4, return_complex=True),
        sample(tensor(2, 9), 4, 1, window=tensor(4), return_complex=True, onesided=False),
        sample(tensor(12), 6, 2, return_complex=False),
        sample(tensor(10), 1, 1, return_complex=True),
        sample(tensor(12), n_fft=6, hop_length=2, win_length=3, window=tensor(3), center=True,
        pad_mode="constant", normalized=True, return_complex=True),
        call=lambda torch, *args, **kw: torch.stft(*args, **kw), dtypes=WIDE,
        supports_autograd=False, check_layouts=False, errors=[error(tensor(10), 4),
        error(tensor(10), 4, window=constant(3), return_complex=True),
        error(tensor(10), 4, window=constant(1, 4), return_complex=True),
        error(tensor(10), 4, 0, return_complex=True), error(tensor(10), 3, return_complex=True),
        error(tensor(10), 0, 1, return_complex=True),
        error(tensor(10), 4, win_length=5, return_complex=True),
        error(tensor(10), 20, return_complex=True),
        error(tensor(10), 4, win_length=0, return_complex=True),
        error(tensor(), 4, return_complex=True), error(tensor(2, 2, 10), 4, return_complex=True),
        error(tensor(10), 11, center=False, return_complex=True),
        error(tensor(10), 4, pad_mode="other", return_complex=True),
        error(tensor(10), 4.0, return_complex=True),
        error(tensor(10), True, 1, return_complex=True),
        error(tensor(10), 4, 2.0, return_complex=True),
        error(tensor(10), 4, window=[1.0], return_complex=True),
        error(tensor(10), 4, 1, align_to_window=True, return_complex=True),
        error(tensor(10, dtype="int64"), 4, return_complex=True),
        error(tensor(10, dtype="complex64"), 4, onesided=True),
        error(tensor(10, dtype="float16"), 4, return_complex=True),
        error(tensor(13), 7, 3, 4, center=False, align_to_window=True, return_complex=True),
        error(tensor(4), 8, 2, 4, center=False, align_to_window=True, return_complex=True)]),
    OpInfo("stft.real", sample(tensor(10), 4), sample(tensor(2, 9), 5, 2),
        sample(tensor(2, 9), 4, 3, window=tensor(4)),
        sample(tensor(12), 6, 2, 3, tensor(3), normalized=True),
        sample(tensor(12), 6, 2, 5, tensor(5), False),
        sample(tensor(12), 6, 2, 4, tensor(4), onesided=False, pad_mode="circular"),
        sample(tensor(12), 6, 5, 4, tensor(4), pad_mode="replicate"),
        sample(tensor(12), 6, 2, 4, tensor(4), center=False, align_to_window=True),
        sample(tensor(12), 6, 2, 4, center=False, align_to_window=False), call=reals, dtypes=WIDE,
        skip_undefined_behavior=BATCHES),
    OpInfo("stft.complex", sample(tensor(10), tensor(10), 4),
        sample(tensor(2, 9), tensor(2, 9), 5, 2, window=tensor(5)),
        sample(tensor(2, 9), tensor(2, 9), 4, 1, 3, tensor(3), normalized=True),
        call=complexes("stft"), dtypes=WIDE, skip_undefined_behavior=BATCHES),
    OpInfo("stft.weights", sample(tensor(10), tensor(4), tensor(4)),
        call=lambda torch, x, v, w: torch.view_as_real(torch.stft(x, 4,
        window=torch.complex(v, w))), dtypes=WIDE, skip_undefined_behavior=BATCHES),
    OpInfo("stft.dtypes", forward_sample(tensor(10, dtype="float32"), constant(4, dtype="float64")),
        forward_sample(tensor(10, dtype="float64"), constant(4, dtype="float32")),
        forward_sample(tensor(10, dtype="float32"), constant(4, dtype="int64")),
        forward_sample(tensor(10, dtype="float32"), constant(4, dtype="float16")),
        call=lambda torch, x, w: torch.stft(x, 4, window=w, return_complex=True),
        dtypes=("float32",), supports_autograd=False, check_layouts=False),
    OpInfo("istft.values", sample(tensor(3, 11), 4), sample(tensor(2, 3, 6), 4, 2),
        sample(tensor(3, 6), 5, 2, window=FIVE), sample(tensor(4, 6), 4, return_complex=True),
        sample(tensor(4, 6), 4, 1, onesided=False), sample(tensor(3, 6), 4, 2, length=20),
        sample(tensor(3, 6), 4, 2, center=False, length=-1),
        call=lambda torch, *args, **kw: torch.istft(*args, **kw), dtypes=COMPLEX,
        supports_autograd=False, check_layouts=False, errors=[error(tensor(3, 11), 4),
        error(tensor(3, 11, dtype="complex64"), 6),
        *(error(tensor(3, 11, dtype="complex64"), *args, **kw) for args, kw in ISTFT_ERRORS),
        error(tensor(2, 2, 3, 6, dtype="complex64"), 4), error(tensor(6, dtype="complex64"), 4),
        error(tensor(3, 0, dtype="complex64"), 4), error(tensor(0, 3, 4, dtype="complex64"), 4),
        error(tensor(3, 1, dtype="complex64"), 4), error([1.0], 4)]),
    OpInfo("istft.parts", sample(tensor(3, 8), tensor(3, 8), 4),
        sample(tensor(2, 3, 6), tensor(2, 3, 6), 4, 2, window=HANN),
        sample(tensor(3, 6), tensor(3, 6), 5, 2, window=FIVE, normalized=True),
        sample(tensor(4, 7), tensor(4, 7), 6, 2, 5, FIVE),
        sample(tensor(4, 7), tensor(4, 7), 6, 3, 4, HANN, length=15),
        sample(tensor(3, 6), tensor(3, 6), 4, 2, window=HANN, center=False, length=9),
        sample(tensor(3, 6), tensor(3, 6), 4, 2, length=25),
        sample(tensor(4, 6), tensor(4, 6), 4, 2, window=HANN, return_complex=True),
        sample(tensor(4, 6), tensor(4, 6), 4, 2, window=HANN, onesided=False),
        call=complexes("istft"), dtypes=WIDE, check_layouts=False),
    OpInfo("istft.weights",
        sample(tensor(4, 6), tensor(4, 6), HANN, literal([0.9, -0.4, 0.2, 0.5])), dtypes=WIDE,
        call=lambda torch, x, y, v, w: torch.view_as_real(torch.istft(torch.complex(x, y), 4, 2,
        window=torch.complex(v, w), return_complex=True)), check_layouts=False),
    OpInfo("istft.of_stft", sample(tensor(2, 20)),
        call=lambda torch, x: torch.istft(torch.stft(x, 8, 3,
        window=torch.hann_window(8, dtype=x.dtype, device=x.device), return_complex=True), 8, 3,
        window=torch.hann_window(8, dtype=x.dtype, device=x.device), length=20), dtypes=WIDE,
        skip_undefined_behavior=BATCHES),
]

OPS = TRANSFORMS + SHIFTS + FREQUENCIES + SHORT_TIME
