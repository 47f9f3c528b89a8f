"""Libraries that are written for any array namespace work on tensors and give tensors back.

The results are those that the same functions give for NumPy arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when SciPy is imported
VALUES = np.random.default_rng(0).standard_normal((20, 4))
COUNTS = np.array([[0, 1, 1, 0, 2, 2], [0, 1, 0, 0, 2, 1]])


def same(function: Callable[..., Any], *arrays: np.ndarray, rtol: float = 1e-9) -> None:
    """Assert that `function` of tensors is a tensor, or a number, and what it is of arrays."""
    wanted = function(*arrays)
    found = function(*[tlc.from_numpy(array.copy()) for array in arrays])
    if isinstance(wanted, np.ndarray) and wanted.ndim:
        assert isinstance(found, tlc.Tensor)
        assert str(found.dtype).endswith(wanted.dtype.name)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=1e-11)


# ---- array_api_compat, array_api_extra


def test_compat() -> None:
    compat = pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    x = tlc.zeros(2, 3)
    assert compat.is_array_api_obj(x) and compat.array_namespace(x) is x.__array_namespace__()
    assert compat.device(x) == x.device and compat.size(x) == 6
    assert compat.to_device(x, "cpu").device.type == "cpu"


EXTRA = {
    "apply_where": lambda xpx, x: xpx.apply_where(x > 0, x, lambda x: x * 2, fill_value=0.0),
    "at": lambda xpx, x: xpx.at(x, 0).set(1.0),
    "atleast_nd": lambda xpx, x: xpx.atleast_nd(x, ndim=3),
    "cov": lambda xpx, x: xpx.cov(x.T),
    "create_diagonal": lambda xpx, x: xpx.create_diagonal(x[0]),
    "isclose": lambda xpx, x: xpx.isclose(x, x + 1e-12),
    "kron": lambda xpx, x: xpx.kron(x[:2], x[:3]),
    "pad": lambda xpx, x: xpx.pad(x, 1),
    "sinc": lambda xpx, x: xpx.sinc(x),
}


@pytest.mark.parametrize("name", EXTRA)
def test_extra(name: str) -> None:
    xpx = pytest.importorskip("array_api_extra", reason="array-api-extra is not installed")
    same(lambda x: EXTRA[name](xpx, x), VALUES)


# ---- scikit-learn


def learn(function: Callable[..., Any], *arrays: np.ndarray, rtol: float = 1e-9) -> None:
    sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    with sklearn.config_context(array_api_dispatch=True):
        same(function, *arrays, rtol=rtol)


ESTIMATORS = {
    "preprocessing": ("MinMaxScaler()", "StandardScaler()", "MaxAbsScaler()", "Normalizer()"),
    "decomposition": ("PCA(2, svd_solver='full')", "PCA(2, svd_solver='covariance_eigh')"),
}


@pytest.mark.parametrize(
    ("module", "text"), [(m, text) for m, texts in ESTIMATORS.items() for text in texts]
)
def test_estimators(module: str, text: str) -> None:
    home = pytest.importorskip(f"sklearn.{module}", reason="scikit-learn is not installed")
    make = lambda: eval(text, vars(home))
    learn(lambda x: make().fit_transform(x), VALUES)


def test_ridge() -> None:
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    learn(lambda x, y: linear.Ridge(solver="svd").fit(x, y).predict(x), VALUES, VALUES[:, 0] * 2)


CLASSES = "accuracy_score zero_one_loss hamming_loss confusion_matrix".split()
ERRORS = "mean_squared_error mean_absolute_error r2_score mean_pinball_loss max_error".split()
PAIRS = "cosine_similarity euclidean_distances rbf_kernel linear_kernel polynomial_kernel".split()


@pytest.mark.parametrize("name", [*CLASSES, *ERRORS])
def test_metrics(name: str) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    if name in CLASSES:  # shares of counts: floats of the default dtype, float32
        learn(getattr(metrics, name), *COUNTS, rtol=1e-6)
    else:
        learn(getattr(metrics, name), VALUES[:, 0], VALUES[:, 0] + 0.1 * VALUES[:, 1])


@pytest.mark.parametrize("name", PAIRS)
def test_pairwise(name: str) -> None:
    pairs = pytest.importorskip("sklearn.metrics.pairwise", reason="scikit-learn is not installed")
    learn(getattr(pairs, name), VALUES, VALUES[:5])


# ---- SciPy

def special(name: str) -> Callable[..., Any]:
    return lambda m, x: getattr(m, name)(abs(x) * 0.3)


SCIPY = {
    "special": {
        **{
            name: special(name)
            for name in "expit logit log_ndtr ndtr entr i0 i1 gammaln erf erfc".split()
        },
        "logsumexp": lambda m, x: m.logsumexp(x, axis=0),
        "softmax": lambda m, x: m.softmax(x, axis=0),
    },
    "stats": {
        "skew": lambda m, x: m.skew(x),
        "kurtosis": lambda m, x: m.kurtosis(x),
        "zscore": lambda m, x: m.zscore(x),
        "moment": lambda m, x: m.moment(x, 3),
        "gmean": lambda m, x: m.gmean(abs(x)),
        "entropy": lambda m, x: m.entropy(abs(x)),
        "pearsonr": lambda m, x: m.pearsonr(x[:, 0], x[:, 1]).statistic,
        "ttest_1samp": lambda m, x: m.ttest_1samp(x, 0.0).statistic,
    },
    "signal": {
        "detrend": lambda m, x: m.detrend(x),
        "convolve": lambda m, x: m.convolve(x[:, 0], x[:, 1]),
        "fftconvolve": lambda m, x: m.fftconvolve(x[:, 0], x[:, 1]),
        "hilbert": lambda m, x: m.hilbert(x[:, 0]).real,
    },
    "cluster.vq": {"whiten": lambda m, x: m.whiten(x)},
    "ndimage": {"gaussian_filter": lambda m, x: m.gaussian_filter(x, 1.0)},
}


@pytest.mark.parametrize(("module", "name"), [(m, name) for m in SCIPY for name in SCIPY[m]])
def test_scipy(module: str, name: str) -> None:
    home = pytest.importorskip(f"scipy.{module}", reason="SciPy is not installed")
    same(lambda x: SCIPY[module][name](home, x), VALUES)


# ---- einops


def mixed(einops: Any, x: Any) -> list:
    return [
        einops.rearrange(x, "b (h w) c -> (b h) c w", h=2),
        einops.reduce(x, "b (h w) c -> b c", "max", w=3),
        einops.reduce(x, "b h c -> b", "mean"),
        einops.reduce(x, "b h c -> c", "prod"),
        einops.repeat(x, "b h c -> b (k h) c", k=2),
        einops.einsum(x, x, "b h c, b k c -> b h k"),
        einops.pack([x[:, 0], x], "b * c")[0],
        einops.reduce(x > 0, "b h c -> h", "any"),
    ]


def test_einops() -> None:
    einops = pytest.importorskip("einops", reason="einops is not installed")
    pytest.importorskip("tensorflow_lite_clone.utils.einops")
    host = VALUES[:, :3].reshape(2, 6, 5)
    x = tlc.from_numpy(host.copy()).requires_grad_()
    found = mixed(einops, x)
    for mine, wanted in zip(found, mixed(einops, host), strict=True):
        np.testing.assert_allclose(einops.asnumpy(mine), wanted, rtol=1e-9)
    sum(y.sin().sum() for y in found[:-1]).backward()
    step, direction = 1e-6, np.cos(host)
    ends = [
        sum(np.sin(y).sum() for y in mixed(einops, host + s * step * direction)[:-1])
        for s in (1, -1)
    ]
    slope = (x.grad.numpy() * direction).sum()
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), slope, rtol=1e-6)


def test_einops_without_a_backend() -> None:
    array_api = pytest.importorskip("einops.array_api", reason="einops is not installed")
    same(lambda x: array_api.rearrange(x, "(a b) c -> b a c", a=4), VALUES)
    same(lambda x: array_api.reduce(x, "(a b) c -> a c", "sum", a=4), VALUES)
