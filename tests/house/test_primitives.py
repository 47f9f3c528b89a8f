"""Records of primitives: each says all that is asked of it, and backends implement each."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy import primitives
from tensorflow_lite_clone.dispatch import kinds, table
from tensorflow_lite_clone.dispatch.op import OF_PRIMITIVES, TABLE, _signature, is_op
from tensorflow_lite_clone.dispatch.primitives import CONSTANTS, DTYPES, PRIMITIVES
from tensorflow_lite_clone.dispatch.table import override


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_record_is_complete(name):
    record = PRIMITIVES[name]
    assert set(record.dtypes) <= set(DTYPES)
    assert callable(record.shapes) and callable(record.flops)
    assert set(record.c) <= set("fiub")
    if record.kind is kinds.elementwise and record.dtypes != ("named",) and name != "copy":
        assert record.arity
    assert len(record.fields) in (0, len(record.dtypes))
    # What the standard does not say is said here, or by the record of a neighbour.
    assert record.standard or record.document or record.arity or name in ("eigenvalues",)


#: Elementwise primitives that no fused kernel has, and why.
NOT_FUSED = {
    "what fused kernels do to their operands: they see `astype`, `clip`, `sgn` and the like": """
        astype bitcast clip conj copy positive sgn
    """,
    "CUDA C++ has no such function": """
        airy_ai digamma gcd i0e i1e igamma igammac k0 k0e k1 k1e lcm log_ndtr logaddexp2 polygamma
        polynomial zeta
    """,
    "CUDA C++ has one, which nobody has held against the backend's yet": """
        erfcx i0 i1 j0 j1 ndtri nextafter y0 y1
    """,
    "two results, or complex ones": "frexp make_complex",
}


def test_an_elementwise_primitive_is_fused_or_has_a_reason():
    elementwise = {name for name, each in PRIMITIVES.items() if each.kind is kinds.elementwise}
    reasons = [name for names in NOT_FUSED.values() for name in names.split()]
    assert sorted(reasons) == sorted(name for name in elementwise if not PRIMITIVES[name].c)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_the_cpu_implements_a_primitive(name):
    room, _, own = name.rpartition(".")
    F = backends.load("cpu").F
    assert callable(getattr(getattr(F, room) if room else F, own))


def test_numpy_primitives_have_records():
    names = {
        name
        for name, value in vars(primitives).items()
        if callable(value) and not name.startswith("_") and value.__module__ != "typing"
    }
    assert names - {"implemented", "DType"} <= PRIMITIVES.keys() | CONSTANTS


def test_ops_that_are_primitives_call_nothing_else():
    """An op with `primitive` is one call of that primitive, with its own arguments."""

    class Namespace:
        def __init__(self, room=""):
            self.room = room

        def __getattr__(self, name):
            if name in ("linalg", "fft"):
                return Namespace(f"{name}.")
            return lambda *arrays, **parameters: [self.room + name, arrays, parameters]

    found = set()
    for op in TABLE.values():
        if not is_op(op) or op.view:
            continue
        parameters = {name: name for name in _signature(op.forward, 1)[1]}
        try:
            called = op.forward(Namespace(), *op.inputs, **parameters)
        except Exception:  # it does more than to call something
            called = None
        is_one = isinstance(called, list) and called[0] in list(PRIMITIVES)
        is_one = is_one and called[1:] == [op.inputs, parameters]
        assert op.primitive == (called[0] if is_one else None), op.name
        found |= {op.primitive}
    assert len(found) > 100
    assert OF_PRIMITIVES.keys() == found - {None}


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("exp", lambda x: x.exp()),
        ("exp", lambda x: x.sigmoid()),
        ("multiply", lambda x: x * 3),
        ("isnan", lambda x: x.nansum()),
        ("matmul", lambda x: tlc.linalg.matrix_exp(x)),
        ("solve", lambda x: tlc.linalg.inv(x).sum()),
        ("tril", lambda x: tlc.linalg.lu(x)),
        ("top_k", lambda x: x.topk(1)),
    ],
)
def test_an_override_reaches_functions_and_formulas(name, call):
    """Also one of a primitive that no op is, or that has another name among ops."""
    asked = []

    def own(F, *arrays, **parameters):
        asked.append(name)
        return NotImplemented

    x = tlc.rand(3, 3)
    expected = call(x)
    before = dict(table.overrides)
    override(name, "numpy")(own)
    try:
        found = call(x)
    finally:
        for key in table.overrides.keys() - before.keys():
            del table.overrides[key]
        override("no such op", "numpy")(own)  # everything is looked up anew
        del table.overrides["no such op", "numpy"]
    assert asked
    pairs = zip(found, expected) if isinstance(found, tuple) else [(found, expected)]
    assert all([tlc.equal(one, other) for one, other in pairs])
