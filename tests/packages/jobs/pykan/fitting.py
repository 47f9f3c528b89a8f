"""Kolmogorov-Arnold networks: fit, prune, refine, symbolic formulas."""

import torch
from kan import KAN, create_dataset
from kan.utils import ex_round
from steps import step

torch.set_default_dtype(torch.float64)


def formula(x):
    return torch.exp(torch.sin(torch.pi * x[:, [0]]) + x[:, [1]] ** 2)


def data(count=60):
    return create_dataset(formula, n_var=2, train_num=count, test_num=20, seed=1)


def network(**kwargs):
    return KAN(width=[2, 2, 1], grid=3, k=3, seed=1, auto_save=False, **kwargs)


@step("forward, gradients of splines")
def _():
    model, given = network(), data()
    out = model(given["train_input"])
    (out - given["train_label"]).square().mean().backward()
    return out, [p.grad for p in model.parameters() if p.grad is not None]


for optimizer in ("Adam", "LBFGS"):

    @step(f"fit by {optimizer}: losses", optimizer)
    def _(optimizer):
        model = network()
        rate = {"Adam": 0.01, "LBFGS": 1.0}[optimizer]
        found = model.fit(data(), opt=optimizer, steps=3, lr=rate, update_grid=False)
        return found["train_loss"], found["test_loss"]


@step("fit with penalties and grid updates")
def _():
    found = network().fit(
        data(), opt="Adam", steps=4, lr=0.01, lamb=0.01, lamb_entropy=2.0, grid_update_num=2
    )
    return found["train_loss"], found["reg"]


@step("prune, refine: outputs")
def _():
    model, given = KAN(width=[2, 2, 1], grid=3, k=3, seed=1), data(300)
    model.fit(given, opt="Adam", steps=4, lr=0.02, lamb=0.01, update_grid=False)
    model(given["train_input"])
    pruned = model.prune(node_th=1e-3, edge_th=1e-3)
    finer = pruned.refine(5)
    x = given["test_input"]
    return pruned.width, pruned(x), finer(x)


@step("symbolic functions: suggested, fixed, the formula")
def _():
    x = torch.linspace(-1, 1, 50)[:, None]
    given = {
        "train_input": x,
        "train_label": torch.sin(3 * x),
        "test_input": x,
        "test_label": torch.sin(3 * x),
    }
    model = KAN(width=[1, 1], grid=5, k=3, seed=0, auto_save=False)
    model.fit(given, opt="LBFGS", steps=5, update_grid=False)
    model.fix_symbolic(0, 0, 0, "sin", verbose=False)
    model.fit(given, opt="LBFGS", steps=10, update_grid=False)
    return str(ex_round(model.symbolic_formula()[0][0], 2)), model(x)


@step("multiplication nodes, attributions, grids from samples")
def _():
    model = KAN(width=[2, [2, 1], 1], grid=3, k=3, seed=2, auto_save=False)
    x = data()["train_input"]
    model(x)
    model.attribute()
    model.update_grid_from_samples(x)
    return model.feature_score, model(x)


@step("saved and loaded")
def _():
    model, x = network(), data()["test_input"]
    model(x)
    model.saveckpt("kan")
    again = KAN.loadckpt("kan")
    return model(x), again(x)


@step("classification by a loss of one's own")
def _():
    given = data()
    for name in ("train_label", "test_label"):
        given[name] = (given[name][:, 0] > 1).long()
    model = KAN(width=[2, 2], grid=3, k=3, seed=1, auto_save=False)
    found = model.fit(
        given, opt="Adam", steps=4, lr=0.05, loss_fn=torch.nn.CrossEntropyLoss(), lamb=0.001
    )
    return found["train_loss"]


@step("weights of another width", refused=True)
def _():
    network().load_state_dict(KAN(width=[3, 2, 1], auto_save=False).state_dict())
