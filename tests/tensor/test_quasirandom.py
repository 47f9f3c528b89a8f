"""Sobol' points are PyTorch's, bit for bit, scrambled ones too."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc

LIBRARIES = (tlc, torch)

PROGRAMS = {
    "points": lambda make: make(7).draw(37),
    "many dimensions": lambda make: make(1111).draw(5),
    "one": lambda make: make(3).draw(),
    "in parts": lambda make: [(e := make(3)).draw(3), e.draw(), e.draw(6), e.num_generated],
    "fast_forward": lambda make: make(4).fast_forward(5).fast_forward(2).draw(3),
    "scrambled": lambda make: make(5, scramble=True, seed=3).draw(20),
    "scrambled, one": lambda make: make(5, True, 3).draw(),
    "scrambled, later": lambda make: make(2, True, 7).fast_forward(9).draw(2),
    "reset": lambda make: [(e := make(2, True, 7)).draw(3), e.reset().draw(2)],
    "powers": lambda make: [(e := make(2)).draw_base2(2), e.draw_base2(2)],
    "no power": lambda make: [(e := make(2)).draw(3), e.draw_base2(2)],
    "repr": lambda make: repr([make(3), make(3, True), make(2, True, 5), make(2, seed=4)]),
    "no dimension": lambda make: make(0),
    "too many dimensions": lambda make: make(30000),
    "directions": lambda make: make(300).sobolstate,
}


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(item) for item in value]
    return (str(value.dtype), value.tolist()) if hasattr(value, "tolist") else value


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str) -> None:
    results: list[Any] = []
    for lib in LIBRARIES:
        try:
            results.append(plain(PROGRAMS[name](lib.quasirandom.SobolEngine)))
        except ValueError as error:
            results.append(str(error).split("[")[0])
    assert results[0] == results[1]


def test_the_default_generator_and_dtypes() -> None:
    seen = []
    for lib in LIBRARIES:
        lib.manual_seed(3)
        engine = lib.quasirandom.SobolEngine(2, scramble=True)
        out = lib.empty(0, dtype=lib.float64)
        drawn = engine.draw(3, out=out, dtype=lib.float64)
        assert drawn is out
        seen.append((out.tolist(), lib.rand(2).tolist()))
    assert seen[0] == seen[1]
