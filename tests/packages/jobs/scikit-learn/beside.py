"""Scikit-learn beside tensors: data, scores, pipelines, estimators of one's own."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from steps import step
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Network(ClassifierMixin, BaseEstimator):
    def __init__(self, width=16, epochs=5, lr=0.05):
        self.width, self.epochs, self.lr = width, epochs, lr

    def fit(self, X, y):
        torch.manual_seed(0)
        self.classes_ = np.unique(y)
        self.net_ = nn.Sequential(
            nn.Linear(X.shape[1], self.width), nn.ReLU(), nn.Linear(self.width, len(self.classes_))
        )
        optimizer = torch.optim.Adam(self.net_.parameters(), lr=self.lr)
        data = TensorDataset(torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y))
        for _ in range(self.epochs):
            for x, target in DataLoader(data, 32, shuffle=True):
                optimizer.zero_grad()
                nn.functional.cross_entropy(self.net_(x), target).backward()
                optimizer.step()
        return self

    def predict_proba(self, X):
        with torch.no_grad():
            return self.net_(torch.as_tensor(X, dtype=torch.float32)).softmax(1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


def data():
    return make_classification(120, 8, n_informative=5, random_state=0)


@step("digits: a network trained, its scores")
def _():
    x, y = load_digits(n_class=4, return_X_y=True)
    x, test, y, wanted = train_test_split(x[:240], y[:240], random_state=0)
    found = make_pipeline(StandardScaler(), Network()).fit(x, y)
    chances = found.predict_proba(test)
    return (
        accuracy_score(wanted, found.predict(test)),
        log_loss(wanted, chances),
        f1_score(wanted, found.predict(test), average="macro"),
        confusion_matrix(wanted, found.predict(test)),
        roc_auc_score(wanted, chances, multi_class="ovr"),
    )


@step("cross validation and a grid search over a network")
def _():
    x, y = data()
    search = GridSearchCV(Network(epochs=3), {"width": [4, 8], "lr": [0.01, 0.05]}, cv=2)
    search.fit(x, y)
    return cross_val_score(Network(), x, y, cv=3), search.best_params_, search.best_score_


@step("tensors handed to estimators and back")
def _():
    x, y = torch.randn(40, 5, dtype=torch.float64), torch.arange(40) % 2
    pca = PCA(2).fit(x)
    ridge = Ridge().fit(x, x.sum(1))
    return (
        np.abs(torch.from_numpy(pca.transform(x)).numpy()),
        ridge.coef_,
        LogisticRegression().fit(x, y).predict_proba(x[:3]),
        KNeighborsClassifier(3).fit(x, y).predict(x[:5]),
        KMeans(2, n_init=1, random_state=0).fit(x).inertia_,
        StandardScaler().fit_transform(x),
    )


@step("embeddings of a network clustered, its features a linear probe's")
def _():
    x, y = data()
    body = nn.Sequential(nn.Linear(8, 6), nn.Tanh()).double().eval()
    with torch.inference_mode():
        features = body(torch.from_numpy(x)).numpy()
    return LogisticRegression().fit(features, y).score(features, y), features


@step("metrics of tensors")
def _():
    target, chance = torch.tensor([0, 1, 1, 0]), torch.tensor([0.2, 0.7, 0.4, 0.3])
    return (
        roc_auc_score(target, chance),
        accuracy_score(target, chance > 0.5),
        log_loss(target, chance),
    )


@step("an estimator pickled and cloned")
def _():
    import pickle

    from sklearn.base import clone

    x, y = data()
    found = Network().fit(x, y)
    again = pickle.loads(pickle.dumps(found))
    return again.predict_proba(x[:4]), clone(found).get_params()


@step("a tensor that requires gradients", refused=True)
def _():
    Ridge().fit(torch.ones(3, 2, requires_grad=True), torch.ones(3))


@step("tensors of different lengths", refused=True)
def _():
    accuracy_score(torch.ones(3), torch.ones(4))
