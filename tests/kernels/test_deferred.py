"""Pointwise kernels that wait for each other, over arrays in the host's memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

import cupy
from cupy.cuda.compiler import CompileException

from tensorflow_lite_clone.backends.cupy import runtime
from tensorflow_lite_clone.backends.cupy.fusion import deferred, joining, source
from tensorflow_lite_clone.backends.cupy.fusion.formula import formula
from tests.kernels.waiting import (
    Computed,
    chain,
    given,
    host,
    in_place,
    waiting,
)

__all__ = ["chain"]  # a fixture


def test_deferred_chain_skips_unreferenced_intermediates(chain: Any) -> None:
    x = given(1, 2, 3)
    more = waiting(lambda F, x: x + 1)
    middle = more(x)
    address, last = middle.data, more(middle)
    del middle
    array = cupy.ndarray((3,), np.float32, address)
    del address
    chain.flush()
    assert host(last).tolist() == [3, 4, 5]
    assert host(array).tolist() == [2, 3, 4]  # a second array over the same memory holds it

    dropped = more(last)
    memory = host(dropped)
    last = more(dropped)
    del dropped
    chain.flush()
    assert np.isnan(memory).all()
    assert host(last).tolist() == [5, 6, 7]


@pytest.mark.parametrize("neighbours", [False, True])
def test_writes_through_a_view_that_is_gone(chain: Any, neighbours: bool) -> None:
    x = given(*range(6)).reshape(2, 3)
    other = given(*range(6)).reshape(3, 2)
    double = in_place(lambda F, x: x * 2)
    for view in (lambda: x.T, lambda: x.view().T, lambda: x[:].T):
        before = host(x).copy()
        if neighbours:
            held = waiting(lambda F, x: x + 1)(other)
        assert double(view())
        chain.flush()
        np.testing.assert_array_equal(host(x), before * 2)
        if neighbours:
            np.testing.assert_array_equal(host(held), host(other) + 1)


def test_steps_join_across_others_that_they_do_not_depend_on(chain: Any) -> None:
    x, y = given(1, 2, 3), given(1, 2)
    more, total = waiting(lambda F, x: x + 1), waiting(lambda F, x, y: x + y)
    double = in_place(lambda F, x: x * 2)
    first, other, last = more(x), more(y), more(x)
    assert double(other)
    assert [len(group) for group in joining.groups_of(chain.steps)] == [2, 2]
    row = given(5, 6).reshape(2, 1)
    spread = total(other, row)  # needs `other`, and another shape
    after = more(y)
    assert double(y)  # which was read before
    assert [len(group) for group in joining.groups_of(chain.steps)] == [2, 4, 1]
    twice = more(spread)
    assert double(other)  # which `spread` is computed from
    assert [len(group) for group in joining.groups_of(chain.steps)] == [2, 4, 2, 1]
    chain.flush()
    assert [host(array).tolist() for array in (first, last, other, after, y)] == [
        [2, 3, 4], [2, 3, 4], [8, 12], [2, 3], [2, 4],
    ]  # fmt: skip
    assert host(twice).tolist() == [[10, 12], [11, 13]]


@pytest.mark.parametrize("before", [0, deferred._MOST_STEPS - 1])
def test_several_results_are_written(chain: Any, before: int) -> None:
    x = given(1, 2, 3)
    both = waiting(lambda F, x: (x + 1, x * 5))
    more = waiting(lambda F, x: x + 1)
    kept = [more(x) for _ in range(before)]
    results = both(x)
    assert bool(chain.steps) == (not before)  # so many wait, and no more
    kept.append(more(x))
    chain.flush()
    assert [host(result).tolist() for result in results] == [[2, 3, 4], [5, 10, 15]]
    assert all([host(array).tolist() == [2, 3, 4] for array in kept])


def test_chains_may_be_deep(chain: Any) -> None:
    x = given(0.5, 1, 2)
    expected = host(x).copy()
    step = in_place(lambda F, x: F.tanh(x * x - 1) * (1 / (x + 3)) - x)
    for _ in range(deferred._MOST_STEPS):
        assert step(x)
        expected = np.tanh(expected * expected - 1) * (1 / (expected + 3)) - expected
    assert not chain.steps
    np.testing.assert_allclose(host(x), expected, 1e-4)


def test_views_that_had_to_copy(chain: Any) -> None:
    def reshaped(x: Any) -> Any:
        if x.flags.c_contiguous:
            return x.reshape(-1)
        made = cupy.ndarray((x.size,), x.dtype)
        host(made)[...] = host(x).reshape(-1)
        return made

    view = deferred.viewing(reshaped)
    x = given(*range(6)).reshape(2, 3)
    y = waiting(lambda F, x: x + 1)(x)
    flat = view(y)
    assert chain.steps
    assert flat.data.mem is y.data.mem
    turned = view(y.T)
    assert not chain.steps
    assert host(turned).tolist() == [1, 4, 2, 5, 3, 6]
    assert chain.on


def test_parameters_without_a_hash_run_as_always(chain: Any) -> None:
    x = given(1, 2, 3)
    y = waiting(lambda F, x: x + 1)(x)

    def generic(x: Any, *, sizes: list) -> Any:
        assert not chain.on
        return host(x) + len(sizes)

    call = formula("body", lambda F, x, *, sizes: x + len(sizes), generic)
    assert deferred.deferring(call)(y, sizes=[1, 2]).tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("batched", "shared", "waits"), [(False, {}, True), (True, {}, False), (False, {0: 1}, False)]
)
def test_gradients_that_are_no_formulas(
    chain: Any, batched: bool, shared: dict, waits: bool
) -> None:
    op = SimpleNamespace(joint=None, shared=shared)
    node = SimpleNamespace(op=op, backend=SimpleNamespace(batched=batched))
    assert deferred.backward(node, lambda grads: chain.on, []) is waits
    assert chain.on


def test_deferred_chain_ignores_unrelated_calls(chain: Any) -> None:
    x, y, z = given(1, 2, 3), given(4, 5), given(6, 7)
    more, double = waiting(lambda F, x: x + 1), in_place(lambda F, x: x * 2)

    def look(arrays: Any, **more: Any) -> list:
        deferred.launching("a kernel", "", (), ())()  # of what is called
        return [host(array).tolist() for array in arrays]

    look_at = deferred.around(look)
    first, other, third = more(x), more(y), more(z)
    second = more(first)
    assert double(x)  # after it was read
    assert look_at([other], of=(None, 3, "same", np.float32(1), slice(2))) == [[5, 6]]
    assert len(chain.steps) == 4
    assert look_at((first,)) == [[2, 3, 4]]  # which `second` reads; and `x` has to be read before
    assert len(chain.steps) == 1
    assert host(x).tolist() == [2, 4, 6]
    assert look_at({"y": y}.values()) == [[4, 5]]
    assert not chain.steps  # what is called may hold any array
    assert host(second).tolist() == [3, 4, 5] and host(third).tolist() == [7, 8]

    counters = [cupy.ndarray((), np.int64) for _ in range(9)]
    for counter in counters:
        host(counter)[...] = 7
        assert in_place(lambda F, x: x + 1)(counter)
    many = [more(given(2, 4, 6)) for _ in range(9)]
    chain.flush((y,))
    deferred.launching("a kernel", "", (), ())()
    assert len(chain.steps) == 9 + 4  # not many large ones
    assert len(joining.groups_of(chain.steps)) == 2
    last = more(y)
    deferred.launching("a kernel", "", (), ())()  # of someone else
    assert not chain.steps
    assert host(last).tolist() == [5, 6]
    assert [int(host(counter)) for counter in counters] == [8] * 9
    assert all([host(array).tolist() == [3, 5, 7] for array in many])


def test_methods_touch_their_array(chain: Any) -> None:
    more = waiting(lambda F, x: x + 1)
    x, y = more(given(1, 2)), more(given(5, 6))
    assert deferred.around(x.reshape)(2, 1).shape == (2, 1)
    assert host(x).tolist() == [2, 3] and len(chain.steps) == 1
    chain.flush()
    assert host(y).tolist() == [6, 7]


def test_deferred_identity_returns_its_input(chain: Any) -> None:
    call = formula("body", lambda F, g: g, lambda g: g)
    whole = cupy.ndarray((2,), np.int64)
    assert call(whole) is whole  # as it runs before a capture, maybe for other dtypes
    y = waiting(lambda F, x: x + 1)(given(1, 2))
    assert deferred.deferring(call)(y) is y
    assert chain.steps
    call = formula("body", lambda F, g, *, like: g, lambda g, *, like: g)
    assert deferred.deferring(call)(y, like=3) is y
    assert chain.steps
    assert deferred.deferring(call)(y, like=[1]) is y  # which is no key
    assert not chain.steps


def test_gradients_of_others_read_what_was_saved(chain: Any) -> None:
    y = waiting(lambda F, x: x + 1)(given(1, 2))
    op = SimpleNamespace(joint=None, shared={0: 1})
    node = SimpleNamespace(op=op, backend=SimpleNamespace(batched=False))
    assert deferred.backward(node, lambda grads: host(y).tolist(), []) == [2, 3]


def test_a_joined_kernel_that_does_not_compile(chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def plan(name: str, *rest: Any) -> Any:
        if name == "chain":
            raise CompileException("too much", "", "", ())
        return Computed(name, *rest)

    monkeypatch.setattr(joining, "Plan", plan)
    x = given(1, 2, 3)
    more, double = waiting(lambda F, x: x + 1), in_place(lambda F, x: x * 2)
    y = more(more(x))
    assert double(y)
    with pytest.warns(RuntimeWarning, match="body, body, body"):
        chain.flush()
    assert host(y).tolist() == [6, 8, 10]


def test_a_formula_that_does_not_compile_waits_for_nothing(
    chain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(*formed: Any) -> Any:
        raise CompileException("too much", "", "", ())

    monkeypatch.setattr("tensorflow_lite_clone.backends.cupy.fusion.formula.Plan", plan)
    x = given(1, 2, 3)
    call = formula("body", lambda F, x: x + 1, lambda x: host(x) + 1)
    with pytest.warns(RuntimeWarning, match="does not compile"):
        assert call(x).tolist() == [2, 3, 4]  # as steps run before they are captured
    assert deferred.deferring(call)(x).tolist() == [2, 3, 4]
    assert not chain.steps


def test_parameters_of_a_joined_kernel_fit(chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def plan(name: str, made: Any, walked: Any, form: Any) -> Any:
        head = source.write(name, made, form).code.partition("void __launch_bounds__")[2]
        sizes.append(8 * head.partition("{")[0].count(","))
        return Computed(name, made, walked, form)

    monkeypatch.setattr(joining, "Plan", plan)
    x = given(*range(6)).reshape(2, 3).T
    many = waiting(lambda F, x, *, start: sum([x * (start + 0.5 + i) for i in range(40)], x))
    results = [many(x, start=100 * i) for i in range(30)]
    chain.flush()
    assert len(sizes) > 2
    assert all(2000 < size <= 4096 for size in sizes[1:-1])
    for i, result in enumerate(results):
        factor = 1 + sum([100 * i + 0.5 + j for j in range(40)])
        np.testing.assert_allclose(host(result), host(x) * factor, 1e-5)


def test_deferred_flush_uses_the_captured_device(
    chain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when work for another device, which is current then, has to follow it."""
    devices = [1]  # the current one is the last

    @contextmanager
    def here() -> Iterator[None]:
        devices.append(0)
        yield
        devices.pop()

    class Placed(Computed):
        def into(self, operands: tuple, results: tuple) -> None:
            assert devices[-1] == 0
            super().into(operands, results)

    monkeypatch.setattr(chain, "here", here)
    monkeypatch.setattr(joining, "Plan", Placed)
    y = waiting(lambda F, x: x + 1)(given(1, 2))
    deferred.launching("of another device", "", (), ())()
    assert host(y).tolist() == [2, 3]


def test_deferred_flush_precedes_a_stream_switch(
    chain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "set_device", lambda index: None)
    more, found = waiting(lambda F, x: x + 1), []

    class Stream:
        def __enter__(self) -> None:
            found.append(host(y).tolist())

        def __exit__(self, *exception: object) -> None:
            found.append(host(z).tolist())

    y = more(given(1, 2))
    runtime.enter_stream(Stream(), 0)
    z = more(given(3, 4))
    runtime.leave_stream(Stream(), 0, None, None, None)
    assert found == [[2, 3], [4, 5]]


def imported(array: Any) -> Any:
    """The same memory under another name, as DLPack and ``__cuda_array_interface__`` give it."""
    memory = cupy.cuda.UnownedMemory(array.data.ptr, array.nbytes, array, 0)
    return cupy.ndarray(array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0), array.strides)


def test_memory_that_comes_back_under_another_name(chain: Any) -> None:
    x = given(*range(6))
    more, double = waiting(lambda F, x: x + 1), in_place(lambda F, x: x * 2)
    assert double(x)
    middle = more(imported(x[1:4]))  # other elements than those that are written, but some of them
    same = more(imported(x))
    assert double(imported(x[2:]))
    chain.flush()
    assert host(middle).tolist() == [3, 5, 7]
    assert host(same).tolist() == [1, 3, 5, 7, 9, 11]
    assert host(x).tolist() == [0, 2, 8, 12, 16, 20]

    add = in_place(lambda F, x, y: x + y)
    assert double(x)
    assert add(x[:3], x[3:])  # the same memory, but no place twice
    assert chain.steps
    chain.flush()
    assert host(x).tolist() == [24, 36, 56, 24, 32, 40]
