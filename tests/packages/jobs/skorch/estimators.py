"""Estimators after scikit-learn's manner: fit, predict, search, callbacks, saving."""

import pickle

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNet, NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import Checkpoint, EarlyStopping, EpochScoring, Freezer, LRScheduler
from skorch.dataset import ValidSplit
from skorch.helper import SliceDict, predefined_split
from steps import step
from torch import nn

DATA = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
LABELS = (DATA[:, 0] + DATA[:, 1] > 0).astype(np.int64)


class Net(nn.Module):
    def __init__(self, width=8, out=2):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, out)
        )

    def forward(self, X):  # noqa: N803
        return self.layers(X)


def classifier(**options):
    options = {
        "max_epochs": 4,
        "lr": 0.1,
        "verbose": 0,
        "criterion": nn.CrossEntropyLoss,
        **options,
    }
    return NeuralNetClassifier(Net, **options)


@step("a classifier: history, probabilities, classes, score")
def _():
    net = classifier(optimizer=torch.optim.Adam, optimizer__weight_decay=0.01).fit(DATA, LABELS)
    losses = [net.history[:, name] for name in ("train_loss", "valid_loss", "valid_acc")]
    return losses, net.predict_proba(DATA)[:9], net.predict(DATA), net.score(DATA, LABELS)


@step("a regressor and a binary classifier")
def _():
    target = DATA[:, :1] * 2
    one = NeuralNetRegressor(Net, module__out=1, max_epochs=3, lr=0.05, verbose=0).fit(DATA, target)
    two = NeuralNetBinaryClassifier(Net, module__out=1, max_epochs=3, lr=0.05, verbose=0)
    two.fit(DATA, LABELS.astype(np.float32))
    return one.predict(DATA)[:9], two.predict_proba(DATA)[:9], two.predict(DATA)


@step("a grid search, cross-validation, a pipeline")
def _():
    search = GridSearchCV(
        classifier(train_split=False), {"lr": [0.01, 0.1], "module__width": [4, 8]}, cv=2
    )
    search.fit(DATA, LABELS)
    pipe = Pipeline([("scale", StandardScaler()), ("net", classifier())])
    return (
        search.cv_results_["mean_test_score"],
        search.best_params_,
        cross_val_score(pipe, DATA, LABELS, cv=2),
    )


@step("callbacks: schedule, early stop, scores, checkpoint, frozen layers")
def _():
    net = classifier(
        max_epochs=8,
        callbacks=[
            LRScheduler("StepLR", step_size=2, gamma=0.5),
            EarlyStopping(patience=3),
            EpochScoring("roc_auc", lower_is_better=False, name="auc"),
            Checkpoint(dirname="kept", load_best=True),
            Freezer("layers.0.*"),
        ],
    ).fit(DATA, LABELS)
    rates = net.history[:, "event_lr"]
    other = classifier().initialize()
    other.load_params(checkpoint=Checkpoint(dirname="kept"))
    return net.history[:, "auc"], rates, net.module_.layers[0].weight, other.predict_proba(DATA)[:5]


@step("partial fits, parameters set, warm start")
def _():
    net = classifier(warm_start=True)
    net.partial_fit(DATA[:40], LABELS[:40])
    net.set_params(lr=0.01)
    net.fit(DATA, LABELS)
    return net.history[:, "train_loss"], net.get_params()["lr"]


@step("pickled, saved as safetensors and by parameters")
def _():
    net = classifier().fit(DATA, LABELS)
    copied = pickle.loads(pickle.dumps(net))
    net.save_params(f_params="p.pt", f_optimizer="o.pt", f_history="h.json", f_criterion="c.pt")
    net.save_params(f_params="p.safetensors", use_safetensors=True)
    again, third = classifier().initialize(), classifier().initialize()
    again.load_params(f_params="p.pt", f_optimizer="o.pt", f_history="h.json", f_criterion="c.pt")
    third.load_params(f_params="p.safetensors", use_safetensors=True)
    return [each.predict_proba(DATA)[:4] for each in (copied, again, third)]


@step("a net of one's own with its own loss; dictionaries as inputs; a predefined split")
def _():
    class Own(NeuralNet):
        def get_loss(self, y_pred, y_true, X=None, training=False):  # noqa: N803
            loss = super().get_loss(y_pred, y_true, X, training)
            return loss + 0.01 * sum(p.abs().sum() for p in self.module_.parameters())

    held = torch.utils.data.TensorDataset(torch.tensor(DATA[60:]), torch.tensor(LABELS[60:]))
    net = Own(
        Net,
        criterion=nn.CrossEntropyLoss,
        train_split=predefined_split(held),
        max_epochs=2,
        verbose=0,
        lr=0.1,
    )
    net.fit(SliceDict(X=DATA[:60]), LABELS[:60])
    stratified = classifier(train_split=ValidSplit(4, stratified=True)).fit(DATA, LABELS)
    return net.history[:, "valid_loss"], stratified.history[:, "valid_acc"]


@step("predicting before fitting is refused", refused=True)
def _():
    classifier().predict(DATA)


@step("data of another width is refused", refused=True)
def _():
    classifier().fit(DATA[:, :4], LABELS)


@step("lengths that do not agree are refused", refused=True)
def _():
    classifier().fit(DATA, LABELS[:50])


@step("parameters of another network are refused", refused=True)
def _():
    classifier(module__width=4).initialize().save_params(f_params="four.pt")
    classifier().initialize().load_params(f_params="four.pt")


@step("an unknown parameter is refused", refused=True)
def _():
    classifier(nonsense=3).initialize()
