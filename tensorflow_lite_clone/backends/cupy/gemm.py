"""Matrix products of CuPy arrays by cuBLASLt.

A plan (see `gemm_plan`) is made when a product of such shapes, strides, dtypes and alignment is
first computed; after that a call is one look-up and one call of the library.

Under stream capture only the latter happens. A step that is to be captured runs once before:
newer versions of cuBLASLt answer no heuristics while a stream is captured. A stream's workspace is
made by its first product, in memory that is no graph's own. Graphs captured on one stream share
its workspace, and must not run at the same time.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy import cublaslt as lt
from tensorflow_lite_clone.backends.cupy.gemm_layout import arrange
from tensorflow_lite_clone.backends.cupy.gemm_plan import (
    KINDS,
    LIKE_THE_RESULT,
    PLAIN,
    WORKSPACE,
    Plan,
    Variant,
    capturing,
    make_plan,
    plans,
)
from tensorflow_lite_clone.backends.cupy.kernel import unknown
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch import hooks


def matmul(
    x: Any,
    y: Any,
    *,
    bias: Any = None,
    epilogue: str | None = None,
    keep: bool = False,
    aux: Any = None,
    alpha: complex = 1.0,
    beta: complex = 1.0,
    addend: Any = None,
    out_dtype: Any = None,
) -> Any:
    """``epilogue(alpha x @ y + beta addend + bias)``, where ``x @ y`` is numpy.matmul's.

    `bias` has shape (n,), `addend` broadcasts to the result; both have the result's dtype.
    Epilogues are "relu" and "gelu" (its tanh form); with `keep` the result is (z, aux), aux being
    what the gradient needs. "relu_backward" and "gelu_backward" multiply by the derivative of what
    `aux` kept; "sums" gives (z, x summed along k) for x with two axes. What cuBLASLt cannot fuse is
    done in passes of its own. float32 is multiplied in TF32 only if ``flags.matmul_allow_tf32``;
    two-byte floats are summed in float32; dtypes without a cuBLASLt kind take CuPy's own kernels.

    Raises ValueError for shapes that do not fit, RuntimeError when cuBLASLt fails.
    """
    dtype = x.dtype
    if y.dtype != dtype:
        dtype = np.result_type(dtype, y.dtype)
        x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
    memory = x.data
    bits = memory.ptr | y.data.ptr
    variant = PLAIN
    if not (bias is epilogue is addend is out_dtype is None):
        out_native = None if out_dtype is None or out_dtype == dtype else np.dtype(out_dtype)
        if dtype not in KINDS or (epilogue == "sums" and x.ndim != 2):
            raise ValueError(f"matmul: no epilogue {epilogue} for {dtype} and {x.ndim} axes")
        rows_apart = None
        if addend is not None:
            addend, rows_apart = _readable(addend, x, y)
            bits |= addend.data.ptr
        if bias is not None:
            bias = cupy.ascontiguousarray(bias)
            if bias.data.ptr & 15:  # fused biases are read in packs
                bias = bias.copy()
            bits |= bias.data.ptr
        if aux is not None:
            bits |= aux.data.ptr
        variant = Variant(epilogue, bias is not None, keep, rows_apart, out_native)
    alignment = 256 if not bits & 255 else 16 if not bits & 15 else bits & -bits
    tf32 = flags.matmul_allow_tf32
    key = (
        dtype, x.shape, x.strides, y.shape, y.strides, alignment, memory.device_id, variant, tf32
    )  # fmt: skip
    plan = plans.get(key)
    if plan is None:
        if dtype not in KINDS:
            return cupy.matmul(x, y)
        plan = make_plan(key)
    if variant is PLAIN and plan.algorithm is not None and alpha == 1.0:
        out = cupy.empty(plan.shape, dtype)
        _launch(plan, x, y, out)
        return out
    return _extended(plan, variant, x, y, bias, aux, alpha, beta, addend)


def _launch(
    plan: Plan,
    x: Any,
    y: Any,
    out: Any,
    bias: int = 0,
    aux: int = 0,
    alpha: Any = None,
    beta: Any = None,
    addend: Any = None,
) -> bool:
    """Queue a product; False when it turns out that cuBLASLt cannot compute it, but others can."""
    if plan.x_to is not None:
        x = cupy.ascontiguousarray(cupy.broadcast_to(x, plan.x_to))
    if plan.y_to is not None:
        y = cupy.ascontiguousarray(cupy.broadcast_to(y, plan.y_to))
    a, b = (x, y) if plan.swapped else (y, x)
    a, b, z = a.data.ptr, b.data.ptr, out.data.ptr
    c = z if addend is None else addend.data.ptr
    status = 0
    if not plan.parts:
        status = _queue(plan, a, b, c, z, bias, aux, alpha, beta)
    else:
        a_step, b_step, z_step = plan.strides
        for number, part in enumerate(plan.parts):
            status = status or _queue(
                part,
                a + number * a_step,
                b + number * b_step,
                c + number * z_step,
                z + number * z_step,
                bias,
                aux,
                alpha,
                beta,
            )
    if not status:
        return True
    if plan.optional and not capturing():
        plan.algorithm = None
        return False
    raise RuntimeError(
        f"cuBLASLt: the product of {x.dtype} arrays of shapes {x.shape} and {y.shape} failed with "
        f"{lt.status_name(status)}"
    )


def _queue(
    plan: Plan, a: int, b: int, c: int, z: int, bias: int, aux: int, alpha: Any, beta: Any
) -> int:
    """Queue one call of cuBLASLt; returns its status."""
    state = plan.state
    stream = cupy.cuda.get_current_stream().ptr
    workspace = state.workspace(stream)
    unknown()
    operation, one, zero, a_layout, b_layout, c_layout, d_layout = plan.arguments
    while True:
        with state.lock:
            if bias != plan.bias_at:
                plan.operation.set(lt.DESC_BIAS_POINTER, ctypes.c_uint64(bias))
                plan.bias_at = bias
            if aux != plan.aux_at:
                plan.operation.set(lt.DESC_EPILOGUE_AUX_POINTER, ctypes.c_uint64(aux))
                plan.aux_at = aux
            launched = hooks.tell_launch("cublasLtMatmul", "", (), ())
            status = state.launch(
                state.handle,
                operation,
                one if alpha is None else ctypes.addressof(alpha),
                a,
                a_layout,
                b,
                b_layout,
                zero if beta is None else ctypes.addressof(beta),
                c,
                c_layout,
                z,
                d_layout,
                plan.algorithm,
                workspace,
                WORKSPACE,
                stream,
            )
            if not status:
                for end in launched:
                    end()
                return 0
            if capturing() or not plan.choose():  # the heuristics may err
                return status


def _extended(
    plan: Plan,
    variant: Variant,
    x: Any,
    y: Any,
    bias: Any,
    aux: Any,
    alpha: complex,
    beta: complex,
    addend: Any,
) -> Any:
    """A product with more to it than multiplication."""
    epilogue, keep, dtype = variant.epilogue, variant.keep, plan.dtype
    fused = plan.algorithm is not None
    if epilogue == "relu_backward" and aux.dtype == np.bool_:
        fused = False  # the mask was made apart as well
    if epilogue in ("gelu", "gelu_backward") and dtype.itemsize == 8:
        fused = False  # cuBLASLt's is good to 1e-9 only
    if fused:
        out = cupy.empty(plan.shape, dtype)
        if keep:
            size = (plan.rows, plan.aux_columns)
            aux = cupy.empty(size, np.uint8 if epilogue == "relu" else dtype)
        elif epilogue == "sums":
            bias = cupy.empty(plan.rows, dtype)
        scale = plan.kind.scalar
        if _launch(
            plan,
            x,
            y,
            out,
            0 if bias is None else bias.data.ptr,
            0 if aux is None else aux.data.ptr,
            None if alpha == 1.0 else scale(alpha),
            None if addend is None else scale(beta),
            addend,
        ):
            return (out, aux) if keep else (out, bias) if epilogue == "sums" else out
    if plan.optional:
        wide_x, wide_y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
        out = matmul(wide_x, wide_y, alpha=alpha, beta=beta, addend=addend)
    else:  # nothing to multiply
        out = cupy.zeros(plan.shape, dtype)
        if addend is not None:
            cupy.add(out, (addend * beta).astype(dtype, copy=False), out)
    return _finish(plan, variant, x, out, None if epilogue == "sums" else bias, aux)


def _finish(plan: Plan, variant: Variant, x: Any, out: Any, bias: Any, aux: Any) -> Any:
    """The epilogue in passes of its own."""
    epilogue, keep = variant.epilogue, variant.keep
    if bias is not None:
        cupy.add(out, bias, out)
    if epilogue is None:
        return out
    zero = cupy.zeros((), out.dtype)
    if epilogue == "sums":
        wide = np.float32 if out.dtype.itemsize == 2 else out.dtype
        return out, cupy.sum(x, 1, wide).astype(out.dtype, copy=False)
    if epilogue == "relu":
        mask = out > zero
        z = cupy.where(mask, out, zero).astype(out.dtype, copy=False)  # CuPy widens bfloat16
        return (z, mask) if keep else z
    if epilogue == "relu_backward":
        mask = aux if aux.dtype == np.bool_ else _bits(aux, plan.n)
        chosen = cupy.where(mask.reshape(out.shape), out, zero)
        return chosen.astype(out.dtype, copy=False)
    rows = (out.size // plan.n if plan.n else 0, plan.n)
    if epilogue == "gelu":
        z, _ = _gelu(out)
        if not keep:
            return z
        kept = cupy.zeros((rows[0], plan.aux_columns), out.dtype)
        kept[:, : plan.n] = out.reshape(rows)
        return z, kept
    slope = _gelu(aux[:, : plan.n].reshape(out.shape))[1]
    return cupy.multiply(out, slope).astype(out.dtype, copy=False)


_GELU = math.sqrt(2 / math.pi)


def _gelu(x: Any) -> tuple[Any, Any]:
    """GELU's tanh form, and its derivative (for two-byte floats in float32)."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    bend = cupy.tanh(_GELU * (wide + 0.044715 * wide * wide * wide))
    slope = _GELU * (1 + 3 * 0.044715 * wide * wide)
    z = (0.5 * wide * (1 + bend)).astype(x.dtype, copy=False)
    return z, 0.5 * (1 + bend) + 0.5 * wide * (1 - bend * bend) * slope


def _bits(mask: Any, columns: int) -> Any:
    """The rows of cuBLASLt's mask of bits as booleans."""
    bits = mask[:, :, None] >> cupy.arange(8, dtype=np.uint8) & 1
    return bits.reshape(mask.shape[0], -1)[:, :columns] != 0


def _readable(addend: Any, x: Any, y: Any) -> tuple[Any, int]:
    """The addend as cuBLASLt can read it, rows without gaps; and how far apart they are."""
    shape = arrange(x.shape, x.strides, y.shape, y.strides).shape
    n = shape[-1] if y.ndim > 1 else 1
    if addend.shape != shape:
        addend = cupy.broadcast_to(addend, shape)
    if x.ndim == y.ndim == 2:
        down, along = addend.strides
        size = addend.itemsize
        if (along == size or n == 1) and down % size == 0 and down >= n * size:
            return addend, down // size
    return cupy.ascontiguousarray(addend), LIKE_THE_RESULT
