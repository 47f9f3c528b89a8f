"""Tapes: which calls are on them, and what values say of arrays and their memory."""

from __future__ import annotations

import gc
import operator
import threading

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.dispatch import hooks, table
from tensorflow_lite_clone.trace import Call, OpTape, Tape, Value, values_in


def names(tape):
    return [call.name for call in tape.calls]


def test_calls_are_in_order_and_hand_values_on() -> None:
    x, w = tlc.ones(2, 3), tlc.ones(3, 4)
    with OpTape() as tape:
        y = (x @ w).relu()
    product, relu = tape.calls
    assert names(tape) == ["mm", "relu"] and {product.kind, relu.kind} == {"op"}
    assert relu.args == (product.result,)
    assert [value.call for value in product.args] == [None, None]
    assert product.args[0].held() is x._storage.array and relu.result.held() is y._storage.array
    assert relu.result.shape == (2, 4) and relu.result.dtype == y._storage.array.dtype
    assert product.backend is y._storage.backend


def test_what_ops_call_and_what_runs_elsewhere_is_not_on_it() -> None:
    layer = nn.LSTM(3, 4)
    with OpTape() as tape:
        layer(tlc.ones(5, 3))
        other = threading.Thread(target=lambda: tlc.ones(2).exp())
        other.start()
        other.join()
    assert [call.name for call in tape.calls if call.kind == "function"] == ["lstm"]
    assert "lstm_cell" not in names(tape) and "exp" not in names(tape)
    count = len(tape.calls)
    tlc.ones(2).exp()
    assert len(tape.calls) == count and not hooks.around_op


def test_parameters_and_several_results() -> None:
    with OpTape() as tape:
        values, places = tlc.tensor([3.0, 1.0]).sort(descending=True)
    (call,) = tape.calls
    assert call.kwargs["descending"] is True
    assert [value.held() for value in call.results] == [
        values._storage.array,
        places._storage.array,
    ]


def test_views_share_memory_of_which_writes_are_counted() -> None:
    x = tlc.ones(2, 3)
    with OpTape() as tape:
        row = x[0]
        row.mul_(2)
        x.add_(1)
    view, times, add = tape.calls
    assert view.target.view and view.result.base is view.args[0]
    assert times.kind == add.kind == "write" and times.writes and not view.writes
    assert times.result is times.args[0] is view.result
    assert view.result.memory is view.args[0].memory is view.args[0]
    assert view.args[0].version == 2


def test_a_view_of_a_view_has_the_same_base() -> None:
    x = tlc.ones(2, 3, 4)
    with OpTape() as tape:
        x[0].t()
    first, second = tape.calls
    assert second.args == (first.result,) and second.result.base is first.args[0]


def test_copies_are_writes_without_an_op() -> None:
    x = tlc.zeros(3)
    with OpTape() as tape:
        x[1:] = 5.0
        x.copy_(tlc.ones(3))
    assert {call.kind for call in tape.calls if call.name in ("copy_into", "fill")} == {"write"}
    assert tape.calls[-1].name == "copy_into"


def test_arrays_are_held_weakly_unless_the_tape_keeps_them() -> None:
    for keep in (False, True):
        with OpTape(keep) as tape:
            x = tlc.ones(3).exp()
            x = x.log()
        del x
        gc.collect()
        assert [value.held() is not None for value in values_in(tape.calls)] == [keep] * 4


def test_an_array_where_one_was_that_is_gone_is_another_value() -> None:
    with OpTape() as tape:
        for _ in range(20):
            tlc.full((3,), 2.0).exp()
    values = [call.args[0] for call in tape.calls if call.name == "exp"]
    assert len(set(values)) == 20


def test_readers_are_called_before_and_after_each_call() -> None:
    class Reader(OpTape):
        def __init__(self):
            super().__init__()
            self.seen = []

        def before(self, call):
            self.seen.append((call.name, call.result, call.args[0].memory.version))

        def after(self, call):
            self.seen.append((call.name, call.args[0].memory.version, self.calls[-1] is call))

    x = tlc.ones(3)
    with Reader() as tape:
        x.mul_(2)
    assert tape.seen == [("mul", None, 0), ("mul", 1, True)]


def test_an_error_leaves_the_tape_ready() -> None:
    x = tlc.ones(2, 3)
    with OpTape() as tape:
        with pytest.raises(RuntimeError):
            x @ x
        x.exp()
    assert names(tape) == ["exp"] and not tape.running


def test_functions_over_arrays_can_be_recorded_by_hand() -> None:
    tape, x = Tape(), np.ones((2, 2))
    y = tape.record(Call(np.stack, tape.describe(([x, x],)), {}), np.stack, ([x, x],), {})
    call = Call(operator.getitem, tape.describe((y, 0)), {})
    row = tape.record(call, operator.getitem, (y, 0), {})
    stack, item = tape.calls
    assert stack.args == ([tape.find(x), tape.find(x)],) and stack.name == "stack"
    assert item.args == (stack.result, 0) and item.result is tape.find(row)
    assert item.result.base is stack.result
    assert list(values_in(stack)) == [tape.find(x), tape.find(x), stack.result]


def test_two_parts_of_what_is_no_value_share_memory_without_a_base() -> None:
    tape, x = Tape(), np.ones(4)
    call = Call(np.split, tape.describe((x,)), {})
    first, second = tape.record(call, lambda x: np.split(x + 1, 2), (x,), {})
    first, second = tape.find(first), tape.find(second)
    assert call.result == [first, second]
    assert first.base is second.base is None and first.memory is second.memory


def test_a_declined_call_is_not_on_the_tape() -> None:
    tape = Tape()
    assert tape.record(Call(len, (), {}), lambda: NotImplemented, (), {}) is NotImplemented
    assert tape.calls == []


def test_parts_of_an_array_from_outside_view_it() -> None:
    tape, whole = Tape(), np.ones((3, 4))
    call = Call(np.split, tape.describe((whole,)), {})
    tape.record(call, lambda x: np.split(x, 3), (whole,), {})
    assert [value.base for value in call.result] == [tape.find(whole)] * 3
    other = tape.read(whole[1:])
    assert other.call is None and other.base is other.memory is tape.find(whole)


def replayed(tape: OpTape, inputs: dict) -> dict:
    """What the ops of a tape give for the arrays of its outside values, by value."""
    arrays = dict(inputs)

    def array_of(described):
        if isinstance(described, Value):
            return arrays[described] if described in arrays else described.held()
        return [array_of(part) for part in described] if type(described) is list else described

    for call in tape.calls:
        assert call.kind == "op"
        result = table.run(call.target, call.backend, [array_of(x) for x in call.args], call.kwargs)
        for value, array in zip(call.results, result if type(result) is tuple else [result]):
            arrays[value] = array
    return arrays


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.MaxPool2d(2)).eval(),
        nn.Sequential(
            nn.Flatten(2), nn.TransformerEncoderLayer(64, 4, 32, batch_first=True)
        ).eval(),
    ],
    ids=["convolution", "transformer"],
)
def test_a_tape_says_all_that_it_takes_to_run_the_calls_again(model) -> None:
    x, other = tlc.randn(2, 3, 8, 8), tlc.randn(2, 3, 8, 8)
    with tlc.no_grad():
        with OpTape(keep=True) as tape:
            y = model(x)
        expected = model(other)
    given, result = tape.find(x._storage.array), tape.find(y._storage.array)
    found = replayed(tape, {given: other._storage.array})[result]
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6, atol=1e-6)
