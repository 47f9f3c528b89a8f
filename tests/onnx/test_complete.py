"""Every op has a rule, or a formula that rules write, or a reason why it has neither."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.op import TABLE, Op, _names, is_op
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.onnx._formula import NO_FORM, Namespace
from tensorflow_lite_clone.onnx._graph import RULES
from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise
from tests.onnx.run import session

#: Ops without a rule whose formulas call nothing that has no form, and are neither element by
#: element nor made of reductions.
WRITTEN = {
    "products of rolled operands": "linalg_cross",
    "of real numbers the identity": "real",
    "what was drawn outside of an op is a constant": """
        sampled binomial standard_gamma sample_dirichlet attention_noise dropout_backward
    """,
    "gradients alone apply it": "stepwise check_phases lobpcg",
}


def functions(function: Any) -> list[Any]:
    """A function and those that it wraps."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    inner = [f for cell in cells if isinstance(cell, FunctionType) for f in functions(cell)]
    return [function, *inner]


def named(formula: Callable[..., Any], seen: set[Any]) -> set[str]:
    """What a formula names, and what the formulas name that it calls, but for ops with rules."""
    found: set[str] = set()
    for function in functions(formula):
        if function in seen:
            continue
        seen.add(function)
        names = _names(function.__code__)
        rooms = [room for room in ("linalg", "fft") if room in names]
        found |= names | {f"{room}.{name}" for room in rooms for name in names}
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        found |= {cell for cell in cells if isinstance(cell, str)}
        for name in names - (RULES.keys() & TABLE.keys()):
            of_table = name in TABLE and name not in PRIMITIVES
            called: Any = TABLE[name] if of_table else function.__globals__.get(name)
            if isinstance(called, type) and issubclass(called, Op):
                called = called.forward
            if isinstance(called, FunctionType) and called.__code__.co_varnames[:1] == ("F",):
                found |= named(called, seen)
    return found


def reduces(names: set[str]) -> bool:
    """Whether a formula has reductions, and else primitives that go element by element."""
    found = [PRIMITIVES[name].kind for name in names & PRIMITIVES.keys()]
    return kinds.reduction in found and all(
        [kind in (kinds.elementwise, kinds.query, kinds.reduction) for kind in found]
    )


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_has_a_form_or_a_reason(name: str) -> None:
    F: Any = Namespace(None)  # type: ignore[arg-type]
    if name in NO_FORM:
        with pytest.raises(UnsupportedOperatorError, match=name):
            getattr(F, name)
    else:
        call = getattr(F, name)
        assert not hasattr(call, "args") or call.args[-1].name in RULES


def test_reasons_are_of_primitives() -> None:
    assert NO_FORM.keys() <= PRIMITIVES.keys()


def test_an_op_has_a_rule_or_a_formula_or_a_reason() -> None:
    """Those of the rest call something that has no form, or ask their backend for something."""
    written = {name for names in WRITTEN.values() for name in names.split()}
    unknown = NO_FORM.keys() | {"backend"}
    formulas = {
        name: named(op.forward, set())
        for name, op in TABLE.items()
        if is_op(op) and name not in RULES and not issubclass(op, Pointwise)
    }
    rest = {name for name, names in formulas.items() if not names & unknown and not reduces(names)}
    assert rest == written
    assert reduces(formulas["hamming"]) and not reduces(formulas["linalg_cross"])


@pytest.mark.parametrize(
    ("function", "name", "lacking"),
    [
        (tlc.linalg.inv, "inv", "solve"),
        (tlc.lgamma, "lgamma", "lgamma"),
        (lambda x: tlc.special.multigammaln(x, 2), "mvlgamma", "lgamma"),
        (lambda x: tlc.logcumsumexp(x, 0), "logcumsumexp", "cumulative_logsumexp"),
        (tlc.gcd, "gcd", "gcd"),
    ],
)
def test_an_error_says_what_has_no_form(function: Any, name: str, lacking: str) -> None:
    arguments = (tlc.eye(2) + 3,) if name != "gcd" else (tlc.arange(3), tlc.arange(3))
    with pytest.raises(UnsupportedOperatorError) as error:
        tlc.onnx.export(lambda *x: function(*x), arguments)
    assert str(error.value) == f"'{name}' has no rule for ONNX: '{lacking}': {NO_FORM[lacking]}"


def test_formulas_by_elements_are_of_any_size() -> None:
    program = tlc.onnx.export(tlc.sinc, (tlc.rand(2, 3),), dynamic_axes={"input": {0: "n"}})
    x = tlc.rand(5, 3)
    (found,) = session(program.model_proto).run(None, {"input": x.numpy()})
    assert tlc.allclose(tlc.from_numpy(found), tlc.sinc(x))


def test_other_formulas_are_of_fixed_sizes() -> None:
    def loss(x: Any, y: Any) -> Any:
        return tlc.nn.functional.binary_cross_entropy(x, y)

    arguments = (tlc.rand(2), tlc.rand(2))
    assert tlc.onnx.export(loss, arguments) is not None
    with pytest.raises(UnsupportedOperatorError, match="for dynamic sizes"):
        tlc.onnx.export(loss, arguments, dynamic_axes={"x": {0: "n"}, "y": {0: "n"}})
