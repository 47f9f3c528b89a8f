"""Which computations become one kernel, and what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy.formulas import CpuTarget
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.fuse.groups import Group, Item, Joined, groups_of
from tensorflow_lite_clone.fuse.symbol import Symbol, operands_of
from tests.tensor.test_compile_chains import chains_of


class Named(Item):
    """``named("y = a b")`` reads a and b, and writes y."""

    def __init__(self, text: str, size: int = 3) -> None:
        written, read = text.split(" = ")
        super().__init__((size,), read.split(), written.split())
        self.text = text


def grouped(*items: Named, new: Any = Group) -> list[list[str]]:
    return [[item.text for item in group.items] for group in groups_of(items, new)]


def test_what_follows_joins_over_the_same_shape() -> None:
    a, b, c = Named("y = x"), Named("z = y"), Named("u = v", 5)
    assert grouped(a, b, c) == [["y = x", "z = y"], ["u = v"]]
    assert grouped(a, c, b) == [["y = x", "z = y"], ["u = v"]]


def test_nothing_overtakes_what_it_depends_on() -> None:
    a, other = Named("y = x"), Named("u = y", 1)
    assert grouped(a, other, Named("z = u")) == [["y = x"], ["u = y"], ["z = u"]]
    assert grouped(a, other, Named("z = y")) == [["y = x", "z = y"], ["u = y"]]


def test_nothing_writes_what_is_still_to_be_read() -> None:
    a, other = Named("y = x"), Named("u = v", 1)
    assert grouped(a, other, Named("v = y")) == [["y = x"], ["u = v"], ["v = y"]]
    assert grouped(a, other, Named("u = y")) == [["y = x"], ["u = v"], ["u = y"]]
    assert grouped(a, other, Named("x = v")) == [["y = x", "x = v"], ["u = v"]]


def test_a_group_says_what_it_has_room_for() -> None:
    class Pairs(Group):
        def has_room(self, item: Item) -> bool:
            return len(self.items) < 2

    items = [Named(f"y{i} = x") for i in range(5)]
    assert list(map(len, grouped(*items, new=Pairs))) == [2, 2, 1]


def test_what_is_written_is_read_from_the_expression() -> None:
    target = CpuTarget(backends.load("cpu").F)
    whole = Joined(target)
    x, y = np.ones(3, np.float32), np.ones(3)
    first = whole.read("x", x, x.dtype)
    assert whole.read("x", x, x.dtype) is first and first.shape == (3,)
    whole.computed["x"] = first + whole.read("y", y, y.dtype)
    again = whole.read("x", x, x.dtype)
    assert again.name == "add"
    assert [symbol.value for symbol in operands_of((again,))] == [0, 1]
    assert whole.arguments[0] is x and whole.arguments[1] is y
    assert isinstance(again, Symbol)


@pytest.fixture
def chained(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The chains of a compiled function of small arrays, and what it gives beside eager results."""
    monkeypatch.setattr(tuning, "chain_elements", 8)
    monkeypatch.setattr(tuning, "chain_work", 8)

    def run(function: Any) -> list[list[str]]:
        compiled = tlc.compile(function, fullgraph=True)
        for seed in range(3):
            x = tlc.tensor(np.random.default_rng(seed).standard_normal((6, 4)))
            one, other = compiled(x.clone()), function(x.clone())
            assert one.numpy().tobytes() == other.numpy().tobytes()
        return [
            [line.split("(")[0].split()[-1] for line in chain.text.splitlines()[1:]]
            for chain in chains_of(compiled)
        ]

    return run


def test_a_write_in_place_is_part_of_a_chain(chained: Any) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y += x
        return y.exp() + y

    assert chained(function) == [["multiply", "add", "exp", "add"]]


def test_a_view_of_what_is_written_ends_a_chain(chained: Any) -> None:
    """Overlapping memory that is not the same element by element."""

    def function(x: Any) -> Any:
        y = x * 2 + 1
        rows = y[1:5]
        y += x
        z = y * 3
        return z[1:5] + rows.exp() * rows

    found = chained(function)
    assert sum(map(len, found)) >= 4 and len(found) > 1


def test_what_nobody_reads_is_not_computed(chained: Any) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        (y + 5).exp()
        return y.exp() - 1

    (names,) = chained(function)
    assert names == ["multiply", "exp", "subtract"]


def test_what_is_between_goes_first_if_it_touches_nothing(chained: Any) -> None:
    other = tlc.ones(6, 4)

    def function(x: Any) -> Any:
        y = x * 2 + 1
        total = other.sum(0)
        return (y * total).exp()

    assert chained(function) == [["multiply", "add", "multiply", "exp"]]
