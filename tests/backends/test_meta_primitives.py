"""The primitives of the meta device against those of the CPU: shapes and dtypes of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.dtypes import float16, float32, int32
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES, Primitive

CPU, META = backends.load("cpu"), backends.load("meta")
WIDE = [np.dtype(name) for name in ("float64", "float32")]
COMPLEX = [np.dtype("complex64")]
INTEGERS = [np.dtype(name) for name in ("int64", "int32")]
FLOATS = [
    *WIDE,
    np.dtype("float16"),
    next(native for native in CPU.dtypes if native.name == "bfloat16"),
]
BYTES = [np.dtype("uint8")]
TRUTH = [np.dtype(bool)]


class Array:
    """An argument: an array of the dtype under test, or of its own."""

    def __init__(self, *shape: int, dtype: Any = None, values: Any = 1) -> None:
        self.shape, self.dtype, self.values = shape, dtype, values

    def __repr__(self) -> str:
        return f"{self.dtype or ''}{self.shape}"

    def made(self, dtype: Any) -> np.ndarray:
        dtype = np.dtype(self.dtype or dtype)
        return np.broadcast_to(np.asarray(self.values).astype(dtype), self.shape).copy()


def index(*shape: int, dtype: str = "int64") -> Array:
    return Array(*shape, dtype=dtype, values=0)


def mask(*shape: int) -> Array:
    return Array(*shape, dtype="bool")


def matrix(*batch: int) -> Array:
    """Positive definite matrices."""
    return Array(*batch, 3, 3, values=np.eye(3) * 2 + 1)


def call(*args: Any, **kwargs: Any) -> tuple:
    return args, kwargs


X, V, Z, EMPTY, CUBE = Array(3, 4), Array(4), Array(), Array(0, 4), Array(2, 3, 4)
HALF, SINGLE = np.dtype("float16"), np.dtype("float32")
PIVOTS = Array(3, dtype="int32", values=[1, 2, 3])
ALL = slice(None)
ONE = [call(X), call(Z), call(EMPTY)]
ARRAYS = [call(X, V), call(X, X), call(V, Array(3, 1)), call(X, Z), call(Z, Z)]
TWO = [*ARRAYS, call(X, 2), call(X, 2.5), call(2, X), call(0.5, X), call(X, True)]
REDUCED = [
    call(X), call(X, axis=0), call(X, axis=(0, -1)), call(X, axis=1, keepdims=True), call(Z),
    call(X, axis=None, keepdims=True),
]  # fmt: skip
OF_NOTHING = call(Array(2, 0, 3), axis=2)
FOUND = [call(X), call(X, axis=0), call(X, axis=-1, keepdims=True), call(Z)]
ALONG = [call(X, axis=0), call(X, axis=-1), call(EMPTY, axis=1)]
ORDERED = [*ALONG, call(X, axis=0, descending=True)]
SQUARE = [call(matrix()), call(matrix(2)), call(matrix(0))]
RECTANGULAR = [call(Array(3, 2)), call(Array(2, 2, 3))]
MATRICES = [*SQUARE, *RECTANGULAR]
NEW = [call((2, 3)), call(4), call((2,), dtype=np.dtype("int32")), call((), dtype=int32)]
LIKE = [call(X), call(X, dtype=HALF), call(X, dtype=float16)]
LINE = [call(X), call(X, axis=0), call(X, n=5), call(X, n=3, axis=0)]
PLANE = [
    call(X), call(X, axes=(0,)), call(X, s=(2, 3), axes=(0, 1)), call(CUBE, axes=(1, 2))
]  # fmt: skip
FREQUENCIES = [call(5), call(4, d=0.5)]
#: The calls of a primitive; for those that are elementwise the number of operands says them.
CALLS = {
    "astype": [call(X, HALF), call(X, float32), call(X, np.dtype("int64"), copy=True)],
    "copy": ONE,
    "bitcast": [call(X, np.dtype("uint8")), call(Array(3, 8), np.dtype("float64"))],
    "polygamma": [call(X, n=2)],
    "polynomial": [call(X, X, kind="hermite_he")],
    "where": [call(mask(3, 1), X, V), call(mask(4), X, 1.0), call(mask(), 2, V)],
    "clip": [call(X, 0, 1), call(X, V, None), call(X, None, 2), call(X, V, X)],
    "sum": [*REDUCED, OF_NOTHING, call(X, axis=0, dtype=SINGLE), call(X, dtype=float32)],
    **dict.fromkeys(("prod", "mean", "any", "all"), [*REDUCED, OF_NOTHING]),
    **dict.fromkeys(("max", "min"), REDUCED),
    "count_nonzero": [call(X), call(X, axis=0), call(X, axis=1, keepdims=True)],
    "std": REDUCED,
    "var": [*REDUCED, call(X, axis=0, correction=1.0)],
    **dict.fromkeys(("argmax", "argmin"), FOUND),
    "cumulative_sum": [*ALONG, call(X, axis=0, dtype=SINGLE)],
    **dict.fromkeys(
        ("cumulative_prod", "cumulative_max", "cumulative_min", "cumulative_logsumexp"), ALONG
    ),
    **dict.fromkeys(("sort", "argsort"), ORDERED),
    "arg_kth": [call(X, 1, axis=0), call(X, 2, axis=-1)],
    "top_k": [call(X, 2, axis=1, largest=True), call(X, 1, axis=0, largest=False)],
    "diff": [call(X), call(X, axis=0), call(X, n=2), call(X, prepend=X)],
    "matmul": [
        call(X, Array(4, 2)), call(V, V), call(X, V), call(V, Array(4, 2)),
        call(Array(2, 1, 3, 4), Array(5, 4, 2)), call(Array(2, 3, 0), Array(0, 2)),
    ],
    "vecdot": [call(V, V), call(X, V), call(X, X, axis=0)],
    "tensordot": [
        call(X, Array(4, 2), axes=1), call(X, X, axes=2), call(X, X, axes=((0,), (0,))),
        call(CUBE, Array(3, 4, 5)), call(X, V, axes=0),
    ],
    **dict.fromkeys(("cholesky", "eigen", "eigenvalues"), SQUARE),
    **dict.fromkeys(("linalg.det", "linalg.slogdet", "linalg.inv"), SQUARE),
    **dict.fromkeys(("linalg.eigh", "linalg.eigvalsh"), SQUARE),
    **dict.fromkeys(("lu_factor", "geqrf", "singular_values", "linalg.svdvals"), MATRICES),
    **dict.fromkeys(("linalg.pinv", "linalg.matrix_rank"), RECTANGULAR),
    "lu_permutation": [call(PIVOTS, 3), call(index(2, 2, dtype="int32"), 3)],
    "ldl_factor": [call(matrix(), hermitian=False), call(matrix(2), hermitian=True)],
    "linalg.qr": [*RECTANGULAR, call(Array(3, 2), mode="complete")],
    "linalg.svd": [*RECTANGULAR, call(Array(3, 2), full_matrices=False)],
    "solve": [
        call(matrix(), Array(3, 2)), call(matrix(2), Array(3, 2)), call(matrix(), Array(2, 3, 1))
    ],
    "solve_triangular": [call(matrix(), Array(3, 2), upper=True, unitriangular=False)],
    "ldl_solve": [call(matrix(), PIVOTS, Array(3, 2), hermitian=False)],
    **dict.fromkeys(
        ("fft.fft", "fft.ifft", "fft.rfft", "fft.ihfft", "fft.irfft", "fft.hfft"), LINE
    ),
    **dict.fromkeys(("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn"), PLANE),
    **dict.fromkeys(("fft.fftshift", "fft.ifftshift"), [call(X)]),
    **dict.fromkeys(("fft.fftfreq", "fft.rfftfreq"), FREQUENCIES),
    **dict.fromkeys(("real", "imag"), ONE),
    "reshape": [
        call(X, (4, 3)), call(X, (2, -1)), call(X, (-1,)), call(X, 12), call(Z, (1, 1)),
        call(EMPTY, (2, 0)),
    ],
    "permute_dims": [call(X, (1, 0)), call(CUBE, (2, 0, 1))],
    "moveaxis": [call(CUBE, 0, -1), call(CUBE, (0, 1), (1, 2))],
    "matrix_transpose": [call(X), call(CUBE)],
    "expand_dims": [call(X, axis=0), call(X, axis=-1), call(Z, axis=0)],
    "squeeze": [call(Array(1, 3, 1), axis=0), call(Array(1, 3, 1), axis=(0, -1))],
    "broadcast_to": [call(V, (3, 4)), call(Z, (2,)), call(Array(1, 4), (0, 4))],
    "broadcast_arrays": [call(V, Array(3, 1)), call(V, Z)],
    "unstack": [call(X), call(X, axis=-1), call(EMPTY)],
    "as_strided": [call(X, (2, 2), (1, 4), 1), call(X, (), ())],
    "tril": [call(X), call(X, k=1)],
    "triu": [call(X), call(X, k=-1)],
    "roll": [call(X, 1), call(X, (1, 2), axis=(0, 1))],
    "flip": [call(X, axis=0), call(X, axis=(0, 1))],
    "concat": [call([X, Array(2, 4)], axis=0), call([X, X], axis=-1), call([X, V], axis=None)],
    "stack": [call([X, X]), call([X, X], axis=-1)],
    "repeat": [call(X, 2), call(X, 2, axis=0)],
    "tile": [call(X, (2,)), call(X, (2, 1, 3))],
    "meshgrid": [call(V, Array(3)), call(V, Array(3), indexing="ij"), call(V)],
    "getitem": [
        call(X, 1), call(X, (..., 1)), call(X, slice(1, None)), call(X, (None, ALL)),
        call(X, index(2, 2)), call(X, (ALL, index(2))), call(X, (index(2), index(2, 1))),
        call(CUBE, (index(5), ALL, index(5))), call(CUBE, (index(5), 1)),
        call(CUBE, (ALL, index(5), 1)), call(CUBE, (index(5), None, 1)),
        call(CUBE, (..., index(1, 5))), call(CUBE, (0, ALL, index(2))),
    ],
    "take": [
        call(X, index(2, 2), axis=0), call(X, index(3), axis=-1), call(X, index(), axis=0),
        call(V, index(2)),
    ],
    "take_along_axis": [call(X, index(3, 2), axis=1), call(X, index(1, 4), axis=0)],
    "put_along_axis": [call(X, index(3, 4), axis=1, size=6)],
    "write_at": [call(X, index(2), Z)],
    "add_at": [call(X, index(2), Array(2, 4))],
    "combine_at": [call(X, index(2), Array(2, 4), how="maximum")],
    "searchsorted": [call(V, X), call(X, X, side="right")],
    **dict.fromkeys(("empty", "ones", "zeros"), NEW),
    "full": [
        call((2, 3), 1.5), call((2,), 1), call((), True), call((2,), 1, dtype=SINGLE),
        call((2,), Z),
    ],
    **dict.fromkeys(("empty_like", "ones_like", "zeros_like"), LIKE),
    "full_like": [call(X, 1), call(X, 1, dtype=HALF)],
    "asarray": [call(X), call(1.5), call([1, 2]), call([[True]]), call(2, dtype=SINGLE)],
    "arange": [
        call(4), call(1, 6), call(0, 5, 2), call(5, 0, -2), call(3.5), call(0, 1, 0.3),
        call(3, dtype=SINGLE),
    ],
    "linspace": [call(0, 1, 5), call(0.0, 1.0, 3, dtype=SINGLE)],
    "eye": [call(3), call(2, 4), call(2, dtype=SINGLE)],
}  # fmt: skip
#: They give facts and check values; `from_dlpack` takes arrays of other libraries.
ELSEWHERE = {"from_dlpack", *[n for n, r in PRIMITIVES.items() if r.kind is kinds.query]}
BY_VALUES = {n for n, r in PRIMITIVES.items() if r.kind is kinds.data_dependent}


def calls_of(record: Primitive) -> list[tuple]:
    if record.name in CALLS:
        return CALLS[record.name]
    if record.arity == 2:
        takes_numbers = record.standard or record.dtypes != ("floating",)
        return TWO if takes_numbers else ARRAYS
    assert record.arity == 1, f"no calls of {record.name}"
    return ONE


def dtypes_of(record: Primitive) -> list[np.dtype]:
    """Those for which a primitive is defined: ops cast others before."""
    if record.kind in (kinds.matrices, kinds.equations, kinds.transform, kinds.transforms):
        return WIDE + COMPLEX
    if record.name == "frexp" or (record.dtypes == ("floating",) and not record.standard):
        return FLOATS
    if record.name in ("std", "var", "vecdot"):
        return WIDE + COMPLEX
    if record.name == "reciprocal":
        return FLOATS + COMPLEX
    if record.dtypes == ("floating",):
        return FLOATS + COMPLEX + INTEGERS
    numbers = FLOATS + COMPLEX + INTEGERS + BYTES
    is_arithmetic = record.kind is kinds.elementwise and record.dtypes == ("promoted",)
    return numbers if is_arithmetic and "b" not in record.c else numbers + TRUTH


def filled(tree: Any, dtype: np.dtype, backend: Any) -> Any:
    """Arguments with arrays of a dtype on a device."""
    if isinstance(tree, Array):
        return backend.from_host(tree.made(dtype))
    if isinstance(tree, (list, tuple)):
        return type(tree)([filled(item, dtype, backend) for item in tree])
    if isinstance(tree, dict):
        return {key: filled(item, dtype, backend) for key, item in tree.items()}
    return tree


def called(name: str, arguments: tuple, dtype: np.dtype, backend: Any) -> Any:
    """Shapes and dtypes of the results."""
    room, _, own = name.rpartition(".")
    function = getattr(getattr(backend.F, room), own) if room else backend.F.primitive(own)
    args, kwargs = filled(arguments, dtype, backend)
    return geometry(function(*args, **kwargs))


def geometry(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [geometry(item) for item in value]
    return None if value is None else (tuple(value.shape), value.dtype.name)


@pytest.mark.parametrize("name", sorted(PRIMITIVES.keys() - ELSEWHERE - BY_VALUES))
def test_results(name: str) -> None:
    record = PRIMITIVES[name]
    served = 0
    for dtype in dtypes_of(record):
        for arguments in calls_of(record):
            try:
                with np.errstate(all="ignore"):
                    expected = called(name, arguments, dtype, CPU)
            except Exception:
                continue  # of a dtype that it does not serve
            served += 1
            assert called(name, arguments, dtype, META) == expected, (arguments, dtype)
    assert served


@pytest.mark.parametrize("name", sorted(BY_VALUES))
def test_results_of_unknown_shape(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"aten::{name}: attempted to run"):
        called(name, call(X), np.dtype("int64"), META)
