"""The primitives of the meta device against those of the CPU: shapes and dtypes of results."""

from __future__ import annotations

import numpy as np
import pytest

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core.dtypes import float16, float32, int32
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES

CPU, META = backends.load("cpu"), backends.load("meta")
BFLOAT16 = next(native for native in CPU.dtypes if native.name == "bfloat16")
DTYPES = [np.dtype(n) for n in ("float64", "float32", "float16", "complex64", "int64", "int32", "uint8", "bool")] + [BFLOAT16]


def ones(*shape):
    """Makes an array of ones of a dtype: a placeholder among arguments."""
    return lambda dtype: np.ones(shape, dtype)


def indices(*shape, dtype="int64"):
    return lambda _: np.zeros(shape, dtype)


def matrix(*batch, n=3):
    """Positive definite matrices."""
    return lambda dtype: np.broadcast_to(np.eye(n) * 2 + 0.25, (*batch, n, n)).astype(dtype)


def call(*args, **kwargs):
    return args, kwargs


X, V, Z, E = ones(3, 4), ones(4), ones(), ones(0, 4)
REDUCTIONS = [
    call(X), call(X, axis=0), call(X, axis=(0, -1)), call(X, axis=1, keepdims=True), call(Z),
    call(X, axis=None, keepdims=True), call(ones(2, 0, 3), axis=2),
]  # fmt: skip
SAME = [call(X), call(Z), call(E)]
EXTREME = [call(X), call(X, axis=0), call(X, axis=-1, keepdims=True), call(Z)]
ALONG = [call(X, axis=0), call(X, axis=-1), call(E, axis=1)]
SQUARE = [call(matrix()), call(matrix(2)), call(matrix(0))]
RECTANGULAR = [call(ones(3, 2)), call(ones(2, 2, 3))]
LIKE = [call(X), call(X, dtype=np.dtype("float16")), call(X, dtype=float16)]
NEW = [call((2, 3)), call(4), call((2,), dtype=np.dtype("int32")), call((), dtype=int32)]
LINES = [call(X), call(X, axis=0), call(X, n=5), call(X, n=3, axis=0)]
PLANES = [call(X), call(X, axes=(0,)), call(X, s=(2, 3), axes=(0, 1)), call(ones(2, 3, 4), axes=(1, 2))]
#: Beside those of elementwise primitives, which their arity says.
CALLS = {
    "sum": [*REDUCTIONS, call(X, axis=0, dtype=np.dtype("float32")), call(X, dtype=float32)],
    "prod": REDUCTIONS,
    "mean": REDUCTIONS,
    "max": REDUCTIONS[:-1],
    "min": REDUCTIONS[:-1],
    "any": REDUCTIONS,
    "all": REDUCTIONS,
    "count_nonzero": [call(X), call(X, axis=0), call(X, axis=1, keepdims=True)],
    "std": REDUCTIONS[:5],
    "var": [*REDUCTIONS[:5], call(X, axis=0, correction=1.0)],
    "argmax": EXTREME,
    "argmin": EXTREME,
    "cumulative_sum": [*ALONG, call(X, axis=0, dtype=np.dtype("float32"))],
    "cumulative_prod": ALONG,
    "cumulative_max": ALONG,
    "cumulative_min": ALONG,
    "cumulative_logsumexp": ALONG,
    "sort": [*ALONG, call(X, axis=0, descending=True)],
    "argsort": [*ALONG, call(X, axis=0, descending=True)],
    "arg_kth": [call(X, 1, axis=0), call(X, 2, axis=-1)],
    "top_k": [call(X, 2, axis=1, largest=True), call(X, 1, axis=0, largest=False)],
    "diff": [call(X), call(X, axis=0), call(X, n=2), call(X, prepend=X)],
    "matmul": [
        call(X, ones(4, 2)), call(V, V), call(X, V), call(V, ones(4, 2)),
        call(ones(2, 1, 3, 4), ones(5, 4, 2)), call(ones(2, 3, 0), ones(0, 2)),
    ],
    "vecdot": [call(V, V), call(X, V), call(X, X, axis=0)],
    "tensordot": [
        call(X, ones(4, 2), axes=1), call(X, X, axes=2), call(X, X, axes=((0,), (0,))),
        call(ones(2, 3, 4), ones(3, 4, 5)), call(X, V, axes=0),
    ],
    "cholesky": SQUARE,
    "lu_factor": [*SQUARE, *RECTANGULAR],
    "lu_permutation": [call(lambda _: np.array([1, 2], "int32"), 3), call(lambda _: np.array([[1, 2]] * 2, "int32"), 3)],
    "ldl_factor": [call(matrix(), hermitian=False), call(matrix(2), hermitian=True)],
    "eigen": SQUARE,
    "eigenvalues": SQUARE,
    "geqrf": [*SQUARE, *RECTANGULAR],
    "singular_values": [*SQUARE, *RECTANGULAR],
    "linalg.det": SQUARE,
    "linalg.slogdet": SQUARE,
    "linalg.inv": SQUARE,
    "linalg.pinv": RECTANGULAR,
    "linalg.matrix_rank": RECTANGULAR,
    "linalg.eigh": SQUARE,
    "linalg.eigvalsh": SQUARE,
    "linalg.qr": [*RECTANGULAR, *[call(*args, mode="complete") for args, _ in RECTANGULAR]],
    "linalg.svd": [*RECTANGULAR, *[call(*args, full_matrices=False) for args, _ in RECTANGULAR]],
    "linalg.svdvals": RECTANGULAR,
    "solve": [call(matrix(), ones(3, 2)), call(matrix(2), ones(3, 2)), call(matrix(), ones(2, 3, 1))],
    "solve_triangular": [call(matrix(), ones(3, 2), upper=True, unitriangular=False)],
    "ldl_solve": [call(matrix(), lambda _: np.array([1, 2, 3], "int32"), ones(3, 2), hermitian=False)],
    **dict.fromkeys(("fft.fft", "fft.ifft", "fft.rfft", "fft.ihfft", "fft.irfft", "fft.hfft"), LINES),
    **dict.fromkeys(("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn"), PLANES),
    "fft.fftshift": SAME[:1],
    "fft.ifftshift": SAME[:1],
    "fft.fftfreq": [call(5), call(4, d=0.5)],
    "fft.rfftfreq": [call(5), call(4, d=0.5)],
    "real": SAME,
    "imag": SAME,
    "reshape": [call(X, (4, 3)), call(X, (2, -1)), call(X, (-1,)), call(X, 12), call(Z, (1, 1)), call(E, (2, 0))],
    "permute_dims": [call(X, (1, 0)), call(ones(2, 3, 4), (2, 0, 1))],
    "moveaxis": [call(ones(2, 3, 4), 0, -1), call(ones(2, 3, 4), (0, 1), (1, 2))],
    "matrix_transpose": [call(X), call(ones(2, 3, 4))],
    "expand_dims": [call(X, axis=0), call(X, axis=-1), call(Z, axis=0)],
    "squeeze": [call(ones(1, 3, 1), axis=0), call(ones(1, 3, 1), axis=(0, -1))],
    "broadcast_to": [call(V, (3, 4)), call(Z, (2,)), call(ones(1, 4), (0, 4))],
    "broadcast_arrays": [call(V, ones(3, 1)), call(V, Z)],
    "unstack": [call(X), call(X, axis=-1), call(E)],
    "as_strided": [call(X, (2, 2), (1, 4), 1), call(X, (), ())],
    "tril": [call(X), call(X, k=1)],
    "triu": [call(X), call(X, k=-1)],
    "roll": [call(X, 1), call(X, (1, 2), axis=(0, 1))],
    "flip": [call(X, axis=0), call(X, axis=(0, 1))],
    "concat": [call([X, ones(2, 4)], axis=0), call([X, X], axis=-1), call([X, V], axis=None)],
    "stack": [call([X, X]), call([X, X], axis=-1)],
    "repeat": [call(X, 2), call(X, 2, axis=0)],
    "tile": [call(X, (2,)), call(X, (2, 1, 3))],
    "meshgrid": [call(V, ones(3)), call(V, ones(3), indexing="ij"), call(V)],
    "getitem": [
        call(X, 1), call(X, (..., 1)), call(X, slice(1, None)), call(X, (None, slice(None, None, 2))),
        call(X, indices(2, 2)), call(X, (slice(None), indices(2))), call(X, (indices(2), indices(2, 1))),
        call(ones(2, 3, 4), (indices(5), slice(None), indices(5))), call(ones(2, 3, 4), (indices(5), 1)),
        call(ones(2, 3, 4), (slice(None), indices(5), 1)), call(ones(2, 3, 4), (indices(5), None, 1)),
        call(ones(2, 3, 4), (..., indices(1, 5))), call(ones(2, 3, 4), (0, slice(None), indices(2))),
    ],
    "take": [call(X, indices(2, 2), axis=0), call(X, indices(3), axis=-1), call(X, indices(), axis=0), call(V, indices(2))],
    "take_along_axis": [call(X, indices(3, 2), axis=1), call(X, indices(1, 4), axis=0)],
    "put_along_axis": [call(X, indices(3, 4), axis=1, size=6)],
    "write_at": [call(X, indices(2), Z)],
    "add_at": [call(X, indices(2), ones(2, 4))],
    "combine_at": [call(X, indices(2), ones(2, 4), how="maximum")],
    "searchsorted": [call(V, X), call(X, X, side="right")],
    **dict.fromkeys(("empty", "ones", "zeros"), NEW),
    "full": [call((2, 3), 1.5), call((2,), 1), call((), True), call((2,), 1, dtype=np.dtype("float32")), call((2,), Z)],
    **dict.fromkeys(("empty_like", "ones_like", "zeros_like"), LIKE),
    "full_like": [call(X, 1), call(X, 1, dtype=np.dtype("float16"))],
    "asarray": [call(X), call(1.5), call([1, 2]), call([[True]]), call(2, dtype=np.dtype("float32"))],
    "arange": [call(4), call(1, 6), call(0, 5, 2), call(5, 0, -2), call(3.5), call(0, 1, 0.3), call(3, dtype=np.dtype("float32"))],
    "linspace": [call(0, 1, 5), call(0.0, 1.0, 3, dtype=np.dtype("float32"))],
    "eye": [call(3), call(2, 4), call(2, dtype=np.dtype("float32"))],
    "astype": [call(X, np.dtype("float16")), call(X, float32), call(X, np.dtype("int64"), copy=True)],
    "copy": SAME,
    "bitcast": [call(X, np.dtype("uint8")), call(ones(3, 8), np.dtype("float64"))],
    "polygamma": [call(X, n=2)],
    "polynomial": [call(X, ones(3, 4), kind="hermite_he")],
    "where": [call(lambda _: np.ones((3, 1), bool), X, V), call(lambda _: np.ones(4, bool), X, 1.0), call(lambda _: np.True_.reshape(()), 2, V)],
    "clip": [call(X, 0, 1), call(X, V, None), call(X, None, 2), call(X, V, X)],
}
VALUES = {
    name: kinds.data_dependent for name, record in PRIMITIVES.items() if record.kind is kinds.data_dependent
}


def calls_of(record):
    if record.name in CALLS:
        return CALLS[record.name]
    if record.arity == 1:
        return SAME
    if record.arity == 2 and record.dtypes == ("floating",) and not record.standard:
        return [call(X, V), call(X, X), call(V, ones(3, 1)), call(Z, Z)]
    if record.arity == 2:
        return [call(X, V), call(X, X), call(V, ones(3, 1)), call(X, 2), call(X, 2.5), call(2, X), call(0.5, X), call(X, True), call(Z, Z), call(X, Z)]
    raise LookupError(record.name)


def dtypes_of(record):
    """Those for which a primitive is defined: ops cast others before."""
    rules = record.dtypes
    floats = DTYPES[:3] + [BFLOAT16]
    if record.kind in (kinds.matrices, kinds.equations):
        return DTYPES[:2] + DTYPES[3:4]
    if record.kind in (kinds.transform, kinds.transforms):
        return DTYPES[:2] + DTYPES[3:4]
    if record.name == "frexp" or (rules == ("floating",) and not record.standard):
        return floats
    if record.name in ("std", "var", "vecdot"):
        return DTYPES[:4]
    if rules == ("floating",):
        return floats + DTYPES[3:6] * (record.name != "reciprocal")
    if record.kind is kinds.elementwise and rules == ("promoted",) and "b" not in record.c:
        return [dtype for dtype in DTYPES if dtype.kind != "b"]
    return DTYPES


def filled(tree, dtype, number):
    """Arguments with arrays of `dtype` for the functions that make them."""
    if isinstance(tree, (list, tuple)):
        return type(tree)([filled(item, dtype, number) for item in tree])
    if isinstance(tree, dict):
        return {key: filled(item, dtype, number) for key, item in tree.items()}
    return number(tree(dtype)) if type(tree) is type(call) else tree


def geometry(value):
    if isinstance(value, (tuple, list)):
        return [geometry(item) for item in value]
    return None if value is None else (tuple(value.shape), value.dtype.name)


def member(F, name):
    room, _, own = name.rpartition(".")
    return getattr(getattr(F, room) if room else F, own)


@pytest.mark.parametrize("name", [n for n, r in PRIMITIVES.items() if r.kind not in (kinds.query, kinds.data_dependent) and n != "from_dlpack"])
def test_shapes_and_dtypes_of_results(name):
    record = PRIMITIVES[name]
    served, differences = 0, []
    for dtype in dtypes_of(record):
        for args, kwargs in calls_of(record):
            with np.errstate(all="ignore"):
                try:
                    args_, kwargs_ = filled((args, kwargs), dtype, np.asarray)
                    expected = CPU.F.primitive(name)(*args_, **kwargs_) if "." not in name else member(CPU.F, name)(*args_, **kwargs_)
                except Exception:
                    continue  # of a dtype that it does not serve
            served += 1
            args_, kwargs_ = filled((args, kwargs), dtype, META.from_host)
            try:
                found = geometry(member(META.F, name)(*args_, **kwargs_))
            except Exception as e:
                found = repr(e)
            if found != geometry(expected):
                differences.append((dtype.name, str(filled((args, kwargs), dtype, lambda a: a.shape)), geometry(expected), found))
    assert served
    assert not differences, "\n".join(map(str, differences))
