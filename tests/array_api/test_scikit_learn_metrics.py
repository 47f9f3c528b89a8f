"""scikit-learn's metrics and distances on tensors: all that it documents for any namespace."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.array_api.consumers import SINGLE, check, lines, refused

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
HOME = SimpleNamespace(
    **{
        name: thing
        for home in ("metrics", "metrics.cluster", "metrics.pairwise")
        for name, thing in vars(importlib.import_module(f"sklearn.{home}")).items()
        if not name.startswith("__")
    }
)

# yes, said: classes 0 and 1; labels, guess: three classes; many, saids: three labels each;
# chance: of class 1; shares: of the three classes; weight: of the samples.
CLASSES = """
accuracy_score(labels, guess, sample_weight=weight)
accuracy_score(many, saids, normalize=False)
average_precision_score(yes, chance)
balanced_accuracy_score(yes, said)
brier_score_loss(yes, chance)
brier_score_loss(labels, shares)
brier_score_loss(many, shares, sample_weight=weight)
cohen_kappa_score(yes, said)
cohen_kappa_score(labels, guess, weights="quadratic")
confusion_matrix(yes, said)
confusion_matrix(labels, guess)
confusion_matrix(labels, guess, normalize="true")
confusion_matrix_at_thresholds(yes, chance)
d2_brier_score(yes, chance)
d2_brier_score(labels, shares)
det_curve(yes, chance)
f1_score(yes, said)
f1_score(labels, guess, average="macro")
f1_score(many, saids, average=None)
fbeta_score(yes, said, beta=0.5)
fbeta_score(labels, guess, beta=2, average="weighted")
fbeta_score(many, saids, beta=2, average="samples", zero_division=1.0)
hamming_loss(labels, guess, sample_weight=weight)
hamming_loss(many, saids)
log_loss(yes, chance)
log_loss(labels, shares, sample_weight=weight)
log_loss(many, shares)
multilabel_confusion_matrix(yes, said)
multilabel_confusion_matrix(labels, guess, sample_weight=weight)
multilabel_confusion_matrix(many, saids, samplewise=True)
precision_recall_curve(yes, chance)
recall_score(yes, said)
roc_curve(yes, chance)
roc_curve(yes, chance, drop_intermediate=False)
zero_one_loss(labels, guess, normalize=False)
calinski_harabasz_score(x, labels)
davies_bouldin_score(x, labels)
"""
# Shares of counts are floats of the default dtype.
SHARES = """
accuracy_score(yes, said)
average_precision_score(labels, shares)
average_precision_score(many, shares, average=None)
balanced_accuracy_score(labels, guess, adjusted=True)
d2_log_loss_score(yes, chance)
d2_log_loss_score(labels, shares)
hamming_loss(yes, said)
jaccard_score(yes, said)
jaccard_score(labels, guess, average="micro")
jaccard_score(many, saids, average=None)
precision_recall_fscore_support(labels, guess)
precision_score(yes, said)
precision_score(labels, guess, average=None)
precision_score(many, saids, average="micro")
recall_score(labels, guess, average="macro")
recall_score(many, saids, average=None)
zero_one_loss(yes, said)
zero_one_loss(many, saids)
"""
REFUSED = {
    "classification_report(labels, guess)": "scikit-learn prints str(label), as for PyTorch's"
}
ERRORS = """
d2_absolute_error_score(v, near)
d2_absolute_error_score(x, y, multioutput="raw_values")
d2_pinball_score(v, near)
d2_pinball_score(v, near, alpha=0.1)
d2_pinball_score(x, y, alpha=0.9)
d2_tweedie_score(above, beyond, power=1.5)
explained_variance_score(v, near)
explained_variance_score(x, y, multioutput="raw_values")
max_error(v, near)
mean_absolute_error(v, near)
mean_absolute_error(x, y, multioutput="raw_values")
mean_absolute_percentage_error(v, near)
mean_absolute_percentage_error(x, y)
mean_gamma_deviance(above, beyond)
mean_pinball_loss(v, near)
mean_pinball_loss(x, y, alpha=0.3, multioutput="raw_values")
mean_poisson_deviance(above, beyond)
mean_squared_error(v, near, sample_weight=weight)
mean_squared_error(x, y, multioutput="raw_values")
mean_squared_log_error(above, beyond)
mean_squared_log_error(x**2, y**2)
mean_tweedie_deviance(v, near)
mean_tweedie_deviance(v, beyond, power=-0.5)
mean_tweedie_deviance(above, beyond, power=1.5, sample_weight=weight)
median_absolute_error(v, near)
median_absolute_error(x, y, multioutput="raw_values", sample_weight=weight)
r2_score(v, near)
r2_score(x, y, multioutput="raw_values")
r2_score(x, y, multioutput="variance_weighted")
root_mean_squared_error(v, near)
root_mean_squared_error(x, y)
root_mean_squared_log_error(above, beyond)
root_mean_squared_log_error(x**2, y**2, multioutput="raw_values")
"""
PAIRS = """
additive_chi2_kernel(x**2, y**2)
chi2_kernel(x**2, y**2)
cosine_distances(x, y)
cosine_similarity(x, y)
cosine_similarity(x)
euclidean_distances(x, y)
euclidean_distances(x, squared=True)
laplacian_kernel(x, y)
linear_kernel(x, y)
manhattan_distances(x, y)
paired_cosine_distances(x, y)
paired_euclidean_distances(x, y)
paired_manhattan_distances(x, y)
pairwise_distances(x, y)
pairwise_distances(x, metric="cosine")
pairwise_distances(x, y, metric="l1")
pairwise_distances_argmin(x, y)
pairwise_distances_argmin(x, y, metric="manhattan")
pairwise_kernels(x, y)
pairwise_kernels(x, y, metric="rbf")
pairwise_kernels(x, y, metric="sigmoid")
polynomial_kernel(x, y, degree=2)
rbf_kernel(x, y)
sigmoid_kernel(x, y)
"""


def names(given: dict[str, Any]) -> dict[str, Any]:
    draw = np.random.default_rng(3)
    chance, yes = draw.uniform(0.05, 0.95, 20), draw.integers(0, 2, 20)
    shares, many = draw.uniform(0.1, 1.0, (20, 3)), draw.integers(0, 2, (20, 3))
    many[:, 0] |= ~many.any(1)
    made = {
        "yes": yes,
        "chance": chance,
        "said": (chance > 0.5).astype(int),
        "many": many,
        "saids": many ^ (draw.uniform(size=(20, 3)) > 0.8),
        "shares": shares / shares.sum(1, keepdims=True),
        "weight": draw.uniform(0.5, 2.0, 20),
        "near": np.array(given["v"]) + 0.1 * np.array(given["w"]),
        "above": draw.uniform(0.5, 3.0, 20),
        "beyond": draw.uniform(0.5, 3.0, 20),
    }
    return {name: given["arr"](value) for name, value in made.items()}


@pytest.fixture(autouse=True)
def dispatch() -> Iterator[None]:
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.parametrize("call", [*lines(CLASSES + ERRORS + PAIRS), *refused(REFUSED)])
def test_call(call: str) -> None:
    check(call, HOME, names=names)


@pytest.mark.parametrize("call", lines(SHARES))
def test_shares(call: str) -> None:
    check(call, HOME, SINGLE, names=names)
