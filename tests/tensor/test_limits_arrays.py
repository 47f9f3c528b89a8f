"""`finfo`, `iinfo`, `promote_types`; tensors of NumPy's arrays, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from parameterized import parameterized

from tests.autograd.against_torch import attempt, raises, same
from tests.device import DEVICE

DTYPES = """bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64
complex128""".split()
KINDS = ("",)  # exceptions are compared by type alone


# -- limits ----------------------------------------------------------------------------------------


@parameterized.expand([(dtype,) for dtype in DTYPES])
def test_limits(dtype):
    def script(lib):
        kind = getattr(lib, dtype)
        seen = [kind.is_floating_point, kind.is_complex, kind.is_signed, kind.itemsize, str(kind)]
        seen += [kind.to_real() if kind.is_complex or kind.is_floating_point else None]
        for make, names in (
            (lib.finfo, "bits eps max min tiny smallest_normal resolution dtype"),
            (lib.iinfo, "bits max min dtype"),
        ):
            limits = attempt(make, kind)
            if isinstance(limits, Exception):
                seen.append(limits)
            else:
                seen += [getattr(limits, name) for name in names.split()]
                seen.append(repr(limits))
        return seen

    same(
        script,
        words=(
            "requires a floating point input type",
            "requires an integer input type",
            "is not supported by torch.iinfo",
        ),
        rtol=1e-12,
    )


def test_promotion_functions():
    def script(lib):
        kinds = [getattr(lib, dtype) for dtype in DTYPES]
        return [(lib.promote_types(a, b), lib.can_cast(a, b)) for a in kinds for b in kinds]

    same(script)


# -- NumPy -----------------------------------------------------------------------------------------


@pytest.mark.skipif(DEVICE != "cpu", reason="host memory is shared on the CPU alone")
def test_from_numpy_shares_memory():
    def script(lib):
        array = np.arange(6.0).reshape(2, 3)
        x = lib.from_numpy(array)
        x[0, 0] = 100
        array[1, 2] = 200
        y = lib.as_tensor(array)
        y += 1
        z = lib.tensor(array)
        z[0] = -1
        w = lib.asarray(array)
        w *= 2
        v = lib.from_numpy(array.T[::2])
        v[0, 0] = 7
        return array, x, v, v.stride(), lib.asarray(array, copy=True) is None, x.is_contiguous()

    same(script)


def test_from_numpy_is_refused():
    for make in (
        lambda: np.arange(3)[::-1],
        lambda: [1, 2],
        lambda: np.float64(1.0),
        lambda: np.array(["a"]),
        lambda: np.array([object()]),
        lambda: np.arange(3).astype(">i4"),
        lambda: np.zeros(3, dtype="datetime64[s]"),
    ):
        raises(
            lambda lib, make=make: lib.from_numpy(make()),
            "negative",
            "expected np.ndarray (got",
            "can't convert np.ndarray of type",
            "byte order",
        )


@parameterized.expand(
    [
        ("negative strides", lambda: np.arange(6).reshape(2, 3)[:, ::-1]),
        ("steps", lambda: np.arange(10)[::3]),
        ("transposed", lambda: np.arange(6.0).reshape(2, 3).T),
        ("broadcast", lambda: np.broadcast_to(np.arange(3.0), (2, 3))),
        ("fortran", lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3))),
        ("zero-dim", lambda: np.array(3.0)),
        ("empty", lambda: np.zeros((0, 2))),
        ("structured", lambda: np.zeros(2, dtype=[("a", "i4")])),
        ("big-endian", lambda: np.arange(3).astype(">f4")),
        ("uint16", lambda: np.arange(3, dtype=np.uint16)),
        ("longdouble", lambda: np.arange(3, dtype=np.longdouble)),
        ("record field", lambda: np.zeros(3, dtype=[("a", "i4"), ("b", "i4")])["b"]),
    ]
)
def test_arrays(name, make):
    def script(lib):
        return attempt(lib.tensor, make()), attempt(lib.as_tensor, make())

    if name != "uint16":  # PyTorch's shell dtypes uint16, uint32 and uint64 are not served
        same(
            script,
            words=("negative", "can't convert np.ndarray of type", "byte order", "type"),
            warned=False,
        )


def test_subclasses_of_sequences_and_arrays():
    def script(lib):
        class Rows(list):
            pass

        class Sized:
            def __len__(self):
                return 2

            def __getitem__(self, i):
                if i > 1:
                    raise IndexError
                return i + 0.5

        return (
            lib.tensor(Rows([1, 2])),
            lib.tensor(Sized()),
            lib.tensor(np.matrix([[1, 2]])),
            lib.tensor(np.ma.array([1.0, 2.0])),
        )

    same(script, words=KINDS, warned=False)
