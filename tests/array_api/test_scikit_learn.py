"""scikit-learn's estimators and tools on tensors: all that it documents for any namespace.

An estimator as a result stands for its fitted attributes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.array_api.consumers import SINGLE, check, lines

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")
importlib.import_module("sklearn.experimental.enable_halving_search_cv")
MODULES = (
    "utils calibration decomposition discriminant_analysis frozen kernel_approximation "
    "linear_model mixture model_selection naive_bayes pipeline preprocessing"
)
HOME = SimpleNamespace(
    **{
        name: thing
        for home in MODULES.split()
        for name, thing in vars(importlib.import_module(f"sklearn.{home}")).items()
        if not name.startswith("__")
    }
)

# labels: three classes; yes: two; weight: of the samples.
PREPROCESSING = """
Binarizer().fit_transform(x)
binarize(x, threshold=0.5)
FeatureUnion([("a", StandardScaler()), ("b", MaxAbsScaler())]).fit_transform(x)
KernelCenterer().fit(symmetric)
KernelCenterer().fit_transform(symmetric)
LabelBinarizer().fit(labels)
LabelBinarizer().fit_transform(labels)
LabelBinarizer().fit(labels).inverse_transform(LabelBinarizer().fit_transform(labels))
label_binarize(labels, classes=arr([0, 1, 2]))
LabelEncoder().fit(labels + 3)
LabelEncoder().fit_transform(labels + 3)
LabelEncoder().fit(labels + 3).inverse_transform(labels)
MaxAbsScaler().fit(x)
MaxAbsScaler().fit_transform(x)
MaxAbsScaler().fit(x).inverse_transform(x)
MinMaxScaler().fit(x)
MinMaxScaler(clip=True).fit(x).transform(y)
MinMaxScaler((-1, 1)).fit(x).inverse_transform(x)
Normalizer().fit_transform(x)
Normalizer("l1").fit_transform(x)
Normalizer("max").fit_transform(x)
normalize(x, axis=0)
PolynomialFeatures(2).fit_transform(x)
PolynomialFeatures((2, 3), interaction_only=True, include_bias=False).fit_transform(x)
StandardScaler().fit(x)
StandardScaler().fit_transform(x)
StandardScaler().fit(x, sample_weight=weight)
StandardScaler(with_mean=False).fit(x).inverse_transform(x)
StandardScaler().partial_fit(x).partial_fit(y)
StandardScaler().fit_transform(float32)
make_pipeline(StandardScaler(), PCA(2, svd_solver="full")).fit_transform(x)
"""
MODELS = """
GaussianMixture(2, init_params="random_from_data", random_state=0).fit(x)
GaussianMixture(2, init_params="random", random_state=0).fit_predict(x)
GaussianMixture(2, covariance_type="tied", init_params="random", random_state=0).fit(x)
GaussianMixture(2, covariance_type="diag", init_params="random", random_state=0).fit(x)
GaussianMixture(2, covariance_type="spherical", init_params="random", random_state=0).fit(x)
mixture(x).predict_proba(y)
mixture(x).score_samples(y)
mixture(x).bic(y)
mixture(x).sample(5)
GaussianNB().fit(x, labels)
GaussianNB().fit(x, labels).predict(y)
GaussianNB().fit(x, labels, sample_weight=weight).predict_proba(y)
GaussianNB().partial_fit(x, labels, classes=arr([0, 1, 2]))
GaussianNB().fit(x, labels).score(y, labels)
LinearDiscriminantAnalysis().fit(x, labels)
LinearDiscriminantAnalysis(n_components=1).fit(x, labels).transform(x)
LinearDiscriminantAnalysis().fit(x, labels).predict(y)
LinearDiscriminantAnalysis().fit(x, labels).predict_proba(y)
LinearDiscriminantAnalysis().fit(x, yes).decision_function(y)
LogisticRegression(solver="lbfgs").fit(x, labels)
LogisticRegression().fit(x, yes, sample_weight=weight)
LogisticRegression().fit(x, labels).predict(y)
LogisticRegression(class_weight="balanced").fit(x, labels).coef_
LogisticRegression().fit(x, labels).predict_proba(y)
LogisticRegression().fit(x, yes).predict_log_proba(y)
Nystroem(n_components=5, random_state=0).fit(x)
Nystroem(n_components=5, random_state=0).fit_transform(x)
Nystroem("polynomial", n_components=5, degree=2, random_state=0).fit(x).transform(y)
PCA(2, svd_solver="full").fit(x)
PCA(2, svd_solver="full").fit_transform(x)
PCA(2, svd_solver="full", whiten=True).fit(x).transform(y)
PCA(2, svd_solver="full").fit(x).inverse_transform(x[:, :2])
PCA(2, svd_solver="full").fit(x).score_samples(y)
PCA(0.7, svd_solver="full").fit(x).get_covariance()
PCA(2, svd_solver="covariance_eigh").fit(x)
PCA(2, svd_solver="covariance_eigh").fit_transform(x)
PCA("mle", svd_solver="full").fit(x)
PCA(2, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0).fit(x)
PoissonRegressor().fit(x, v**2)
PoissonRegressor().fit(x, v**2).predict(y)
PoissonRegressor().fit(x, v**2, sample_weight=weight).score(y, v**2)
Ridge(solver="svd").fit(x, v)
Ridge(solver="svd").fit(x, y)
Ridge(alpha=arr([0.1, 1.0, 2.0, 3.0]), solver="svd").fit(x, y)
Ridge(solver="svd", fit_intercept=False).fit(x, v, sample_weight=weight).predict(y)
Ridge(solver="svd").fit(x, v).score(y, w)
RidgeClassifier(solver="svd").fit(x, labels)
RidgeClassifier(solver="svd").fit(x, labels).predict(y)
RidgeClassifier(solver="svd").fit(x, many).predict(y)
RidgeClassifierCV().fit(x, labels)
RidgeClassifierCV().fit(x, yes).predict(y)
RidgeCV().fit(x, v)
RidgeCV(alphas=[0.1, 1.0], gcv_mode="svd").fit(x, y).predict(x)
"""
SEARCHES = """
calibrated(x, y, labels).predict(y)
GridSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0]}, cv=2).fit(x, v).predict(y)
GridSearchCV(LinearDiscriminantAnalysis(), {"tol": [1e-2, 1e-4]}, cv=2).fit(x, labels).predict(y)
RandomizedSearchCV(ridge, {"alpha": [0.1, 1.0]}, n_iter=2, random_state=0).fit(x, v).predict(y)
HalvingGridSearchCV(ridge, {"alpha": [0.1, 1.0, 2.0]}, random_state=0).fit(x, v).predict(y)
HalvingRandomSearchCV(ridge, {"alpha": [0.1, 1.0, 2.0]}, random_state=0).fit(x, v).predict(y)
check_array(x)
check_consistent_length(x, v)
cross_val_predict(Ridge(solver="svd"), x, v, cv=3)
cross_val_predict(LinearDiscriminantAnalysis(), x, labels, cv=3, method="predict_proba")
cross_val_score(Ridge(solver="svd"), x, v, cv=3).tolist()
train_test_split(x, v, labels, random_state=0)
train_test_split(x, shuffle=False)
train_test_split(x, labels, stratify=labels, random_state=0)
column_or_1d(v)
extmath.softmax(x)
extmath.fast_logdet(symmetric)
extmath.row_norms(x)
extmath.randomized_svd(x, 2, power_iteration_normalizer="QR", random_state=0)
multiclass.type_of_target(labels)
multiclass.unique_labels(labels, yes)
multiclass.is_multilabel(many)
"""
# Shares of counts, and what is calibrated with them, are floats of the default dtype.
SHARES = """
LogisticRegression(C=0.5, fit_intercept=False).fit(x, labels).score(y, labels)
calibrated(x, y, labels).predict_proba(y)
"""


def names(given: dict[str, Any]) -> dict[str, Any]:
    draw = np.random.default_rng(3)
    made = {
        "yes": draw.integers(0, 2, 20),
        "many": draw.integers(0, 2, (20, 3)),
        "weight": draw.uniform(0.5, 2.0, 20),
    }
    made = {name: given["arr"](value) for name, value in made.items()}
    ridge = HOME.Ridge(solver="svd")
    return made | {"mixture": mixture, "calibrated": calibrated, "ridge": ridge}


def mixture(x: Any) -> Any:
    made = HOME.GaussianMixture(2, init_params="random_from_data", random_state=0)
    return made.fit(x)


def calibrated(x: Any, y: Any, labels: Any) -> Any:
    base = HOME.FrozenEstimator(HOME.LinearDiscriminantAnalysis().fit(x, labels))
    return HOME.CalibratedClassifierCV(base, method="temperature", cv=2).fit(y, labels)


@pytest.fixture(autouse=True)
def dispatch() -> Iterator[None]:
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.mark.parametrize("call", lines(PREPROCESSING + MODELS + SEARCHES))
def test_call(call: str) -> None:
    check(call, HOME, names=names)


@pytest.mark.parametrize("call", lines(SHARES))
def test_shares(call: str) -> None:
    check(call, HOME, SINGLE, names=names)
