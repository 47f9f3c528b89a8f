"""uint16, uint32 and uint64: the little that PyTorch does with them, and what is more here."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import raises, same

DTYPES = ("uint16", "uint32", "uint64")
EXPRESSIONS = """
    dtype, dtype.is_signed, dtype.itemsize, dtype.is_floating_point, lib.iinfo(dtype).bits
    u, u * u, u == 1, u != u, u.float(), u.long(), u.bool(), u.double() * 0.5
    lib.tensor([70000]).to(dtype), lib.tensor([-1]).to(dtype).long(), u[0].item(), u.tolist()
    lib.zeros(2, dtype=dtype), lib.ones(2, dtype=dtype).sum(), lib.cat([u, u]), u & 1, u | 4, u ^ u
    lib.promote_types(dtype, dtype), lib.promote_types(lib.float32, dtype), u * 0.5, u * f
    u.clone(), u[1:], u.reshape(2, 1), u.expand(2, 2), u.element_size(), u.nbytes, u.type()
    u.numpy().dtype.name, lib.from_numpy(np.array([1, 2], dtype.__repr__()[6:])), u.fill_(7)
    str(lib.iinfo(dtype).max), lib.iinfo(dtype).min, lib.can_cast(dtype, lib.int8), u.contiguous()
    lib.full((2,), 3, dtype=dtype), lib.empty(2, dtype=dtype).zero_(), u.to(lib.uint8)
"""
ERRORS = [
    "lib.promote_types(dtype, lib.int32)",
    "lib.promote_types(lib.bool, dtype)",
]


def script(expression, name):
    def run(lib):
        dtype = getattr(lib, name)
        u = lib.tensor([1, 2], dtype=dtype)
        scope = {"lib": lib, "dtype": dtype, "u": u, "np": np, "f": lib.tensor([0.5, 2.0])}
        return eval(expression, scope)

    return run


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("expression", [e.strip() for e in EXPRESSIONS.strip().splitlines()])
def test_values(name, expression):
    same(script(f"[{expression}]", name))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("expression", ERRORS)
def test_no_promotion(name, expression):
    raises(script(expression, name))


@pytest.mark.parametrize("other", ["bool", "uint8", "uint64", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", DTYPES)
def test_operators_promote_as_the_standard_says(name, other):
    """Where PyTorch raises; NumPy's rule for two integers is the standard's."""
    x, y = np.array([3, 250], dtype=name), np.array([1, 2], dtype=other)
    u, v = tlc.tensor([3, 250], dtype=getattr(tlc, name)), tlc.tensor(y)
    if name == "uint64" and other.startswith("int"):
        with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types"):
            u + v
        return
    for call in (
        lambda a, b: a + b, lambda a, b: b * a, lambda a, b: a == b, lambda a, b: b < a,
        lambda a, b: a | b, lambda a, b: b ^ a,
    ):  # fmt: skip
        mine, right = call(u, v), call(x, y)
        assert mine.dtype is getattr(tlc, right.dtype.name) and mine.tolist() == right.tolist()
    assert tlc.result_type(u, v) is (u + v).dtype


@pytest.mark.parametrize("name", DTYPES)
def test_pickle(name):
    x = tlc.tensor([1, 2], dtype=getattr(tlc, name))
    copy = pickle.loads(pickle.dumps(x))
    assert copy.dtype is x.dtype and copy.tolist() == [1, 2]
