"""Lists of safe names: blocks that overlap, entries that are none, and the environment."""

from __future__ import annotations

import io
import pickle
import random
import threading

import pytest
import torch

import tensorflow_lite_clone as tlc

LIBRARIES = (tlc, torch)
safe = tlc.serialization


class A:
    """A class of a user's."""


class B:
    """Another."""


class C:
    """Another."""


@pytest.fixture(autouse=True)
def _empty_lists():
    for library in LIBRARIES:
        library.serialization.clear_safe_globals()
    yield
    for library in LIBRARIES:
        library.serialization.clear_safe_globals()


def allowed(cls) -> bool:
    stream = io.BytesIO()
    tlc.save(cls(), stream)
    stream.seek(0)
    try:
        return type(tlc.load(stream)) is cls
    except pickle.UnpicklingError:
        return False


def test_blocks_that_end_in_another_order():
    first, second = safe.safe_globals([A]), safe.safe_globals([B])
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert safe.get_safe_globals() == [B] and allowed(B) and not allowed(A)
    second.__exit__(None, None, None)
    assert safe.get_safe_globals() == [] and not allowed(B)


def test_blocks_with_the_same_entry():
    outer, inner = safe.safe_globals([A, B]), safe.safe_globals([B, C])
    with outer:
        with inner:
            assert safe.get_safe_globals() == [A, B, C]
        assert safe.get_safe_globals() == [A, B] and allowed(B) and not allowed(C)
    assert safe.get_safe_globals() == []


def test_a_block_in_itself():
    block = safe.safe_globals([A])
    with block:
        with block:
            assert safe.get_safe_globals() == [A]
        assert safe.get_safe_globals() == [A]
        with block:
            assert allowed(A)
    assert safe.get_safe_globals() == [] and not allowed(A)


def test_safe_globals_added_in_a_block_remain():
    for library in LIBRARIES:
        place = library.serialization
        with place.safe_globals([A]):
            place.add_safe_globals([B])
        assert place.get_safe_globals() == [B]


def test_safe_globals_added_before_a_block_remain():
    safe.add_safe_globals([A])
    with safe.safe_globals([A, B]):
        assert safe.get_safe_globals() == [A, B]
    assert safe.get_safe_globals() == [A]  # PyTorch forgets it


def test_clearing_in_a_block():
    for library in LIBRARIES:
        place = library.serialization
        with place.safe_globals([A]):
            place.clear_safe_globals()
            assert place.get_safe_globals() == []
            place.add_safe_globals([B])
        assert place.get_safe_globals() == [B]


def test_generators():
    def opened(cls):
        with safe.safe_globals([cls]):
            yield allowed(cls)

    first, second = opened(A), opened(B)
    assert next(first) and next(second)
    first.close()
    assert safe.get_safe_globals() == [B]
    assert next(second, None) is None
    assert safe.get_safe_globals() == []


def test_errors_in_blocks():
    with pytest.raises(ZeroDivisionError), safe.safe_globals([A]), safe.safe_globals([B]):
        raise ZeroDivisionError
    assert safe.get_safe_globals() == []


def test_threads():
    """Each has what it has opened for as long as it has it open, and nothing stays."""
    classes = [A, B, C, (A, "another.A"), (len, "another.length")]
    failed = []

    def work(seed):
        draw = random.Random(seed)
        for _ in range(300):
            entries = draw.sample(classes, 2)
            with safe.safe_globals(entries):
                now = safe.get_safe_globals()
                failed.extend([entry for entry in entries if entry not in now])

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert safe.get_safe_globals() == []


NO_ENTRIES = {
    "number": ([1], TypeError),
    "text": (["a.B"], TypeError),
    "none": ([None], TypeError),
    "list": ([[A]], TypeError),
    "object without a name": ([A()], TypeError),
    "triple": ([(A, "a.A", 1)], ValueError),
    "single": ([(A,)], ValueError),
    "empty tuple": ([()], ValueError),
    "pair of text": ([("a.A", A)], TypeError),
    "number for a name": ([(A, 1)], TypeError),
    "no list": (3, TypeError),
    "behind a good one": ([A, 1], TypeError),
}


@pytest.mark.parametrize("name", NO_ENTRIES)
def test_safe_globals_invalid_entries_raise(name):
    entries, error = NO_ENTRIES[name]
    for add in (safe.add_safe_globals, safe.safe_globals):
        with pytest.raises(error):
            add(entries)
        assert safe.get_safe_globals() == []
    stream = io.BytesIO()
    tlc.save([tlc.ones(2)], stream)
    stream.seek(0)
    assert tlc.load(stream)[0].tolist() == [1, 1]


@pytest.mark.parametrize("given", (None, True, False))
@pytest.mark.parametrize("name", ("WEIGHTS_ONLY", "NO_WEIGHTS_ONLY"))
@pytest.mark.parametrize("value", ("1", "y", "YES", "True", "0", "no", "", "on"))
@pytest.mark.filterwarnings("ignore")
def test_the_environment(monkeypatch, name, value, given):
    def script(lib):
        stream = io.BytesIO()
        lib.save(A(), stream)
        stream.seek(0)
        try:
            return type(lib.load(stream, weights_only=given)).__name__
        except pickle.UnpicklingError:
            return "refused"

    monkeypatch.setenv(f"TORCH_FORCE_{name}_LOAD", value)
    assert script(tlc) == script(torch)


def test_both_in_the_environment(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    for library in LIBRARIES:
        stream = io.BytesIO()
        library.save([1], stream)
        stream.seek(0)
        with pytest.raises(RuntimeError, match="explicit pickle_module"):
            library.load(stream, pickle_module=pickle)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    for library in LIBRARIES:
        stream.seek(0)
        with pytest.raises(RuntimeError, match="Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD`"):
            library.load(stream)
