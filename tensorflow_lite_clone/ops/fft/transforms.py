"""Discrete Fourier transforms, as ``torch.fft``.

The transform of x (n elements) is ``y[k] = sum_j x[j] exp(-2 pi i j k / n)``, its inverse has
the other sign and the factor 1 / n (Cooley and Tukey, "An algorithm for the machine calculation
of complex Fourier series", 1965, (1), up to the sign). `norm` says where the factor is:
``backward`` (default) at the inverse, ``forward`` at the forward transform, ``ortho`` as
``1 / sqrt(n)`` at both.

Three ops do the work: between complex numbers, from real ones to the half of their spectrum that
says all, and back. A transform's adjoint, which its gradient is, runs in the other direction with
the factor on the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import get_default_dtype
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.core.signature import whole_number
from tensorflow_lite_clone.core.strides import permuted_strides, sizes_of
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import reordering
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.pointwise.complex_numbers import conj
from tensorflow_lite_clone.ops.reduce._arguments import axis_of
from tensorflow_lite_clone.ops.shape.rearrange import ConstantPad
from tensorflow_lite_clone.tensor import Tensor

#: The factor's place in the adjoint, and in transforms with the sign of the exponent turned.
_TURNED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _along(F: Any, x: Any, axes: tuple, norm: str, inverse: bool) -> Any:
    if len(axes) == 1:
        return (F.fft.ifft if inverse else F.fft.fft)(x, axis=axes[0], norm=norm)
    return (F.fft.ifftn if inverse else F.fft.fftn)(x, axes=axes, norm=norm) if axes else x


def _alone(F: Any, x: Any, axis: int, size: int, like: Any) -> Any:
    """1 for the places of half a spectrum of `size` that stand for themselves alone, else 0.

    Those are the constant and, if `size` is even, the highest frequency; each other one also
    stands for its mirror image in the other half. In the shape that broadcasts along `axis`.
    """
    place = F.arange(size // 2 + 1)
    unpaired = F.astype((place == 0) | (place * 2 == size), like.dtype)
    return F.reshape(unpaired, (-1, *(1,) * (x.ndim - 1 - axis)))


def _order(strides: tuple, axes: tuple) -> list[int]:
    """The dimensions of a result from the slowest to the fastest, as in PyTorch's over MKL.

    Those that are not transformed come first, in the order of the input's memory.
    """
    others = [dim for dim in range(len(strides)) if dim not in axes]
    return [*_falling(strides, others), *axes]


def _falling(strides: tuple, dims: Any) -> list[int]:
    return sorted(dims, key=lambda dim: -strides[dim])


class FftC2C(Op):
    """The transform of complex numbers along `axes`."""

    name = "fft_c2c"
    label = "FftC2C"

    @reordering
    def layout(shape, operands, parameters):
        (_, strides), axes = operands[0], parameters["axes"]
        return permuted_strides(shape, _order(strides, _falling(strides, axes)))

    def forward(F, x, *, axes, norm, inverse):
        return _along(F, x, axes, norm, inverse)

    def backward_x(F, g, *, axes, norm, inverse):
        return F.fft_c2c(g, axes=axes, norm=_TURNED[norm], inverse=not inverse)


class FftR2C(Op):
    """The transform of real numbers along `axes`: half of it along the last one, of `size`.

    The adjoint of leaving a half out is to fill it with zeros; the real part of the inverse is
    that of the spectrum whose other half mirrors what is there, each by a half.
    """

    name = "fft_r2c"
    label = "FftR2C"

    @reordering
    def layout(shape, operands, parameters):
        (_, strides), axes = operands[0], parameters["axes"]
        return permuted_strides(shape, _order(strides, [*_falling(strides, axes[:-1]), axes[-1]]))

    def forward(F, x, *, axes, norm, size):
        return _along(F, F.fft.rfft(x, axis=axes[-1], norm=norm), axes[:-1], norm, False)

    def backward_x(F, g, *, axes, norm, size):
        halves = (_alone(F, g, axes[-1], size, F.real(g)) + 1) / 2
        return F.fft_c2r(g * halves, axes=axes, norm=_TURNED[norm], size=size)


class FftC2R(Op):
    """The inverse of `FftR2C`: real numbers, of `size` along the last of `axes`.

    The imaginary parts of the elements that stand for themselves are ignored. The others count
    twice in the result, and so in the gradient.
    """

    name = "fft_c2r"
    label = "FftC2R"

    @reordering
    def layout(shape, operands, parameters):
        (own, strides), axes = operands[0], parameters["axes"]
        if len(axes) > 1:  # those but the last are transformed before
            strides = FftC2C.layout(own, operands, {"axes": axes[:-1]})
        return permuted_strides(shape, _order(strides, axes[-1:]))

    def forward(F, x, *, axes, norm, size):
        lines = _along(F, x, axes[:-1], norm, True)
        return F.fft.irfft(lines, n=size, axis=axes[-1], norm=norm)

    def backward_x(F, g, *, axes, norm, size):
        counts = 2 - _alone(F, g, axes[-1], size, g)
        return F.fft_r2c(g, axes=axes, norm=_TURNED[norm], size=size) * counts


def _norm_of(norm: Any, inverse: bool = False) -> str:
    if norm is None:
        norm = "backward"
    if not isinstance(norm, str):
        raise TypeError(f"argument 'norm' must be str, not {type(norm).__name__}")
    if norm not in _TURNED:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return _TURNED[norm] if inverse else norm


def _line(input: Tensor, n: Any, dim: Any) -> tuple[tuple, list]:
    """The one axis of a transform, in a tuple, and the length that is asked for or None."""
    ndim = input._storage.physical.ndim
    axis = axis_of(dim, ndim)
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return (axis,), [None if n is None else whole_number("argument 'n'", n)]


def _grid(input: Tensor, s: Any, dim: Any) -> tuple[tuple, list]:
    """The axes of a transform and, for each, the length that is asked for or None."""
    ndim = input._storage.physical.ndim
    sizes = None if s is None else sizes_of((s,), "s")
    if dim is None:
        count = ndim if sizes is None else len(sizes)
        if count > ndim:
            raise RuntimeError(
                f"Got shape with {count} values but input tensor only has {ndim} dimensions."
            )
        axes = tuple(range(ndim - count, ndim))
    else:
        dims = sizes_of((dim,), "dim")
        if dims and not ndim:
            raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
        axes = tuple([normalize_dim(axis, ndim) for axis in dims])
        if len(set(axes)) != len(axes):
            raise RuntimeError("FFT dims must be unique")
    if sizes is None:
        return axes, [None] * len(axes)
    if len(sizes) != len(axes):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    return axes, [None if size == -1 else size for size in sizes]


def _expect_real(name: str, core: Any, input: Tensor) -> None:
    if core is _from_real and input.dtype.kind == "c":
        raise RuntimeError(f"{name} expects a real input tensor, but got {input.dtype.short_name}")


def _floating(input: Tensor) -> Tensor:
    """`input` in a dtype that can be transformed; RuntimeError for two-byte floats."""
    dtype = input.dtype
    if dtype.kind not in "fc":
        input = cast(input, get_default_dtype())
        dtype = input.dtype
    if dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {dtype.short_name}")
    return input


def _resized(x: Tensor, axes: tuple, sizes: list) -> Tensor:
    """`x` cut, or filled up with zeros, to `sizes` along `axes`; RuntimeError below 1."""
    shape = x._storage.physical.shape
    pads = [(0, 0)] * len(shape)
    for axis, size in zip(axes, sizes, strict=True):
        length = shape[axis] if size is None else size
        if length < 1:
            raise RuntimeError(f"Invalid number of data points ({length}) specified")
        pads[axis] = (0, length - shape[axis])
    if not any([after for _, after in pads]):
        return x
    return apply(ConstantPad, x, pads=tuple(pads), value=0)


def _delivered(name: str, result: Tensor, out: Tensor | None) -> Tensor:
    if out is None:
        return result
    if isinstance(out, Tensor) and out.dtype.kind != result.dtype.kind:
        kind = "complex" if result.dtype.kind == "c" else "floating point"
        raise RuntimeError(f"{name} expects a {kind} output tensor, but got {out.dtype.short_name}")
    return write_out(name, out, result)


def _complex(
    name: str, inverse: bool, x: Tensor, places: tuple, norm: Any, out: Tensor | None
) -> Tensor:
    axes, sizes = places
    norm = _norm_of(norm)
    y = _resized(cast(x, x.dtype.to_complex()), axes, sizes)
    if axes:
        y = apply(FftC2C, y, axes=axes, norm=norm, inverse=inverse)
    elif y is x:
        y = x.clone()
    return _delivered(name, y, out)


def _expect_axes(name: str, axes: tuple) -> None:
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")


def _from_real(
    name: str, conjugate: bool, x: Tensor, places: tuple, norm: Any, out: Tensor | None
) -> Tensor:
    axes, sizes = places
    _expect_axes(name, axes)
    norm = _norm_of(norm, conjugate)
    x = _resized(x, axes, sizes)
    size = x._storage.physical.shape[axes[-1]]
    y = apply(FftR2C, x, axes=axes, norm=norm, size=size)
    return _delivered(name, conj(y) if conjugate else y, out)


def _to_real(
    name: str, conjugate: bool, x: Tensor, places: tuple, norm: Any, out: Tensor | None
) -> Tensor:
    axes, sizes = places
    _expect_axes(name, axes)
    norm = _norm_of(norm, conjugate)
    x = cast(conj(x) if conjugate else x, x.dtype.to_complex())
    size = sizes[-1]
    if size is None:
        size = 2 * (x._storage.physical.shape[axes[-1]] - 1)
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified")
    x = _resized(x, axes, [*sizes[:-1], size // 2 + 1])
    y = apply(FftC2R, x, axes=axes, norm=norm, size=size)
    return _delivered(name, y, out)


_Core = Callable[[str, bool, Tensor, tuple, Any, Any], Tensor]


def _exported(function: Callable[..., Tensor], name: str, document: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = document
    return public("fft")(function)


def _along_one(name: str, core: _Core, inverse: bool, document: str) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        n: int | None = None,
        dim: int = -1,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        _expect_real(name, core, input)
        x = _floating(input)
        return core(name, inverse, x, _line(x, n, dim), norm, out)

    return _exported(function, name, document)


def _along_many(
    name: str, core: _Core, inverse: bool, document: str, default: tuple[int, ...] | None = None
) -> Callable[..., Tensor]:
    def function(
        input: Tensor,
        s: Any = None,
        dim: Any = default,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        if dim is None and default is not None:
            raise TypeError("argument 'dim' must be tuple of ints, not NoneType")
        _expect_real(name, core, input)
        places = _grid(input, s, dim)
        return core(name, inverse, _floating(input), places, norm, out)

    return _exported(function, name, document)


def _along_two(name: str, core: _Core, inverse: bool) -> Callable[..., Tensor]:
    document = f"`{name[:-1]}n` along the last two dimensions."
    return _along_many(name, core, inverse, document, (-2, -1))


fft = _along_one(
    "fft",
    _complex,
    False,
    """The transform along `dim`, of `n` elements: cut or filled up with zeros; complex.

    Real input is made complex, integers by way of the default dtype. Raises RuntimeError for
    two-byte floats, fewer than one element, and an unknown `norm`.
    """,
)
ifft = _along_one("ifft", _complex, True, "The inverse of `fft`.")
rfft = _along_one(
    "rfft",
    _from_real,
    False,
    """The first n // 2 + 1 elements of `fft` of real input; the others are their conjugates.

    Raises RuntimeError for complex input, and as `fft`.
    """,
)
irfft = _along_one(
    "irfft",
    _to_real,
    False,
    """The inverse of `rfft`: `n` real numbers, by default an even number, 2 (m - 1) for m given.

    The imaginary part of the first element is ignored, and for even `n` that of the last.
    """,
)
hfft = _along_one(
    "hfft",
    _to_real,
    True,
    """`fft` of a signal that is Hermitian, ``x[n - j] = conj(x[j])``, given by half: real.

    `n` is the number of results, by default 2 (m - 1) for m given.
    """,
)
ihfft = _along_one(
    "ihfft",
    _from_real,
    True,
    "The inverse of `hfft`: the first n // 2 + 1 elements of `ifft` of real input.",
)

fftn = _along_many(
    "fftn",
    _complex,
    False,
    """`fft` along each of `dim`, of `s` elements (-1: all of them).

    Without `dim` along the last ``len(s)`` dimensions, without both along all. Raises
    RuntimeError for a dimension given twice and for `s` and `dim` of different lengths.
    """,
)
ifftn = _along_many("ifftn", _complex, True, "The inverse of `fftn`.")
rfftn = _along_many(
    "rfftn",
    _from_real,
    False,
    "`rfft` along the last of `dim`, then `fft` along the others; arguments as of `fftn`.",
)
irfftn = _along_many(
    "irfftn",
    _to_real,
    False,
    "`ifft` along all of `dim` but the last, then `irfft` along that one.",
)
hfftn = _along_many(
    "hfftn",
    _to_real,
    True,
    "`fft` along all of `dim` but the last, then `hfft` along that one.",
)
ihfftn = _along_many(
    "ihfftn",
    _from_real,
    True,
    "`ihfft` along the last of `dim`, then `ifft` along the others.",
)

fft2 = _along_two("fft2", _complex, False)
ifft2 = _along_two("ifft2", _complex, True)
rfft2 = _along_two("rfft2", _from_real, False)
irfft2 = _along_two("irfft2", _to_real, False)
hfft2 = _along_two("hfft2", _to_real, True)
ihfft2 = _along_two("ihfft2", _from_real, True)
