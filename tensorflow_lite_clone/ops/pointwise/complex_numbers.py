"""Complex numbers: their parts as views, conjugates, angles, and making them."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import elementwise
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._pointwise import unary
from tensorflow_lite_clone.tensor import Tensor


class Real(Op):
    """The real parts: a view of complex numbers."""

    view = True

    def forward(F, x):
        return F.real(x)

    def backward_x(F, g):
        return g  # the engine makes it complex


class Imag(Op):
    """The imaginary parts: a view of complex numbers."""

    view = True

    def forward(F, x):
        return F.imag(x)

    def backward_x(F, g):
        return g * 1j


@public("torch")
def real(input: Tensor) -> Tensor:
    """The real parts as a view; a real tensor itself."""
    return apply(Real, input) if input._storage.physical.dtype.kind == "c" else input


@public("torch")
def imag(input: Tensor) -> Tensor:
    """The imaginary parts as a view; RuntimeError for real tensors."""
    if input._storage.physical.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return apply(Imag, input)


def _set_part(part: Any) -> Any:
    def setter(self: Tensor, value: Any) -> None:
        part(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value))

    return setter


export(property(real, _set_part(real), doc=real.__doc__), "property", name="real")
export(property(imag, _set_part(imag), doc=imag.__doc__), "property", name="imag")


class ViewAsReal(Op):
    """Complex numbers as pairs of real ones, along a new last axis."""

    view = True

    def forward(F, x):
        return F.bitcast(F.expand_dims(x, axis=-1), F.real(x).dtype)

    def backward_x(F, g):
        return F.make_complex(g[..., 0], g[..., 1])


class ViewAsComplex(Op):
    """Pairs of real numbers along the last axis as complex ones."""

    view = True

    def forward(F, x, *, dtype):
        return F.bitcast(x, F.backend.native[dtype])[..., 0]

    def backward_x(F, g):
        return F.stack([F.real(g), F.imag(g)], axis=-1)


@public("torch")
def view_as_real(input: Tensor) -> Tensor:
    """A view of complex numbers as pairs of real ones: shape (..., 2)."""
    if input._storage.physical.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return apply(ViewAsReal, input)


@public("torch")
def view_as_complex(input: Tensor) -> Tensor:
    """A view of pairs of real numbers, shape (..., 2), as complex ones."""
    storage = input._storage
    array = storage.array
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {input.dtype.short_name}"
        )
    if not array.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if array.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    strides = storage.backend.strides(array)
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any([stride % 2 for stride, n in zip(strides[:-1], array.shape) if n != 1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return apply(ViewAsComplex, input, dtype=input.dtype.to_complex())


class MakeComplex(Op):
    """real + i imag."""

    layout_agnostic = True
    primitive = "make_complex"
    layout = elementwise
    label = "Complex"

    def forward(F, real, imag):
        return F.make_complex(real, imag)

    def backward_real(F, g):
        return F.real(g)

    def backward_imag(F, g):
        return F.imag(g)


@public("torch")
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``real + 1j * imag`` from two tensors of one floating dtype."""
    first, second = real.dtype, imag.dtype
    if first.name not in ("float32", "float64") or second.kind != "f":
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{first.short_name} and {second.short_name}"
        )
    if first is not second:
        raise RuntimeError(
            f"Expected object of scalar type {first.short_name} but got scalar type "
            f"{second.short_name} for second argument"
        )
    result = apply(MakeComplex, real, imag)
    return result if out is None else write_out("complex", out, result)


@public("torch")
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``abs * exp(1j * angle)`` from two tensors of one floating dtype."""
    if abs.dtype is not angle.dtype or abs.dtype.kind != "f":
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{abs.dtype.short_name} and {angle.dtype.short_name}"
        )
    return complex(abs * angle.cos(), abs * angle.sin(), out=out)


conj_physical = unary(
    "conj_physical",
    lambda F, x: F.conj(x) if x.dtype.kind == "c" else F.copy(x),
    x=lambda F, g: F.conj(g),
    document="The complex conjugate, as a copy.",
)


@public("torch", "method")
def conj(input: Tensor) -> Tensor:
    """The complex conjugate: always a copy here, torch's is lazy; a real tensor itself."""
    return conj_physical(input) if input._storage.physical.dtype.kind == "c" else input


@public("torch", "method")
def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself: conjugates are never lazy here."""
    return input


export(resolve_conj, "torch", "method", name="resolve_neg")


@public("torch", "method")
def is_conj(input: Tensor) -> bool:
    """False: conjugates are never lazy here."""
    return False


export(is_conj, "torch", "method", name="is_neg")


def _angle(F, x):
    if x.dtype.kind == "c":
        return F.atan2(F.imag(x), F.real(x))
    return F.astype(F.where(x < 0, math.pi, F.where(x == x, 0, x)), x.dtype)


def _angle_gradient(F, g, x):
    if x.dtype.kind != "c":
        return F.zeros_like(g)
    size = F.abs(x)
    return F.where(size == 0, 0, g * 1j * x / (size * size))


angle = unary(
    "angle",
    _angle,
    x=_angle_gradient,
    floating=True,
    inplace=(),
    document="The angle in the complex plane; for real numbers 0, or pi if negative.",
)


def sgn_gradient(F, g, x, out):
    """0 for real numbers; for complex ones what turns x about the origin."""
    if x.dtype.kind != "c":
        return F.zeros_like(g)
    size = F.abs(x)
    return F.where(size == 0, 0, (g - F.real(F.conj(out) * g) * out) / size)


sgn = unary(
    "sgn",
    x=sgn_gradient,
    inplace=("method",),
    document="``input / abs(input)`` for complex numbers, the sign for real ones; 0 for 0.",
)
sign = unary(
    "sign",
    "sgn",
    x=lambda F, g: F.zeros_like(g),
    refuses="c",
    inplace=("method",),
    document="-1, 0 or 1; 0 for NaN.",
)
absolute = unary(
    "abs",
    x=lambda F, g, x: g * F.sgn(x),
    refuses="b",
    inplace=(),
    alias=("absolute",),
    document="The absolute value; its gradient at 0 is 0.",
)
export(absolute, "method", name="__abs__")


@public("torch", "method")
@public("method", names=("absolute_",))
def abs_(input: Tensor) -> Tensor:
    """In-place form of `abs`; RuntimeError for complex tensors."""
    if input._storage.physical.dtype.kind == "c":
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return absolute.inplace(input)


def _isreal(F, x):
    return F.imag(x) == 0 if x.dtype.kind == "c" else F.isfinite(x) | True


isreal = unary("isreal", _isreal, inplace=(), document="Whether the imaginary part is 0.")
