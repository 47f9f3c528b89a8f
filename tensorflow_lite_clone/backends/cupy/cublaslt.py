"""cuBLASLt through ctypes: the functions that matrix products need, and their constants.

CuPy refuses cuBLAS while a stream is captured; cuBLASLt takes everything it needs as arguments, so
that a captured product is a kernel like any other. Numbers are those of cublasLt.h, cublas_api.h
and library_types.h, which do not change between versions 12 and 13.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from functools import cache
from typing import Any

from cuda import pathfinder

# cudaDataType
R_32F, R_64F, R_16F, C_32F, C_64F, R_16BF = 0, 1, 2, 4, 5, 14
# cublasComputeType_t
COMPUTE_32F, COMPUTE_64F, COMPUTE_32F_FAST_TF32 = 68, 70, 77
# cublasOperation_t
OP_N, OP_T = 0, 1
# cublasLtMatmulDescAttributes_t
DESC_TRANSA, DESC_TRANSB, DESC_EPILOGUE, DESC_BIAS_POINTER = 3, 4, 7, 8
DESC_EPILOGUE_AUX_POINTER, DESC_EPILOGUE_AUX_LD = 11, 12
# cublasLtMatrixLayoutAttribute_t
LAYOUT_BATCH_COUNT, LAYOUT_STRIDED_BATCH_OFFSET = 5, 6
# cublasLtMatmulPreferenceAttributes_t
PREF_MAX_WORKSPACE_BYTES, PREF_REDUCTION_SCHEME_MASK = 1, 3
PREF_MIN_ALIGNMENT_BYTES = (5, 6, 7, 8)  # of the matrices A, B, C, D
# cublasLtReductionScheme_t: partial sums stay in the type they are computed in
REDUCTION_SCHEME_COMPUTE_TYPE = 2
# cublasLtEpilogue_t
EPILOGUE_DEFAULT, EPILOGUE_RELU, EPILOGUE_BIAS, EPILOGUE_GELU = 1, 2, 4, 32
EPILOGUE_AUX = 128  # beside RELU and GELU: keep what the gradient needs
EPILOGUE_DRELU, EPILOGUE_DGELU = 8 | 128, 64 | 128
EPILOGUE_BGRADB = 512
# cublasStatus_t
SUCCESS, NOT_SUPPORTED = 0, 15


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t; the algorithm stands first, so both have one address."""

    _fields_ = (
        ("algo", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


_MATMUL = (
    c_void_p,  # handle
    c_void_p,  # operation
    c_void_p,  # alpha, on the host
    *(c_void_p, c_void_p) * 2,  # A, B and their layouts
    c_void_p,  # beta, on the host
    *(c_void_p, c_void_p) * 2,  # C, D and their layouts
    c_void_p,  # algorithm
    c_void_p,  # workspace
    c_size_t,
    c_void_p,  # stream
)
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (POINTER(c_void_p),),
    "cublasLtMatmul": _MATMUL,
    "cublasLtMatmulAlgoGetHeuristic": (
        *(c_void_p,) * 7,  # handle, operation, layouts of A, B, C, D, preference
        c_int,
        POINTER(Heuristic),
        POINTER(c_int),
    ),
    "cublasLtMatmulDescCreate": (POINTER(c_void_p), c_int, c_int),
    "cublasLtMatmulDescDestroy": (c_void_p,),
    "cublasLtMatmulDescSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulDescGetAttribute": (c_void_p, c_int, c_void_p, c_size_t, POINTER(c_size_t)),
    "cublasLtMatrixLayoutCreate": (POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutDestroy": (c_void_p,),
    "cublasLtMatrixLayoutSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatrixLayoutGetAttribute": (c_void_p, c_int, c_void_p, c_size_t, POINTER(c_size_t)),
    "cublasLtMatmulPreferenceCreate": (POINTER(c_void_p),),
    "cublasLtMatmulPreferenceDestroy": (c_void_p,),
    "cublasLtMatmulPreferenceSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
}


@cache
def library() -> Any:
    """The library with its functions declared; ImportError when it cannot be found."""
    try:
        path = pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path
    except pathfinder.DynamicLibNotFoundError as error:
        raise ImportError(
            "matrix products on CUDA devices need NVIDIA's cuBLASLt, which is not installed: "
            'pip install "cupy-cuda12x[ctk]" brings it, or nvidia-cublas-cu12 alone (with CUDA 13: '
            '"cupy-cuda13x[ctk]", or nvidia-cublas)'
        ) from error
    loaded = ctypes.CDLL(path)
    for name, arguments in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.argtypes = arguments
        function.restype = c_int
    loaded.cublasLtGetStatusName.argtypes = (c_int,)
    loaded.cublasLtGetStatusName.restype = ctypes.c_char_p
    loaded.cublasLtGetVersion.argtypes = ()
    loaded.cublasLtGetVersion.restype = c_size_t
    return loaded


def status_name(status: int) -> str:
    """CUBLAS_STATUS_..., as the library calls it."""
    return library().cublasLtGetStatusName(status).decode()


def check(status: int, what: str) -> None:
    """RuntimeError unless a call succeeded."""
    if status:
        raise RuntimeError(f"cuBLASLt: {what} failed with {status_name(status)}")


class Descriptor:
    """One of the library's opaque objects, destroyed with this one."""

    __slots__ = ("_destroy", "_set", "address", "kind")

    def __init__(self, kind: str, *arguments: int) -> None:
        self._destroy: Any = None
        self.kind = kind
        lib = library()
        made = c_void_p()
        check(getattr(lib, f"cublasLt{kind}Create")(byref(made), *arguments), f"{kind}Create")
        self.address = made.value
        self._destroy = getattr(lib, f"cublasLt{kind}Destroy")
        self._set = getattr(lib, f"cublasLt{kind}SetAttribute")

    def set(self, attribute: int, value: Any) -> None:
        """Set an attribute to a ctypes object of exactly the attribute's size."""
        status = self._set(self.address, attribute, byref(value), ctypes.sizeof(value))
        check(status, f"{self.kind}SetAttribute({attribute}, {value.value})")

    def __del__(self) -> None:
        if self._destroy is not None:
            self._destroy(self.address)


def matrix(data_type: int, rows: int, columns: int, ld: int, count: int, stride: int) -> Descriptor:
    """The layout of `count` column-major matrices, `stride` elements apart, columns `ld` apart."""
    layout = Descriptor("MatrixLayout", data_type, rows, columns, ld)
    if count != 1:
        layout.set(LAYOUT_BATCH_COUNT, ctypes.c_int32(count))
        layout.set(LAYOUT_STRIDED_BATCH_OFFSET, c_int64(stride))
    return layout


def make_handle() -> int:
    """A handle of the current device."""
    made = c_void_p()
    check(library().cublasLtCreate(byref(made)), "cublasLtCreate")
    assert made.value is not None
    return made.value


_MOST_ANSWERS = 4  # algorithms that are asked for


def heuristics(
    handle: int,
    operation: Descriptor,
    layouts: tuple[Descriptor, Descriptor, Descriptor, Descriptor],
    *,
    workspace: int,
    alignment: int,
    exact_sums: bool,
) -> tuple[int, list[Heuristic]]:
    """The status of the question which algorithms are best, and the answers, best first.

    `alignment` is a power of two up to 256 that divides the addresses of all matrices.
    `exact_sums` leaves out algorithms that keep partial sums in the output's type.
    """
    preference = Descriptor("MatmulPreference")
    preference.set(PREF_MAX_WORKSPACE_BYTES, c_uint64(workspace))
    for attribute in PREF_MIN_ALIGNMENT_BYTES:
        preference.set(attribute, ctypes.c_uint32(alignment))
    if exact_sums:
        preference.set(PREF_REDUCTION_SCHEME_MASK, ctypes.c_uint32(REDUCTION_SCHEME_COMPUTE_TYPE))
    answers = (Heuristic * _MOST_ANSWERS)()
    count = c_int(0)
    status = library().cublasLtMatmulAlgoGetHeuristic(
        handle,
        operation.address,
        *[layout.address for layout in layouts],
        preference.address,
        _MOST_ANSWERS,
        answers,
        byref(count),
    )
    if status:
        return status, []
    return status, [answer for answer in answers[: count.value] if answer.state == SUCCESS]
