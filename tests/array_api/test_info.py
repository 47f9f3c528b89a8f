"""The namespace's constants, dtypes, promotion and what it says of itself."""

from __future__ import annotations

import math

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.judge import ALL, SIGNED, few, hosts, mine, same, theirs

xp = tlc.zeros(1).__array_namespace__()
NAMES = [name for name in xp.__array_namespace_info__().dtypes() if name != "bool"]
NUMBERS = {True: "b", 3: "i", 2.5: "f", 1j: "c"}


def test_names_and_constants() -> None:
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(xp.nan)
    assert xp.float32 is tlc.float32 and xp.bool is tlc.bool and xp.int64 is tlc.int64
    assert set(xp.__all__) <= set(dir(xp))


def test_versions() -> None:
    x = tlc.zeros(1)
    assert x.__array_namespace__(api_version="2022.12") is xp
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match=r"2031\.12"):
        x.__array_namespace__(api_version="2031.12")


def test_kinds_of_dtypes() -> None:
    assert xp.isdtype(xp.int32, "signed integer") and not xp.isdtype(xp.uint8, "signed integer")
    assert xp.isdtype(xp.uint8, "integral") and xp.isdtype(xp.complex64, "numeric")
    assert not xp.isdtype(xp.bool, "numeric")
    assert xp.isdtype(xp.float64, ("bool", xp.float64)) and not xp.isdtype(xp.float64, xp.float32)
    with pytest.raises(ValueError, match="floating"):
        xp.isdtype(xp.float32, "floating")
    with pytest.raises(TypeError):
        xp.isdtype(xp.float32, 3)


def test_limits() -> None:
    assert xp.finfo(tlc.ones(2)).eps == 2.0**-23 and xp.finfo(xp.complex128).bits == 64
    assert xp.iinfo(tlc.ones(2, dtype=tlc.int16)).max == 2**15 - 1
    assert xp.iinfo(xp.uint8).min == 0


def promotes(names: list[str]) -> bool:
    """Whether the standard says what these dtypes give: those of one kind, real and complex."""
    kinds = {np.dtype(name).kind for name in names}
    fits = not ({"i", "u"} <= kinds and "uint64" in names)
    return (kinds <= {"i", "u"} and fits) or kinds <= {"f", "c"} or kinds == {"b"}


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(ALL), min_size=1, max_size=3))
def test_promotion(names: list[str]) -> None:
    if not promotes(names):
        return
    wanted = strict.result_type(*[getattr(strict, name) for name in names])
    wanted = getattr(xp, str(wanted).rpartition(".")[2])
    assert xp.result_type(*[getattr(xp, name) for name in names]) is wanted
    arrays = [tlc.zeros((2,) * i, dtype=getattr(xp, name)) for i, name in enumerate(names)]
    assert xp.result_type(*arrays) is wanted
    assert xp.result_type(arrays[0], *[array.dtype for array in arrays[1:]]) is wanted
    assert xp.concat([xp.reshape(array, (-1,)) for array in arrays]).dtype is wanted
    assert xp.stack([array.sum(dtype=array.dtype) for array in arrays]).dtype is wanted


@pytest.mark.parametrize("name", [*SIGNED, "bool"])
def test_no_dtype_holds_both(name: str) -> None:
    if name == "bool":
        assert xp.result_type(xp.bool, xp.uint64) is xp.uint64  # as PyTorch has it
        return
    for pair in ((name, "uint64"), ("uint64", name)):
        with pytest.raises(TypeError, match="uint64"):
            xp.result_type(*[getattr(xp, one) for one in pair])


@pytest.mark.parametrize("name", ALL)
def test_casts_are_the_judges(name: str) -> None:
    for other in ALL:
        x = xp.ones((), dtype=getattr(xp, name))
        found = xp.can_cast(x.dtype, getattr(xp, other))
        assert type(found) is bool and xp.can_cast(x, getattr(xp, other)) is found
        integers = {np.dtype(name).kind, np.dtype(other).kind} <= {"i", "u"}
        if integers or promotes([name, other]):
            wanted = strict.can_cast(getattr(strict, name), getattr(strict, other))
            assert found is wanted, (name, other)


@few
@given(hosts(), st.sampled_from(ALL), st.booleans())
def test_astype(x, name, copy) -> None:
    kind = np.dtype(name).kind
    if x.dtype.kind == "c" and kind not in "bc":
        with pytest.raises(TypeError, match="real part"):
            xp.astype(mine(x), getattr(xp, name))
        return
    if x.dtype.kind == "f" and kind in "iu":
        x = np.asarray(np.clip(np.nan_to_num(np.trunc(x)), 0, 100))
    source, wanted = mine(x), theirs(x.astype(name))
    same(xp.astype(source, getattr(xp, name), copy=copy), wanted)
    made = xp.astype(source, getattr(xp, name), copy=copy)
    assert (made is source) is (not copy and x.dtype.name == name)
    if x.size:
        shared = np.shares_memory(made.numpy(), source.numpy())
        assert shared is (not copy and x.dtype.name == name)


KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating",
         "complex floating", "numeric"]  # fmt: skip


@few
@given(st.sampled_from(ALL), st.lists(st.sampled_from([*KINDS, *ALL]), min_size=1, max_size=3))
def test_isdtype_agrees_with_array_api_strict(name: str, kinds: list[str]) -> None:
    def asked(namespace):
        words = [kind if kind in KINDS[1:] else getattr(namespace, kind) for kind in kinds]
        dtype = getattr(namespace, name)
        return [namespace.isdtype(dtype, words[0]), namespace.isdtype(dtype, tuple(words))]

    assert asked(xp) == asked(strict)
    words = tuple([kind for kind in kinds if kind in KINDS])
    found, wanted = [space.__array_namespace_info__().dtypes(kind=words) for space in (xp, strict)]
    assert set(found) == set(wanted)


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_the_judges(name: str) -> None:
    word = "iinfo" if "int" in name else "finfo"
    attributes = ["bits", "max", "min", *(["eps", "smallest_normal"] if word == "finfo" else [])]
    found = getattr(xp, word)(getattr(xp, name))
    wanted = getattr(strict, word)(getattr(strict, name))
    for attribute in attributes:
        value = getattr(found, attribute)
        assert type(value) is type(getattr(wanted, attribute))
        assert value == getattr(wanted, attribute)
    assert found.dtype is getattr(xp, str(wanted.dtype).rpartition(".")[2])
    assert getattr(xp, word)(xp.ones(2, dtype=getattr(xp, name))) == found


def test_wrong_arguments() -> None:
    info = xp.__array_namespace_info__()
    with pytest.raises(ValueError, match="unknown kind"):
        info.dtypes(kind="floating")
    for call in (
        lambda: xp.isdtype("float32", "real floating"),
        lambda: xp.isdtype(xp.float32, (("real floating",),)),
        lambda: xp.finfo("float32"),
        lambda: xp.finfo(xp.int32),
        lambda: xp.iinfo(xp.float32),
    ):
        with pytest.raises(TypeError):
            call()


@given(st.sampled_from(NAMES), st.sampled_from(list(NUMBERS)))
def test_promotion_with_numbers(name: str, number: complex) -> None:
    dtype = getattr(xp, name)
    order = "biufc"
    if number == 1j and dtype.kind == "f":
        assert xp.result_type(dtype, number) is dtype.to_complex()
    elif order.index(NUMBERS[number]) <= order.index(dtype.kind.replace("u", "i")) and not (
        number == 1j and dtype.kind != "c"
    ):
        assert xp.result_type(number, dtype) is dtype
    else:
        with pytest.raises(TypeError):
            xp.result_type(dtype, number)


def test_casts() -> None:
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int16, xp.int8)
    assert xp.can_cast(tlc.ones(2), xp.complex64) and not xp.can_cast(xp.float64, xp.float32)
    with pytest.raises(ValueError, match="at least one array"):
        xp.result_type(1.0, 2)


def test_info() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_device() == tlc.device("cpu") and info.devices()[0] == tlc.device("cpu")
    assert type(info.devices()) is tuple
    for device in info.devices():
        for dtype in info.dtypes(device=device).values():
            assert xp.empty(1, dtype=dtype, device=device).device == device
        assert info.default_dtypes(device=device) == info.default_dtypes()
    assert info.capabilities()["boolean indexing"] and info.capabilities()["max dimensions"] == 64
    assert info.default_dtypes() == {
        "real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64,
        "indexing": xp.int64,
    }  # fmt: skip
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}


def test_dlpack() -> None:
    host = np.arange(6.0).reshape(2, 3)
    x = xp.from_dlpack(host)
    host[0, 0] = 9
    assert x[0, 0] == 9 and xp.from_dlpack(host, copy=True).tolist() == host.tolist()
    assert np.shares_memory(xp.from_dlpack(host, device="cpu", copy=False).numpy(), host)
    again = np.from_dlpack(x)
    assert np.shares_memory(again, host)
