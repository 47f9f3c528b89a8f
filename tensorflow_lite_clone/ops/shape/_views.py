"""What the families of views share: placing a gradient where a view looked."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply_view, current_edge
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.strides import extent, may_overlap
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops.reduce._arguments import expect_tensor
from tensorflow_lite_clone.tensor import Tensor


class Stepwise(Op):
    """x itself, in which every gradient that comes back this way is constant between steps."""

    view = True
    constant_in = ("x",)

    def forward(F, x):
        return x

    def backward_x(F, g):
        return g


def stepwise(input: Tensor) -> Tensor:
    """`input` as functions take it that are made of others and linear in pieces.

    PyTorch's gradient functions of these take the input, so that second derivatives are zeros and
    no error; see `Op.constant_in`.
    """
    if not mode.grad or current_edge(input) is None:
        return input
    return apply_view(Stepwise, input)


class Embed(Op):
    """Zeros of `shape` with `part` where ``view(x, **parameters)`` looks: a view's gradient."""

    def forward(F, part, *, view, parameters, shape):
        out = F.zeros(shape, dtype=part.dtype)
        F.backend.write(F.run(view, out, **parameters), part)
        return out

    def backward_part(F, g, *, view, parameters, shape):
        return F.run(view, g, **parameters)


@composite
def places(F, *, shape, strides, offset):
    """The positions in memory, as a flat array, of the elements of a strided tensor."""
    ndim = max(len(shape), 1)
    total = F.reshape(F.arange(offset, offset + 1), (1,) * ndim)
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        total = total + F.reshape(F.arange(size) * stride, (size,) + (1,) * (ndim - dim - 1))
    return F.reshape(total, (-1,))


@composite
def strided_gradient(F, g, *, shape, strides, offset, source):
    """The gradient of a tensor of geometry `source` from that of an `as_strided` view of it.

    Both look into one line of memory: the view's gradient is added up there, and each element of
    the tensor takes its share of what lies in its place.
    """
    sizes, steps = source
    before = max(0, -offset)
    length = before + max(extent(sizes, steps), offset + extent(shape, strides), 1)
    seen = F.places(shape=shape, strides=strides, offset=before + offset)
    zeros = F.zeros((length,), dtype=g.dtype)
    memory = F.index_add(zeros, seen, F.reshape(g, (-1,)), axis=0)
    own = F.places(shape=sizes, strides=steps, offset=before)
    gx = F.take(memory, own, axis=0)
    if may_overlap(sizes, steps):
        ones = F.ones(own.shape, dtype=g.dtype)
        gx = gx / F.take(F.index_add(zeros, own, ones, axis=0), own, axis=0)
    return F.reshape(gx, sizes)


def number_of(array: Any, backend: Any) -> Any:
    """The Python number in a zero-dim array: the host waits for it."""
    return backend.number(array)


def storage_of(name: str, input: Any) -> Any:
    """A Tensor's storage; torch's TypeError for anything else."""
    try:
        return input._storage
    except AttributeError:
        expect_tensor(name, input)
        raise
