"""Hyperparameters searched: pruning with training, samplers, a storage."""

import optuna
import torch
from steps import step
from torch import nn

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    torch.manual_seed(0)
    width = trial.suggest_int("width", 4, 16)
    rate = trial.suggest_float("lr", 1e-3, 1e-1, log=True)
    kind = trial.suggest_categorical("optimizer", ["Adam", "SGD", "RMSprop"])
    model = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))
    x = torch.randn(48, 4)
    y = x[:, :3].argmax(1)
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=rate)
    for epoch in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        trial.report(loss.item(), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned()
    return loss.item()


PRUNERS = {
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=1),
    "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(),
    "hyperband": lambda: optuna.pruners.HyperbandPruner(max_resource=4),
    "nothing": lambda: optuna.pruners.NopPruner(),
}

for name in PRUNERS:

    @step(f"a study with a pruner, {name}: values, states", name)
    def _(name):
        study = optuna.create_study(
            study_name=name,  # hyperband's brackets are drawn by it
            sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=4),
            pruner=PRUNERS[name](),
        )
        study.optimize(objective, n_trials=8)
        return (
            [trial.value for trial in study.trials],
            [trial.state.name for trial in study.trials],
            study.best_params,
        )


SAMPLERS = {
    "random": lambda: optuna.samplers.RandomSampler(seed=1),
    "grid": lambda: optuna.samplers.GridSampler({"x": [-1.0, 0.0, 1.0], "y": [0.0, 2.0]}, seed=1),
    "quasi Monte Carlo": lambda: optuna.samplers.QMCSampler(seed=1),
    "Gaussian process": lambda: optuna.samplers.GPSampler(
        seed=1, n_startup_trials=4, deterministic_objective=True
    ),
}

for name in SAMPLERS:

    @step(f"the sampler {name}", name)
    def _(name):
        study = optuna.create_study(sampler=SAMPLERS[name]())

        def valley(trial):
            x = torch.tensor(trial.suggest_float("x", -2, 2), dtype=torch.float64)
            y = torch.tensor(trial.suggest_float("y", -2, 2), dtype=torch.float64)
            return ((x - 0.5) ** 2 + y**2).item()

        study.optimize(valley, n_trials=6)
        return [round(trial.value, 2) for trial in study.trials]


@step("two objectives, the front of Pareto, attributes and a storage")
def _():
    study = optuna.create_study(
        directions=["minimize", "minimize"],
        sampler=optuna.samplers.NSGAIISampler(seed=2, population_size=4),
        storage="sqlite:///study.db",
        study_name="front",
    )

    def both(trial):
        x = trial.suggest_float("x", 0, 2)
        trial.set_user_attr("norm", torch.tensor([x]).norm().item())
        return x**2, (x - 1) ** 2

    study.optimize(both, n_trials=8)
    again = optuna.load_study(storage="sqlite:///study.db", study_name="front")
    return [t.values for t in again.best_trials], [t.user_attrs["norm"] for t in again.trials]


@step("importances of parameters; the best model saved and loaded")
def _():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))

    def kept(trial):
        value = objective(trial)
        torch.save({"value": value}, f"{trial.number}.pt")
        return value

    study.optimize(kept, n_trials=6)
    found = optuna.importance.get_param_importances(
        study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
    )
    return torch.load(f"{study.best_trial.number}.pt"), sorted(found)


@step("a value that is no number", refused=True)
def _():
    optuna.create_study().tell(optuna.create_study().ask(), "much")


@step("a trial that ends with an error", refused=True)
def _():
    optuna.create_study().optimize(lambda trial: nn.Linear(2, 2)(torch.ones(3)).item(), n_trials=1)
