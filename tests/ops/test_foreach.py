"""Operations on lists of tensors: what PyTorch gives for the same call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc

NAMES = sorted(name for name in dir(torch) if name.startswith("_foreach_"))
#: Further arguments, by operation: of numbers, lists of numbers, tensors and lists of them.
NUMBERS = [(2.0,), ([2.0, 0.5],), ("list",), ("tensor",)]
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    **dict.fromkeys(["add", "div", "mul", "sub"], NUMBERS),
    **dict.fromkeys(["clamp_max", "clamp_min", "maximum", "minimum", "pow"], NUMBERS[:3]),
    **dict.fromkeys(
        ["addcdiv", "addcmul"], [("list", "list"), ("list", "list", 2), ("list", "list", [2, 3.0])]
    ),
    "copy": [("list",)],
    "lerp": [("list", 0.25), ("list", [0.25, 2.0]), ("list", "list")],
    "mm": [("list",)],
    **dict.fromkeys(["norm", "powsum"], [(), (1,), (float("inf"),)]),
}


def outcome(lib: Any, name: str, arguments: tuple[Any, ...]) -> Any:
    """What a call gives and leaves behind: lists of numbers, or the type of the error."""
    base = lib.arange(1.0, 5.0).reshape(2, 2) / 8
    tensors = [base.clone(), base + 0.25]
    forms = {"list": [base + 0.5, base.clone()], "tensor": lib.tensor(2.0)}
    given = [forms.get(x, x) if isinstance(x, str) else x for x in arguments]
    try:
        result = getattr(lib, name)(tensors, *given)
    except (RuntimeError, TypeError) as error:
        return type(error), str(error).partition("(")[0][:40]
    if name.endswith("_"):
        assert result is None or all(a is b for a, b in zip(result, tensors, strict=True))
    else:
        assert isinstance(result, tuple)
    return [x.tolist() for x in (*(result or ()), *tensors)]


@pytest.mark.parametrize("name", NAMES)
def test_results(name: str) -> None:
    operation = name.removeprefix("_foreach_").rstrip("_")
    for arguments in ARGUMENTS.get(operation, [()]):
        ours, theirs = (outcome(lib, name, arguments) for lib in (tlc, torch))
        assert isinstance(theirs, list), theirs
        for x, y in zip(ours, theirs, strict=True):
            assert tlc.allclose(tlc.tensor(x), tlc.tensor(y), 1e-5, 1e-6), (name, arguments)


def test_keywords() -> None:
    for lib in (tlc, torch):
        pair = [lib.ones(2), lib.ones(3)]
        assert lib._foreach_add(pair, pair, alpha=2)[1].tolist() == [3.0] * 3
        assert lib._foreach_addcmul(pair, pair, pair, value=4)[0].tolist() == [5.0] * 2
        assert lib._foreach_norm(pair, ord=1, dtype=lib.float64)[1].dtype is lib.float64


def test_errors() -> None:
    for lib in (tlc, torch):
        pair = [lib.ones(2), lib.ones(3)]
        with pytest.raises(RuntimeError, match="at least one tensor"):
            lib._foreach_add([], 1)
        with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
            lib._foreach_add(pair, pair[:1])
        with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
            lib._foreach_mul(pair, [1.0])
        with pytest.raises(TypeError):
            lib._foreach_add(3, pair)
