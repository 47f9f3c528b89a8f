"""Creation functions, `asarray` of every kind of input, DLPack."""

from __future__ import annotations

import array
import math

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.judge import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMERIC,
    SHAPES,
    SIGNED,
    SUMS,
    agree,
    dtype,
    elements,
    few,
    hosts,
    mine,
    name_of,
    same,
    theirs,
)
from tests.array_api.strategies import xp, xps

DEFAULT = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}
SIZES = SHAPES | st.integers(0, 4)


@pytest.mark.parametrize("name", ["zeros", "ones"])
@few
@given(SIZES, st.sampled_from(ALL))
def test_constants(name, shape, kind) -> None:
    agree(lambda xp: getattr(xp, name)(shape, dtype=getattr(xp, kind)))
    made = getattr(xp, name)(shape, dtype=None, device=None)
    assert made.dtype is xp.float32 and tuple(made.shape) == np.zeros(shape).shape


@few
@given(SIZES, st.none() | st.sampled_from(ALL))
def test_empty(shape, kind) -> None:
    made = xp.empty(shape, dtype=kind and dtype(kind))
    assert name_of(made) == (kind or "float32") and tuple(made.shape) == np.empty(shape).shape


@few
@given(hosts(), st.none() | st.sampled_from(ALL), st.data())
def test_likes(x, kind, data) -> None:
    for name in ("zeros_like", "ones_like"):
        make = lambda xp, x, name=name: getattr(xp, name)(x, dtype=kind and getattr(xp, kind))
        agree(make, x)
    number = data.draw(elements(kind or x.dtype.name))
    agree(lambda xp, x: xp.full_like(x, number, dtype=kind and getattr(xp, kind)), x)
    made = xp.empty_like(mine(x), dtype=kind and dtype(kind))
    assert name_of(made) == (kind or x.dtype.name) and tuple(made.shape) == x.shape


@few
@given(SIZES, st.sampled_from(ALL), st.data())
def test_full(shape, kind, data) -> None:
    number = data.draw(elements(kind))
    agree(lambda xp: xp.full(shape, number, dtype=getattr(xp, kind)))
    small = data.draw(elements(kind, small=True))
    made = xp.full(shape, small)
    assert name_of(made) == DEFAULT[type(small)] and bool(xp.all(made == small))


@few
@given(
    st.integers(0, 5),
    st.none() | st.integers(0, 5),
    st.integers(-7, 7) | st.just(2**80),
    st.sampled_from(ALL),
)
def test_eye(rows, columns, k, kind) -> None:
    agree(lambda xp: xp.eye(rows, columns, k=k, dtype=getattr(xp, kind)))
    assert xp.eye(rows).dtype is xp.float32


@few
@given(st.sampled_from(INTEGERS), st.data())
def test_arange_of_integers(name, data) -> None:
    low, high = int(np.iinfo(name).min), int(np.iinfo(name).max)
    near = data.draw(st.sampled_from([low, 0, high]))
    inside = st.integers(max(low, near - 20), min(high, near + 20))
    start, stop = data.draw(inside), data.draw(inside)
    step = data.draw(st.integers(1, 5) | (st.integers(-5, -1) if name in SIGNED else st.nothing()))
    found = xp.arange(start, stop, step, dtype=dtype(name))
    assert found.tolist() == list(range(start, stop, step)) and found.dtype is dtype(name)
    if abs(near) < 100:
        assert xp.arange(start, stop, step).tolist() == found.tolist()
        assert xp.arange(start, stop, step).dtype is xp.int64
        assert xp.arange(max(start, 0)).tolist() == list(range(start))


@few
@given(st.sampled_from(FLOATS), st.data())
def test_arange_of_floats(name, data) -> None:
    number = st.integers(-40, 40).map(lambda n: n / 4) | st.integers(-9, 9)
    start, stop = data.draw(number), data.draw(number)
    step = data.draw(number.filter(bool))
    agree(lambda xp: xp.arange(start, stop, step, dtype=getattr(xp, name)), close=True)
    made = xp.arange(start, stop, step)
    whole = all(type(n) is int for n in (start, stop, step))
    assert made.dtype is (xp.int64 if whole else xp.float32)
    cut = xp.arange(start, stop, step, dtype=xp.int64)
    assert cut.shape == (max(0, math.ceil((stop - start) / step)),) and cut.dtype is xp.int64


@few
@given(st.sampled_from((*FLOATS, *COMPLEX)), st.integers(0, 9), st.booleans(), st.data())
def test_linspace(name, num, endpoint, data) -> None:
    start, stop = data.draw(elements(name, small=True)), data.draw(elements(name, small=True))
    keywords = {"endpoint": endpoint}
    make = lambda xp: xp.linspace(start, stop, num, dtype=getattr(xp, name), **keywords)
    agree(make, close=True)
    made = xp.linspace(start, stop, num, **keywords)
    assert name_of(made) == DEFAULT[type(start)]
    if num > 1 and endpoint:
        assert made[0] == start and made[-1] == stop


@few
@given(st.sampled_from(FLOATS), st.integers(2, 9), st.data())
def test_linspace_of_large_numbers(name, num, data) -> None:
    start, stop = data.draw(elements(name, nan=False)), data.draw(elements(name, nan=False))
    made = np.asarray(xp.linspace(start, stop, num, dtype=dtype(name)))
    if not math.isinf(np.dtype(name).type(stop) - np.dtype(name).type(start)):
        assert (made[0], made[-1]) == (start, stop)
        wanted = np.linspace(start, stop, num, dtype=name)
        size = max(abs(start), abs(stop))
        np.testing.assert_allclose(made, wanted, rtol=SUMS[name], atol=size * SUMS[name])


@few
@given(hosts(), st.data())
def test_asarray_of_sequences(x, data) -> None:
    """Nested sequences of numbers, also those that only the given dtype holds."""
    name = x.dtype.name
    agree(lambda xp: xp.asarray(x.tolist(), dtype=getattr(xp, name)))
    small = data.draw(hosts((name,), x.shape, small=True)).tolist()
    made = xp.asarray(small)
    wanted = DEFAULT[type(np.zeros((), name).item())] if x.size else "float32"
    assert name_of(made) == wanted
    np.testing.assert_array_equal(np.asarray(made), np.asarray(small))


def test_asarray_of_mixed_numbers() -> None:
    assert xp.asarray([True, 2]).dtype is xp.int64
    assert xp.asarray([[1, 2.5], [True, 3]]).dtype is xp.float32
    assert xp.asarray((1, 2.5, 3j)).dtype is xp.complex64
    assert xp.asarray(range(3)).tolist() == [0, 1, 2]
    assert xp.asarray(2**64 - 1, dtype=xp.uint64).item() == 2**64 - 1
    with pytest.raises(ValueError, match="alias"):
        xp.asarray([1, 2], copy=False)


@few
@given(hosts(), st.sampled_from([None, True, False]), st.booleans())
def test_asarray_of_arrays(x, copy, library) -> None:
    """Memory is shared unless a copy is wanted; of another library's array, too."""
    source = np.array(x) if library else mine(x)
    made = xp.asarray(source, copy=copy)
    same(made, theirs(x))
    host = source if library else source.numpy()
    if x.size:
        assert np.shares_memory(host, made.numpy()) is (copy is not True)


@few
@given(hosts(NUMERIC, small=True), st.sampled_from(NUMERIC))
def test_asarray_with_a_dtype(x, name) -> None:
    if (x.dtype.kind == "c" and name not in COMPLEX) or name.startswith("u"):
        return
    agree(lambda xp, x: xp.asarray(x, dtype=getattr(xp, name)), x)
    if x.dtype.name != name:
        with pytest.raises(ValueError, match="alias"):
            xp.asarray(mine(x), dtype=dtype(name), copy=False)


def test_asarray_of_tensors_in_sequences() -> None:
    x = xp.asarray([[1, 2], [3, 4]], dtype=xp.int16)
    assert xp.asarray(xp.unstack(x)).tolist() == x.tolist()
    assert xp.asarray(xp.unstack(x)).dtype is xp.int16
    assert xp.asarray([[x[0, 0], 5], [x[1, 0], x[1, 1]]]).tolist() == [[1, 5], [3, 4]]
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([x], copy=False)


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_asarray_of_buffers(code: str) -> None:
    buffer = array.array(code, [1, 2, 3])
    made = xp.asarray(buffer)
    assert name_of(made) == np.dtype(code).name and made.tolist() == [1, 2, 3]
    buffer[0] = 9
    assert made[0] == 9 and xp.asarray(buffer, copy=False)[0] == 9
    own = xp.asarray(memoryview(buffer), copy=True)
    other = xp.asarray(buffer, dtype=xp.complex128)
    buffer[0] = 4
    assert own[0] == 9 and other[0] == 9 and other.dtype is xp.complex128


def test_asarray_of_bytes() -> None:
    """Memory that may only be read is copied."""
    made = xp.asarray(b"abc")
    made[0] = 0
    assert made.tolist() == [0, 98, 99] and made.dtype is xp.uint8
    assert xp.asarray(bytearray(b"ab")).tolist() == [97, 98]


def test_devices() -> None:
    cpu = xp.__array_namespace_info__().default_device()
    x = xp.ones(3, device=cpu)
    for made in (
        xp.zeros_like(x, device=cpu),
        xp.arange(3, device=cpu),
        xp.asarray([1, 2], device=cpu),
        xp.asarray(x, device=cpu),
        xp.eye(2, device=cpu),
        xp.linspace(0, 1, 3, device=cpu, endpoint=False),
        xp.full((2,), 1, device=cpu),
        xp.full_like(x, 1, device=cpu),
        xp.astype(x, xp.float64, device=cpu),
        xp.from_dlpack(x, device=cpu),
        x.to_device(cpu),
    ):
        assert made.device == cpu == x.device


# ---- DLPack


@few
@given(hosts(), st.sampled_from([None, True, False]))
def test_from_dlpack(x, copy) -> None:
    host = np.array(x)
    for source, shared in (
        (host, host),
        (own := mine(x), own.numpy()),
        (strict.asarray(host), host),
    ):
        made = xp.from_dlpack(source, copy=copy)
        same(made, theirs(x))
        if x.size and shared is not host:
            assert np.shares_memory(shared, made.numpy()) is (copy is not True)


@few
@given(xps.arrays(dtype=xps.scalar_dtypes(), shape=SHAPES))
def test_to_dlpack(x) -> None:
    assert x.__dlpack_device__() == (1, 0)
    again = np.from_dlpack(x)
    np.testing.assert_array_equal(again, x.numpy())
    if x.numel():
        assert np.shares_memory(again, x.numpy())
        assert not np.shares_memory(np.from_dlpack(x, copy=True), x.numpy())
    for keywords in (
        {"stream": None, "max_version": None, "dl_device": None, "copy": None},
        {"stream": -1, "max_version": (0, 0)},
        {"max_version": (1, 0), "copy": False},
        {"max_version": (1, 1), "dl_device": (1, 0), "copy": True},
    ):
        assert "dltensor" in repr(x.__dlpack__(**keywords))


def test_dlpack_refuses_other_objects_gradients_and_devices() -> None:
    with pytest.raises(AttributeError, match="__dlpack__"):
        xp.from_dlpack([1, 2])
    with pytest.raises(BufferError):
        tlc.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError):
        xp.ones(2).__dlpack__(dl_device=(2, 0), copy=False)
