"""Functions made from the text of a call: what the text names is there, and they agree."""

from __future__ import annotations

import builtins
import dis
import inspect
import traceback
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.autograd import apply
from tensorflow_lite_clone.ops.pointwise import _elementwise, _pointwise
from tensorflow_lite_clone.ops.shape import views

# Reductions and softmax have their text once they are called.
REDUCTIONS = [tlc.sum, tlc.mean, tlc.amax, tlc.max, tlc.min, tlc.softmax, tlc.log_softmax]
for reduce in REDUCTIONS:
    reduce(tlc.ones(2), 0)

for module in (apply, _elementwise, views):  # and these have their own
    for value in vars(module).values():
        if isinstance(value, FunctionType) and "__deferred__" in value.__globals__:
            with suppress(TypeError):  # it wants arguments
                value()

MADE = {
    value.__name__: value
    for module in (apply, _elementwise, _pointwise, views)
    for value in vars(module).values()
    if isinstance(value, FunctionType) and "made from" in value.__code__.co_filename
}


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@pytest.mark.parametrize("function", [*MADE.values(), *REDUCTIONS], ids=lambda f: f.__name__)
def test_names_are_defined(function: Any) -> None:
    known = {*function.__globals__, *vars(builtins)}
    for code in codes(function.__code__):
        used = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        assert used <= known


def test_what_is_made() -> None:
    forms = "apply apply_unary apply_binary apply_ternary apply_first_output apply_view"
    assert {*forms.split(), "record", "record_outputs", "view_of"} <= MADE.keys()


@pytest.mark.parametrize("function", [apply.apply, tlc.exp, tlc.Tensor.__add__])
def test_source_is_shown(function: Any) -> None:
    assert "call = prepared(op, backend)" in inspect.getsource(function)


def test_a_traceback_shows_the_line() -> None:
    with pytest.raises(RuntimeError) as error:
        tlc.ones(2) + tlc.ones(3)
    lines = [frame.line for frame in traceback.extract_tb(error.value.__traceback__)]
    assert any(line.startswith("result = calculated(op, backend, call, ") for line in lines)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: x + 1, lambda m, x: 2 - x, lambda m, x: x * x, lambda m, x: x.exp(),
        lambda m, x: x.clamp(0, 1), lambda m, x: x.sum(), lambda m, x: x.softmax(0),
        lambda m, x: x @ x, lambda m, x: m.nn.functional.linear(x, x, x[0]),
        lambda m, x: m.nn.functional.layer_norm(x, (2,)), lambda m, x: m.where(x > 0, x, x),
    ],
)  # fmt: skip
def test_where_nothing_is_recorded_no_edge_is_asked_for(call: Any) -> None:
    for lib in (tlc, torch):
        leaf = lib.ones(2, 2, requires_grad=True)
        base = leaf * 1
        part = base.unbind(0)[0].expand(2, 2)
        with lib.no_grad():
            base.mul_(2)  # now the edge of the part is one that must not be asked for
        with lib.no_grad():
            assert not call(lib, part).requires_grad
