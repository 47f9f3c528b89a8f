"""Attention on the GPU: what attention*.cu serve, and how their operands lie."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy import attention_hopper, attention_hopper_float
from tensorflow_lite_clone.backends.cupy.device_facts import facts, here
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.backends.cupy.random import threshold
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.table import override

_FORWARD = Kernel(
    "attention.cu",
    "attention_forward",
    params=("T", "D", "M", "N", "CAUSAL", "MASK", "DROPOUT", "PRODUCTS"),
)
_BACKWARD = Kernel(
    "attention_backward.cu",
    "attention_backward",
    params=("T", "D", "M", "N", "STAGES", "CAUSAL", "MASK", "DROPOUT", "PRODUCTS", "KEYS"),
)
_DELTA = Kernel("attention_backward.cu", "attention_backward_delta", params=("T", "LANES"))
_NOISE = Kernel("attention.cu", "attention_forward_noise", params=("T",))

_FLOATS = ("float32", "float16", "bfloat16")
_WIDEST = 128  # columns of a head
_MOST_BLOCKS = 2**31 - 1
_NO_MASK, _KEEP, _ADD, _ADD_AND_WRITE = range(4)


class _Call(NamedTuple):
    """The operands as the kernels read them: (batch, head, row, column)."""

    q: Any
    k: Any
    v: Any
    mask: Any
    lead: tuple[int, ...]  # the leading axes of the result
    kind: int  # of mask
    bucket: int  # the template argument D
    products: int


def _call(q: Any, k: Any, v: Any, mask: Any, groups: int) -> _Call | None:
    """The operands in four axes and whole packs, None where the kernels do not serve them."""
    if q.dtype.name not in _FLOATS or max(q.ndim, k.ndim, v.ndim) > 4:
        return None
    if not (q.size and k.size and v.size) or here().capability < 80:
        return None
    pack = 16 // q.itemsize
    widest = max(q.shape[-1], v.shape[-1])
    bucket = -(-widest // 32) * 32
    if bucket > _WIDEST:
        return None
    heads = [x.shape[:-2] for x in (q, k, v)]
    if groups > 1:
        heads[1:] = [(*x[:-1], x[-1] * groups) for x in heads[1:]]
    lead = np.broadcast_shapes(*heads)
    batch, count = (1, 1, *lead)[-2:]
    length, size = q.shape[-2], k.shape[-2]
    if batch * count * -(-max(length, size) // 64) > _MOST_BLOCKS:
        return None
    kind = _NO_MASK
    if mask is not None:
        kind = _KEEP if mask.dtype.kind == "b" else _ADD
        if kind == _ADD and mask.dtype != q.dtype:
            return None
        mask = cupy.broadcast_to(_four(mask), (batch, count, length, size))
        if max(abs(stride) for stride in mask.strides[2:]) >= 2**24:
            return None  # offsets within a tile are of 32 bits
    shared = count // groups
    return _Call(
        _packed(cupy.broadcast_to(_four(q), (batch, count, *q.shape[-2:])), pack),
        _packed(cupy.broadcast_to(_four(k), (batch, shared, *k.shape[-2:])), pack),
        _packed(cupy.broadcast_to(_four(v), (batch, shared, *v.shape[-2:])), pack),
        mask,
        lead,
        kind,
        bucket,
        1 if q.itemsize == 2 or flags.matmul_allow_tf32 else 3,
    )


def _four(x: Any) -> Any:
    return x[(None,) * (4 - x.ndim)] if x.ndim < 4 else x


def _packed(x: Any, pack: int) -> Any:
    """x, or a copy of it, with rows that are whole packs of 16 bytes at multiples of 16 bytes."""
    width = x.shape[-1]
    if (
        width % pack == 0
        and x.strides[-1] == x.itemsize
        and x.data.ptr % 16 == 0
        and not any([stride % 16 for stride in x.strides[:-1]])
    ):
        return x
    padded = -(-width // pack) * pack
    # not ascontiguousarray, which returns contiguous arrays that start anywhere as they are
    y = (cupy.empty if padded == width else cupy.zeros)((*x.shape[:-1], padded), x.dtype)
    y[..., :width] = x
    return y


def _result(lead: tuple, rows: int, width: int, like: Any) -> Any:
    """An empty (*lead, rows, width) whose axes lie in memory as those of `like` do.

    So the result of heads that are a view of (batch, rows, heads, width) is such a view as well.
    """
    shape = (*(1, 1, *lead)[-2:], rows)
    axes = [axis for axis in range(3) if shape[axis] > 1]
    order = sorted(axes, key=lambda axis: -like.strides[axis])
    if order == axes or any([like.strides[axis] == 0 for axis in axes]):
        return cupy.empty((*lead, rows, width), like.dtype)
    step = width * like.itemsize
    strides = [step, step, step]
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return cupy.ndarray(
        (*lead, rows, width),
        like.dtype,
        memptr=cupy.cuda.alloc(step),
        strides=(*strides[2 - len(lead) :], like.itemsize),
    )


class _Target:
    """A result, and the four-axis array of whole packs that a kernel writes it through."""

    def __init__(self, lead: tuple, rows: int, width: int, padded: int, like: Any) -> None:
        self.result = _result(lead, rows, width, like)
        self.width = width
        self.array = _four(self.result)
        if padded != width:
            self.array = cupy.empty((*self.array.shape[:-1], padded), like.dtype)

    def finished(self) -> Any:
        if self.array.shape[-1] != self.width:
            _four(self.result)[...] = self.array[..., : self.width]
        return self.result


def _problem(
    call: _Call, groups: int, p: float, g: Any, first: Any = None, second: Any = None
) -> Any:
    """The kernels' struct `Problem`."""
    numbers = [call.q.shape[1], groups, call.q.shape[2], call.k.shape[2]]
    numbers += [call.q.shape[3], call.v.shape[3], threshold(1 - p)]
    for x in (call.q, call.k, call.v, g, first, second):
        strides = (0, 0, 0) if x is None else x.strides[:3]
        numbers += [stride // call.q.itemsize for stride in strides]
    if call.mask is None:
        numbers += [0, 0, 0, 0]
    else:
        numbers += [stride // call.mask.itemsize for stride in call.mask.strides]
    return np.array(numbers, np.int64)


def _masks(call: _Call) -> tuple[Any, Any]:
    """The arguments `keep` and `bias`."""
    return (call.mask, None) if call.kind == _KEEP else (None, call.mask)


def _forward(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    scale: float,
    causal: bool,
    groups: int,
    ticket: Any,
    p: float,
) -> Any:
    call = _call(q, k, v, mask, groups)
    if call is None:
        return NotImplemented
    if p:
        ticket = ticket(math.prod(call.lead) * q.shape[-2] * -(-k.shape[-2] // 4))
    length = q.shape[-2]
    out = _Target(call.lead, length, v.shape[-1], call.v.shape[3], call.q)
    lse = cupy.empty((*call.lead, length), np.float32)
    for hopper in () if p else (attention_hopper, attention_hopper_float):
        if hopper.is_supported(call, facts(q.device.id).capability, scale):
            hopper.forward(call, groups, scale, causal, out.array, lse)
            return (out.finished(), lse, ticket)
    warps, columns = _forward_tiles(call, length, bool(p))
    shared = (64 * warps + 4 * columns) * _row_bytes(call)
    kernel = _FORWARD[
        q.dtype, call.bucket, warps, columns, causal, call.kind, bool(p), call.products
    ]
    kernel(
        math.prod(call.lead) * -(-length // (64 * warps)), 128, call.q, call.k, call.v,
        *_masks(call), ticket, _problem(call, groups, p, out.array), scale, 1 / (1 - p),
        out.array, lse, shared=shared,
    )  # fmt: skip
    return (out.finished(), lse, ticket)


def _row_bytes(call: _Call) -> int:
    return call.bucket * call.q.itemsize + 16


def _forward_tiles(call: _Call, length: int, dropout: bool) -> tuple[int, int]:
    """The template arguments M and N: as much as fits into registers."""
    wide = call.bucket > 64
    if call.kind or dropout:
        return 1, 16 if wide or call.q.itemsize == 4 else 32
    if call.q.itemsize == 4 and (wide or length <= 64):
        return 1, 16 if wide else 32
    if wide or length <= 64:
        return 1, 32 if wide else 64
    return 2, 32


def _backward_tiles(call: _Call, busy: bool, keys: bool) -> tuple[int, int, int]:
    """The template arguments M, N and STAGES."""
    wide = call.bucket > 64
    if call.q.itemsize == 4:
        columns = 16 if wide or busy else 32
    else:
        columns = 16 if wide and (busy or not keys) else 32
    room = here().shared
    warps, long = 1, call.q.shape[2] > 64
    if call.q.itemsize == 4 and long and not (wide or busy or keys):
        warps = 2 if _backward_shared(call, 2, columns, 2) <= room else 1
    stages = 2 if _backward_shared(call, warps, columns, 2) <= room else 1
    return warps, columns, stages


def _backward_shared(call: _Call, warps: int, columns: int, stages: int) -> int:
    return (128 * warps + 2 * stages * columns) * _row_bytes(call) + 8 * stages * columns


def _backward(
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    scale: float,
    causal: bool,
    groups: int,
    needs: tuple[bool, ...],
    ticket: Any,
    p: float,
) -> Any:
    call = _call(q, k, v, mask, groups)
    if call is None or (needs[3] and p) or lse.dtype != np.float32:
        return NotImplemented
    pack = 16 // q.itemsize
    g, out = _packed(_four(g), pack), _packed(_four(out), pack)
    length, size = q.shape[-2], k.shape[-2]
    heads = math.prod(call.lead)
    capability = 0 if p else facts(q.device.id).capability
    hopper = attention_hopper.is_supported(call, capability, scale)
    in_parts = attention_hopper_float.is_supported(call, capability, scale)
    numbers: Any
    if hopper:
        numbers = attention_hopper.row_numbers(call)
    elif in_parts:
        numbers = attention_hopper_float.prepared(call, groups, g, out, lse)
    else:
        numbers = _delta(call, groups, g, out)
    busy = bool(call.kind or p)

    def launch(keys: bool, kind: int, first: Any, second: Any, gmask: Any) -> None:
        if hopper:
            attention_hopper.backward(
                call, groups, g, out, lse, numbers, scale, causal, first, second
            )
            return
        if in_parts:
            attention_hopper_float.backward(call, groups, numbers, scale, causal, first, second)
            return
        warps, columns, stages = _backward_tiles(call, busy, keys)
        kernel = _BACKWARD[
            q.dtype, call.bucket, warps, columns, stages, causal, kind, bool(p), call.products,
            keys,
        ]  # fmt: skip
        rows, blocks = (size, heads // groups) if keys else (length, heads)
        kernel(
            blocks * -(-rows // (64 * warps)), 128, call.q, call.k, call.v, g, lse, numbers,
            *_masks(call), ticket, _problem(call, groups, p, g, first, second), scale,
            1 / (1 - p), first, second, gmask,
            shared=_backward_shared(call, warps, columns, stages),
        )  # fmt: skip

    gq = gk = gv = gmask = None
    if needs[0] or needs[3] or hopper:  # whose launch for queries also fills the numbers
        target = _Target(call.lead, length, q.shape[-1], call.q.shape[3], call.q)
        kind = call.kind
        if needs[3]:
            kind, gmask = _ADD_AND_WRITE, cupy.empty((*call.lead, length, size), q.dtype)
        launch(False, kind, target.array, None, gmask)
        gq = target.finished() if needs[0] else None
    if needs[1] or needs[2]:
        shared = (*call.lead[:-1], call.lead[-1] // groups) if call.lead else ()
        first = _Target(shared, size, k.shape[-1], call.k.shape[3], call.k)
        second = _Target(shared, size, v.shape[-1], call.v.shape[3], call.v)
        launch(True, call.kind, first.array, second.array, None)
        gk = first.finished() if needs[1] else None
        gv = second.finished() if needs[2] else None
    return gq, gk, gv, gmask


def _delta(call: _Call, groups: int, g: Any, out: Any) -> Any:
    """sum(g * out) of every row of queries."""
    rows = math.prod(call.lead) * call.q.shape[2]
    delta = cupy.empty(rows, np.float32)
    lanes = max(4, 1 << (call.bucket * g.itemsize // 16 - 1).bit_length())
    _DELTA[g.dtype, lanes](
        -(-rows * lanes // 256), 256, g, out, _problem(call, groups, 0.0, g, out), rows, delta
    )
    return delta


@override("attention", backend="cupy")
def attention(
    F: Any, q: Any, k: Any, v: Any, mask: Any, *, scale: float, causal: bool, groups: int
) -> Any:
    result = _forward(q, k, v, mask, scale, causal, groups, None, 0.0)
    return result if result is NotImplemented else result[:2]


@override("attention_backward", backend="cupy")
def attention_backward(
    F: Any,
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    *,
    scale: float,
    causal: bool,
    groups: int,
    needs: tuple[bool, ...],
) -> Any:
    return _backward(g, q, k, v, mask, out, lse, scale, causal, groups, needs, None, 0.0)


@override("attention_dropout", backend="cupy")
def attention_dropout(
    F: Any, q: Any, k: Any, v: Any, mask: Any, *, scale: float, causal: bool, groups: int, p: float
) -> Any:
    if p >= 1:
        return NotImplemented
    return _forward(q, k, v, mask, scale, causal, groups, F.backend.generator.ticket, p)


@override("attention_dropout_backward", backend="cupy")
def attention_dropout_backward(
    F: Any,
    g: Any,
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    out: Any,
    lse: Any,
    noise: Any,
    *,
    scale: float,
    causal: bool,
    groups: int,
    p: float,
    needs: tuple[bool, ...],
) -> Any:
    if noise.dtype != np.uint64:
        return NotImplemented  # the forward was generic
    return _backward(g, q, k, v, mask, out, lse, scale, causal, groups, needs, noise, p)


@override("attention_noise", backend="cupy")
def attention_noise(F: Any, noise: Any, *, shape: tuple[int, ...], p: float) -> Any:
    if noise.dtype != np.uint64:
        return NotImplemented
    rows = math.prod(shape[:-1])
    factors = cupy.empty(shape, np.float32)
    problem = np.zeros(29, np.int64)
    problem[3], problem[6] = shape[-1], threshold(1 - p)
    blocks = blocks_for(rows * -(-shape[-1] // 4), 256)
    _NOISE[factors.dtype](blocks, 256, noise, problem, rows, 1 / (1 - p), factors)
    return factors
