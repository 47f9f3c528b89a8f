"""A model of cublasLtMatmul over host memory, and of the CuPy that `gemm` sees, in NumPy.

The descriptors are cuBLASLt's own, which it makes without a GPU: the model reads from them what the
GPU would be told. So layouts, transposes, pointers and epilogues are checked on any machine.
"""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from tensorflow_lite_clone.backends.cupy import cublaslt as lt

_DTYPES = {
    lt.R_32F: np.dtype(np.float32),
    lt.R_64F: np.dtype(np.float64),
    lt.R_16F: np.dtype(np.float16),
    lt.R_16BF: np.dtype(ml_dtypes.bfloat16),
    lt.C_32F: np.dtype(np.complex64),
    lt.C_64F: np.dtype(np.complex128),
}


class HostArray(np.ndarray):
    """A NumPy array with the attributes of CuPy's that `gemm` looks at."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.__array_interface__["data"][0], device_id=0)


def on_host(array: Any) -> HostArray:
    return np.asarray(array).view(HostArray)


class Stream:
    ptr = 0

    def is_capturing(self) -> bool:
        return False


def _like_cupy(name: str) -> Any:
    return lambda *args, **kwargs: on_host(getattr(np, name)(*args, **kwargs))


_WORDS = "zeros add where sum tanh arange multiply matmul broadcast_to ascontiguousarray".split()
CUPY = SimpleNamespace(
    **{name: _like_cupy(name) for name in _WORDS},
    empty=lambda shape, dtype: on_host(np.full(shape, 77, dtype)),  # shows what is not written
    cuda=SimpleNamespace(get_current_stream=Stream, Device=lambda index: nullcontext()),
    get_default_memory_pool=lambda: SimpleNamespace(malloc=lambda size: SimpleNamespace(ptr=1)),
)


class Model:
    """cublasLtMatmul; `supported` says which epilogues it has."""

    def __init__(self, supported: Any = lambda epilogue: True) -> None:
        self.supported, self.calls = supported, 0

    def heuristics(self, *args: Any, **kwargs: Any) -> tuple[int, list]:
        epilogue = _attribute("MatmulDesc", args[1].address, lt.DESC_EPILOGUE, ctypes.c_uint32)
        if not self.supported(epilogue):
            return lt.NOT_SUPPORTED, []
        return 0, [lt.Heuristic()]

    def __call__(self, *args: Any) -> int:
        self.calls += 1
        plain: list[Any] = [
            value.value if isinstance(value, ctypes.c_void_p) else value for value in args[:12]
        ]
        _, operation, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout = plain
        get = lambda number, kind: _attribute("MatmulDesc", operation, number, kind)
        first, second = _matrices(a, a_layout), _matrices(b, b_layout)
        result = _matrices(d, d_layout)
        if get(lt.DESC_TRANSA, ctypes.c_int32):
            first = first.swapaxes(1, 2)
        if get(lt.DESC_TRANSB, ctypes.c_int32):
            second = second.swapaxes(1, 2)
        scale = np.complex128 if result.dtype.kind == "c" else np.float64
        narrow = np.dtype("f4") if first.dtype.itemsize < 4 else first.dtype
        factor, kept = (_numbers(p, narrow, 1)[0] for p in (alpha, beta))
        value = factor * (first.astype(scale) @ second.astype(scale))
        if kept:
            value += kept * _matrices(c, c_layout).astype(scale)
        self._finish(get, value, second, result)
        return 0

    def _finish(self, get: Any, value: Any, second: Any, result: Any) -> None:
        epilogue = get(lt.DESC_EPILOGUE, ctypes.c_uint32)
        rows, columns = result.shape[1:]
        if epilogue & lt.EPILOGUE_BIAS:
            place = get(lt.DESC_BIAS_POINTER, ctypes.c_uint64)
            value += _numbers(place, result.dtype, rows).astype(value.dtype)[:, None]
        if epilogue & lt.EPILOGUE_BGRADB:
            place = get(lt.DESC_BIAS_POINTER, ctypes.c_uint64)
            _numbers(place, result.dtype, columns)[:] = second[0].astype(value.dtype).sum(0)
        aux: Any = None
        if epilogue & lt.EPILOGUE_AUX:
            place = get(lt.DESC_EPILOGUE_AUX_POINTER, ctypes.c_uint64)
            ld = get(lt.DESC_EPILOGUE_AUX_LD, ctypes.c_int64)
            assert len(result) == 1 and ld >= rows
            if epilogue & (lt.EPILOGUE_RELU | 8):
                assert ld % 128 == 0
                aux = _numbers(place, np.dtype("u1"), ld // 8 * columns).reshape(columns, ld // 8)
            else:
                assert ld % 8 == 0
                aux = _numbers(place, result.dtype, ld * columns).reshape(columns, ld)
        if epilogue & lt.EPILOGUE_RELU:
            if aux is not None:
                mask = np.packbits(value[0].T > 0, 1, "little")
                aux[:, : mask.shape[1]] = mask
            value = np.maximum(value, 0)
        elif epilogue & lt.EPILOGUE_GELU:
            if aux is not None:
                aux[:, :rows] = value[0].T
            value = gelu(value)
        elif epilogue & 8:
            value = value * np.unpackbits(aux, 1, bitorder="little")[:, :rows].T
        elif epilogue & 64:
            value = value * gelu_slope(aux[:, :rows].T.astype(np.float64))
        result[...] = value.astype(result.dtype)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x: Any) -> Any:
    bend = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    inner = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
    return 0.5 * (1 + bend) + 0.5 * x * (1 - bend**2) * inner


def _attribute(kind: str, address: int, number: int, type_: Any) -> int:
    value, written = type_(), ctypes.c_size_t()
    get = getattr(lt.library(), f"cublasLt{kind}GetAttribute")
    status = get(address, number, ctypes.byref(value), ctypes.sizeof(value), ctypes.byref(written))
    assert status == 0 and written.value == ctypes.sizeof(value)
    return value.value


def _numbers(address: int, dtype: Any, count: int) -> Any:
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, np.uint8).view(dtype)


def _matrices(address: int, layout: int) -> Any:
    kinds = (ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64,
             ctypes.c_int32, ctypes.c_int64)  # fmt: skip
    code, order, rows, columns, ld, count, stride = (
        _attribute("MatrixLayout", layout, number, kind) for number, kind in enumerate(kinds)
    )
    assert order == 0 and ld >= rows
    dtype = _DTYPES[code]
    size = dtype.itemsize
    flat = _numbers(address, dtype, (count - 1) * stride + (columns - 1) * ld + rows)
    return np.lib.stride_tricks.as_strided(
        flat, (count, rows, columns), (stride * size, size, ld * size)
    )
