"""What the tables of calls of other libraries leave out; how results are compared; gradients."""

from __future__ import annotations

import inspect
import re
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.array_api import (
    test_scikit_learn,
    test_scipy_modules,
    test_scipy_ndimage,
    test_scipy_rotations,
    test_scipy_signal,
    test_scipy_special,
    test_scipy_stats,
)
from tests.array_api.consumers import SINGLE, check, lines

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
served = pytest.importorskip("scipy._lib._array_api", reason="SciPy is not installed")
special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
learn = pytest.importorskip("sklearn.utils", reason="scikit-learn is not installed")

#: SciPy's own helpers, operators (which are called by their signs), and what takes no arrays.
NOT_CALLED = r"_.*|normalize_dual_quaternion|identity"


def words(*tables: ModuleType) -> set[str]:
    """All names in modules of tests."""
    return set(re.findall(r"\w+", "".join([inspect.getsource(table) for table in tables])))


def test_scipy_serves_other_arrays_than_numpys() -> None:
    assert served.SCIPY_ARRAY_API, "SciPy was imported before tests/conftest.py said what it is for"


def test_every_function_of_scipy_is_called() -> None:
    if not scipy.__version__.startswith("1.17."):
        pytest.skip("other versions of SciPy serve other functions")
    called = words(
        test_scipy_modules, test_scipy_ndimage, test_scipy_rotations, test_scipy_signal,
        test_scipy_special, test_scipy_stats,
    )  # fmt: skip
    wanted = {
        function.__name__
        for function, capabilities in served.xp_capabilities_table.items()
        if not capabilities["np_only"]
    }
    assert len(wanted) > 400
    missing = {name for name in wanted - called if not re.fullmatch(NOT_CALLED, name)}
    assert not missing


@pytest.mark.filterwarnings("ignore::FutureWarning")  # some classes are on their way out
def test_every_estimator_is_called() -> None:
    found = set()
    for name, estimator in learn.all_estimators():
        try:
            tags = learn.get_tags(estimator())
        except (TypeError, AttributeError):  # it takes other estimators
            continue
        if tags.array_api_support:
            found.add(name)
    assert len(found) > 10
    assert not found - words(test_scikit_learn)


HOME = SimpleNamespace(__builtins__=__builtins__, np=np, tensor=tlc.tensor)


@pytest.mark.parametrize(
    "wrong",
    [
        "v if xp is np else v + 1e-6",
        "v if xp is np else xp.astype(v, xp.float32)",
        "v if xp is np else v[None]",
        "v if xp is np else np.asarray(v)",
        "[v, w] if xp is np else [v]",
        "(v, 2.0) if xp is np else (v, 2.1)",
        "dict(a=v) if xp is np else dict(b=v)",
        "1 if xp is np else True",
        "v * np.nan if xp is np else v",
    ],
)
def test_comparison_sees(wrong: str) -> None:
    with pytest.raises(AssertionError):
        check(wrong, HOME)


def test_comparison_takes_what_is_near() -> None:
    check("(v, [x], {'a': z}, 2.0) if xp is np else (v + 1e-14, [x], {'a': z}, tensor(2.0))", HOME)
    check("v if xp is np else xp.astype(v, xp.float32)", HOME, SINGLE)


# What the libraries ask of arrays and namespaces beyond the standard.
BEYOND = """
np.asarray(x).sum(0).tolist()
len(x)
[row for row in x]
x.sum(axis=0)
x.sum(axis=(0, 1), keepdims=True)
x.mean(axis=1)
x.any()
(x > 0).all(axis=0)
x.view(float)
z.view(float)
x[[3, 1, 1]]
x[labels, 1]
x[labels[:, None], arr([0, 2])]
x[np.array([0, 2])]
x[x > 0]
written(x, labels, 0.5)
written(x, (arr([0, 1]), arr([2, 3])), v[:2])
written(x, x > 0.5, 0.0)
xp.diff(v, 2)
xp.diag(p)
xp.diag(symmetric, 1)
xp.reshape(x, [4, -1])
xp.full((2, 3), arr(2.5))
xp.full(3, arr(2))
xp.where(v > 0)
float(v[0]) + int(labels[1]) + bool(v[0])
x * np.float64(2.5) - np.float64(0.5) * x
"""


def written(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


@pytest.mark.parametrize("call", lines(BEYOND))
def test_beyond_the_standard(call: str) -> None:
    check(call, HOME, names=lambda given: {"written": written})


def test_numpy_may_take_tensors() -> None:
    assert not hasattr(tlc.Tensor, "__array_ufunc__")  # None would refuse np.sqrt(tensor)
    assert isinstance(np.sqrt(tlc.ones(3)), tlc.Tensor)


@pytest.mark.parametrize(
    ("name", "function"),
    {
        "logsumexp": lambda x: special.logsumexp(x, axis=0),
        "softmax": lambda x: special.softmax(x, axis=1),
        "xlogy": lambda x: special.xlogy(x, x * x + 1),
        "zscore": lambda x: stats.zscore(x),
        "skew": lambda x: stats.skew(x),
    }.items(),
)
def test_gradients_through_scipy(name: str, function: Any) -> None:
    x = tlc.randn(5, 3, dtype=tlc.float64, requires_grad=True)
    assert tlc.autograd.gradcheck(function, x)
