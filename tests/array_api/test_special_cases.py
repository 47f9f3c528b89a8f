"""Every special case that the standard lists for element-wise functions; see `special_cases`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.array_api.special_cases import (
    BASES,
    COMPLEX,
    EVEN,
    MIRRORED,
    ODD,
    OPERATORS,
    PAIRS,
    REAL,
    TURNED,
    Case,
    Wanted,
)
from tests.array_api.strategies import xp

FLOATS = {"float32": 4e-7, "float64": 1e-15}


def differs(found: float, wanted: float, signed: bool, rtol: float) -> bool:
    """Whether a part of a result is another number, or has the wrong sign where that counts."""
    if wanted != wanted:
        return found == found
    if signed and math.copysign(1, found) != math.copysign(1, wanted):
        return True
    found, wanted = abs(found), abs(wanted)
    if wanted in (0, math.inf):
        return found != wanted
    return not abs(found - wanted) <= rtol * wanted


def check(
    name: str,
    operands: list,
    cases: list[Wanted],
    dtype: str,
    texts: list[str],
    function: Callable[..., Any] | None = None,
) -> None:
    """Assert that ``xp.name(*operands)``, or those of `function`, are the wanted numbers."""
    result = (function or getattr(xp, name))(*operands)
    parts = (
        [xp.real(result), xp.imag(result)]
        if xp.isdtype(result.dtype, "complex floating")
        else [xp.astype(result, xp.float64)]
    )
    found = list(zip(*[part.tolist() for part in parts]))
    wrong = [
        f"{name}{sample} is {values}, not {wanted} ({text})"
        for values, (sample, wanted, signed), text in zip(found, cases, texts)
        if any(differs(*each, FLOATS[dtype]) for each in zip(values, wanted, signed, strict=True))
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} differ:", *wrong[:30]])


def wanted_by(cases: list[Case], dtype: str = "float64") -> tuple[list[Wanted], list[str]]:
    """Every sample of the cases and the text of its case, rounded to a dtype."""
    wanted, texts = [], []
    with np.errstate(over="ignore", under="ignore"):
        for case in cases:
            for sample in case.samples(lambda x: float(np.dtype(dtype).type(x))):
                wanted.append(sample)
                texts.append(case.text)
    return wanted, texts


def columns(wanted: list[Wanted], dtype: str) -> list[Any]:
    """The samples' operands as arrays."""
    return [
        xp.asarray(list(column), dtype=getattr(xp, dtype))
        for column in zip(*[sample for sample, *_ in wanted])
    ]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*REAL, *PAIRS])
def test_real(name: str, dtype: str) -> None:
    wanted, texts = wanted_by((REAL if name in REAL else PAIRS)[name], dtype)
    check(name, columns(wanted, dtype), wanted, dtype, texts)


@pytest.mark.parametrize("prefix", ["", "i"])
@pytest.mark.parametrize("symbol", [s for s in OPERATORS if OPERATORS[s] in PAIRS])
def test_operators(symbol: str, prefix: str) -> None:
    """Those of two tensors, but for PyTorch's floor of a quotient at infinities."""
    name = OPERATORS[symbol]
    wanted, texts = wanted_by(PAIRS[name])
    if name == "floor_divide":
        kept = [i for i, (sample, *_) in enumerate(wanted) if math.inf not in map(abs, sample)]
        wanted, texts = [wanted[i] for i in kept], [texts[i] for i in kept]
    function = getattr(operator, f"__{prefix}{symbol}__")
    check(name, columns(wanted, "float64"), wanted, "float64", texts, function)


@pytest.mark.parametrize("numbers_first", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_with_numbers(name: str, numbers_first: bool) -> None:
    """The same results where one operand is a Python number."""
    function = getattr(xp, name)
    wanted, _ = wanted_by(PAIRS[name])
    wrong = []
    for (x, y), (value, *_), (signed, *_) in wanted:
        found = (
            function(x, xp.asarray([y], dtype=xp.float64))
            if numbers_first
            else function(xp.asarray([x], dtype=xp.float64), y)
        )
        if differs(float(found[0]), value, signed, FLOATS["float64"]):
            wrong.append(f"{name}({x}, {y}) is {float(found[0])}, not {value}")
    assert not wrong, "\n".join(wrong[:30])


def turned(cases: list[Wanted], times: complex) -> Iterator[Wanted]:
    """Cases of f(z) = g(jz) / times from those of g."""
    for (a, b), (real, imag), (real_sign, imag_sign) in cases:
        if times == 1:
            yield (b, -a), [real, imag], [real_sign, imag_sign]
        else:
            yield (b, -a), [imag, -real], [imag_sign, real_sign]


def complex_cases(name: str, dtype: str) -> tuple[list[Wanted], list[str]]:
    """The cases of a function of complex numbers, those that follow by symmetry included."""
    if name in TURNED or name == "cos":
        cases, texts = complex_cases(TURNED.get(name, "cosh"), dtype)
        return list(turned(cases, 1 if name == "cos" else 1j)), texts
    if name in BASES:
        cases, texts = complex_cases("log", dtype)
        size = math.log(BASES[name])
        return [(z, [part / size for part in parts], sign) for z, parts, sign in cases], texts
    cases, texts = wanted_by(COMPLEX[name], dtype)
    if name in MIRRORED:
        cases = cases + [((a, -b), [re, -im], sign) for (a, b), (re, im), sign in cases]
        texts = texts + [f"conj {text}" for text in texts]
    if name in ODD or name in EVEN:
        factor = -1 if name in ODD else 1
        cases = cases + [
            ((-a, -b), [factor * re, factor * im], sign) for (a, b), (re, im), sign in cases
        ]
        texts = texts + [f"- {text}" for text in texts]
    return cases, texts


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*COMPLEX, *TURNED, "cos", *BASES])
def test_complex(name: str, dtype: str) -> None:
    wanted, texts = complex_cases(name, dtype)
    check(name, [complex_of(*columns(wanted, dtype))], wanted, dtype, texts)


def complex_of(real: Any, imag: Any) -> Any:
    """real + j imag, each infinity and NaN in its part."""
    z = xp.zeros(real.shape, dtype=xp.result_type(real.dtype, 1j))
    xp.real(z)[...] = real
    xp.imag(z)[...] = imag
    return z


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("size", [0.0, 2.5, math.inf, math.nan])
def test_signs_of_nan(size: float, sign: float) -> None:
    """copysign and signbit see the sign of NaN, and give it."""
    x = xp.asarray([size, -size], dtype=xp.float64)
    signed_nan = xp.copysign(xp.asarray([math.nan, math.nan], dtype=xp.float64), sign)
    assert xp.all(xp.signbit(signed_nan)) == (sign < 0)
    found = xp.copysign(x, signed_nan)
    assert xp.all(xp.signbit(found) == (sign < 0)) and xp.all(xp.isnan(found) == (size != size))
    assert size != size or xp.all(xp.abs(found) == size)


@pytest.mark.parametrize("name", ["add", "subtract"])
def test_complex_sums(name: str) -> None:
    """The parts of a sum follow the rules of real numbers, each by itself."""
    wanted, _ = wanted_by(PAIRS[name])
    operands = [complex_of(x, xp.flip(x)) for x in columns(wanted, "float64")]
    result = getattr(xp, name)(*operands)
    for part, order in ((xp.real(result), 1), (xp.imag(result), -1)):
        for found, (sample, (value,), (signed,)) in zip(part.tolist(), wanted[::order]):
            assert not differs(found, value, signed, 0), (name, sample)


@pytest.mark.parametrize("bound", [math.nan, 1.0])
def test_clip(bound: float) -> None:
    x = xp.asarray([math.nan, -2.0, 0.5, 3.0])
    for low, high in ((bound, None), (None, bound), (bound, 2.0), (-1.0, bound)):
        for kind in (float, xp.asarray):
            bounds = [value if value is None else kind(value) for value in (low, high)]
            found = xp.clip(x, *bounds).tolist()
            assert math.isnan(found[0]) and math.isnan(found[1]) == (bound != bound)


def test_small_complex_numbers() -> None:
    """Signs of the smallest numbers, which have no reciprocal."""
    parts = [[5e-324, 0.0, -3e-310], [0.0, -5e-324, 4e-310]]
    z = complex_of(*[xp.asarray(part, dtype=xp.float64) for part in parts])
    assert np.allclose(np.asarray(xp.sign(z)), [1, -1j, -0.6 + 0.8j])
