"""The namespace's constants, dtypes, promotion and what it says of itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc

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


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3))
def test_promotion_is_numpys(names: list[str]) -> None:
    """As far as the standard has it: within a kind, and from real to complex."""
    kinds = {np.dtype(name).kind for name in names}
    if {"uint16", "uint32", "uint64"} & {*names}:  # they promote with nothing else, as in PyTorch
        return
    if kinds <= {"i", "u"} or kinds <= {"f", "c"}:
        wanted = np.result_type(*map(np.dtype, names))
        found = xp.result_type(*[getattr(xp, name) for name in names])
        assert found is getattr(xp, wanted.name)
        arrays = [tlc.zeros((2,) * i, dtype=getattr(xp, name)) for i, name in enumerate(names)]
        assert xp.result_type(*arrays) is found


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
    with pytest.raises(TypeError):
        xp.result_type(1.0, 2)


def test_info() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_device() == tlc.device("cpu") and info.devices()[0] == tlc.device("cpu")
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
