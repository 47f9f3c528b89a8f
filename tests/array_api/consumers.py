"""Calls of other libraries, written once and made with NumPy's arrays and with tensors.

A call is a line of text, `"logsumexp(x, axis=0)"`, in which the library's functions and the
samples below go by their names, and `xp` is the namespace. With tensors it must give what it gives
with arrays: tensors of the same dtypes and values (or numbers), none of them arrays of NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc

_draw = np.random.default_rng(0)
_square = _draw.standard_normal((4, 4))
SAMPLES: dict[str, np.ndarray] = {
    "x": _draw.standard_normal((20, 4)),
    "y": _draw.standard_normal((20, 4)),
    "v": _draw.standard_normal(20),
    "w": _draw.standard_normal(20),
    "t": np.linspace(0.0, 2.0, 21),
    "z": _draw.standard_normal(6) + 1j * _draw.standard_normal(6),
    "p": _draw.uniform(0.2, 3.0, 6),
    "q": _draw.uniform(0.2, 3.0, 6),
    "u": _draw.uniform(0.05, 0.95, 6),
    "n": np.array([1, 2, 3, 2, 1, 4]),
    "labels": np.array([0, 1, 1, 0, 2, 2, 0, 1, 2, 1, 0, 1, 2, 2, 0, 1, 1, 0, 2, 0]),
    "guess": np.array([0, 1, 1, 0, 2, 1, 0, 1, 2, 2, 0, 0, 2, 2, 1, 1, 1, 0, 2, 0]),
    "mask": _draw.uniform(size=(9, 12)) > 0.4,
    "image": _draw.standard_normal((9, 12)),
    "matrix": _square,
    "symmetric": _square @ _square.T + np.eye(4),
    "float32": _draw.standard_normal((5, 3)).astype(np.float32),
}


def arrays(convert: Callable[[Any], Any], xp: Any) -> dict[str, Any]:
    """The samples as arrays of one library, its namespace `xp`, and `arr` to make more."""
    made = {name: convert(value.copy()) for name, value in SAMPLES.items()}
    return made | {"xp": xp, "arr": lambda value, dtype=None: convert(np.array(value, dtype))}


def of_numpy() -> dict[str, Any]:
    return arrays(lambda value: value, np)


def of_tensors() -> dict[str, Any]:
    return arrays(tlc.from_numpy, tlc.array_api)


@dataclass(frozen=True)
class Rule:
    """How near, and whether floats may be of the default dtype where NumPy's are float64."""

    rtol: float = 1e-9
    atol: float = 1e-11
    of_default_dtype: bool = False


EXACT = Rule()
#: What the default dtype, float32, leaves of NumPy's values.
SINGLE = Rule(rtol=1e-5, atol=1e-6, of_default_dtype=True)


def same_array(found: Any, wanted: Any, where: str, rule: Rule) -> None:
    if isinstance(found, tlc.Tensor):
        dtypes = [wanted.dtype.name] + ["float32"] * rule.of_default_dtype
        assert str(found.dtype).removeprefix("torch.") in dtypes, (where, found.dtype, wanted.dtype)
        assert tuple(found.shape) == wanted.shape, (where, found.shape, wanted.shape)
    else:
        assert not isinstance(found, (np.ndarray, np.generic)), f"{where}: left the tensors"
        assert wanted.ndim == 0, f"{where}: {type(found)} for an array"
    assert not wanted.size or not np.isnan(wanted).all(), f"{where}: a sample that shows nothing"
    close = np.testing.assert_allclose
    close(np.asarray(found), np.asarray(wanted), rtol=rule.rtol, atol=rule.atol, err_msg=where)


def same(found: Any, wanted: Any, rule: Rule, where: str = "result") -> None:
    """Assert that `found`, made of tensors, is what `wanted` is, made of NumPy's arrays."""
    if isinstance(wanted, (np.ndarray, np.generic)):
        same_array(found, wanted, where, rule)
    elif isinstance(wanted, Mapping):
        assert set(found) == set(wanted), where
        for key in wanted:
            same(found[key], wanted[key], rule, f"{where}[{key!r}]")
    elif isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted), where
        for number, (one, other) in enumerate(zip(found, wanted)):
            same(one, other, rule, f"{where}[{number}]")
    elif isinstance(wanted, float):
        number = found.item() if isinstance(found, tlc.Tensor) else found
        close = math.isclose(number, wanted, rel_tol=rule.rtol, abs_tol=rule.atol)
        assert close or (math.isnan(number) and math.isnan(wanted)), (where, number, wanted)
    elif hasattr(wanted, "__dict__"):  # a result with fields
        public = [{k: v for k, v in vars(o).items() if k[0] != "_"} for o in (found, wanted)]
        same(*public, rule, f"{where}.")
    else:
        assert type(found) is type(wanted) and found == wanted, (where, found, wanted)


def check(
    call: str, home: Any, rule: Rule = EXACT, names: Callable[[dict[str, Any]], dict] = dict
) -> None:
    """Make one call, its functions being those of the module `home`, and compare.

    `names` makes what the call names besides functions and samples.
    """
    wanted, found = [
        eval(call, {**vars(home), **given, **names(given)}) for given in (of_numpy(), of_tensors())
    ]
    same(found, wanted, rule)


def lines(text: str) -> list[str]:
    """The calls in a text, one a line."""
    return [line for line in text.splitlines() if line.strip()]


def refused(reasons: dict[str, str]) -> list[Any]:
    """The calls that fail for a reason of the library's; the test that one no longer does fails."""
    return [pytest.param(call, marks=pytest.mark.xfail(reason=reasons[call])) for call in reasons]
