"""Learning-rate schedules against PyTorch's, number for number.

A schedule only reads and writes `param_groups`, so both sides run over torch's own optimizers.
"""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref

import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.optim import lr_scheduler as ours

theirs = torch.optim.lr_scheduler


def sgd(lr=0.1, groups=2, **kwargs):
    parameters = [torch.nn.Parameter(torch.ones(1)) for _ in range(groups)]
    rates = [lr / (1 + i) for i in range(groups)]
    groups = [{"params": [p], "lr": rate} for p, rate in zip(parameters, rates)]
    return torch.optim.SGD(groups, lr=lr, **kwargs)


def adam(**kwargs):
    return torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], **kwargs)


def hyperparameters(optimizer):
    return [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]


def run(library, make, steps, optimizer=sgd, **kwargs):
    """What is seen while a schedule runs: the groups, the rates, the state."""
    optimizer = optimizer(**kwargs)
    scheduler = make(library, optimizer)
    seen = []
    for step in range(steps + 1):
        state = copy.deepcopy(scheduler.state_dict())
        seen.append((hyperparameters(optimizer), scheduler.get_last_lr(), state))
        optimizer.step()
        if step < steps:
            scheduler.step()
    return seen


class Halving:
    def __init__(self):
        self.half = 0.5

    def __call__(self, epoch):
        return self.half**epoch


def with_groups(**hyper):
    return lambda: sgd(**hyper)


SCHEDULES = [
    ("lambda", lambda L, o: L.LambdaLR(o, lambda e: 0.95**e)),
    ("lambdas", lambda L, o: L.LambdaLR(o, [lambda e: 0.95**e, lambda e: 1 / (1 + e)])),
    ("lambda_object", lambda L, o: L.LambdaLR(o, Halving())),
    ("multiplicative", lambda L, o: L.MultiplicativeLR(o, lambda e: 0.95)),
    ("step", lambda L, o: L.StepLR(o, 3)),
    ("step_gamma", lambda L, o: L.StepLR(o, 2, gamma=0.7)),
    ("multistep", lambda L, o: L.MultiStepLR(o, [7, 2, 2, 5], gamma=0.3)),
    ("constant", lambda L, o: L.ConstantLR(o)),
    ("constant_half", lambda L, o: L.ConstantLR(o, 0.5, 3)),
    ("linear", lambda L, o: L.LinearLR(o)),
    ("linear_down", lambda L, o: L.LinearLR(o, 1.0, 0.2, 7)),
    ("exponential", lambda L, o: L.ExponentialLR(o, 0.9)),
    ("polynomial", lambda L, o: L.PolynomialLR(o)),
    ("polynomial_2", lambda L, o: L.PolynomialLR(o, 9, 2.0)),
    ("cosine", lambda L, o: L.CosineAnnealingLR(o, 5)),
    ("cosine_floor", lambda L, o: L.CosineAnnealingLR(o, 4, eta_min=0.01)),
    ("restarts", lambda L, o: L.CosineAnnealingWarmRestarts(o, 3)),
    ("restarts_longer", lambda L, o: L.CosineAnnealingWarmRestarts(o, 2, 2, 0.001)),
    ("cyclic", lambda L, o: L.CyclicLR(o, 0.01, 0.1, 3)),
    ("cyclic_uneven", lambda L, o: L.CyclicLR(o, 0.01, [0.1, 0.2], 3, 5, "triangular2")),
    ("cyclic_exp", lambda L, o: L.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9)),
    ("cyclic_fn", lambda L, o: L.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda x: 1 / (5**x * 0.1))),
    (
        "cyclic_fn_iterations",
        lambda L, o: L.CyclicLR(
            o, 0.01, 0.1, 3, scale_fn=Halving(), scale_mode="iterations", cycle_momentum=False
        ),
    ),
    ("one_cycle", lambda L, o: L.OneCycleLR(o, 0.1, 30)),
    ("one_cycle_groups", lambda L, o: L.OneCycleLR(o, [0.1, 0.3], epochs=5, steps_per_epoch=6)),
    ("one_cycle_linear", lambda L, o: L.OneCycleLR(o, 0.1, 30, anneal_strategy="linear")),
    (
        "one_cycle_three",
        lambda L, o: L.OneCycleLR(o, 0.1, 30, three_phase=True, pct_start=0.4, div_factor=10.0),
    ),
    ("one_cycle_rates_only", lambda L, o: L.OneCycleLR(o, 0.1, 30, cycle_momentum=False)),
    (
        "sequential",
        lambda L, o: L.SequentialLR(o, [L.ConstantLR(o, 0.1), L.ExponentialLR(o, 0.9)], [4]),
    ),
    (
        "warm_up_then_cosine",
        lambda L, o: L.SequentialLR(
            o, [L.LinearLR(o, 0.1, total_iters=4), L.CosineAnnealingLR(o, 9)], [4]
        ),
    ),
    (
        "sequential_restarts",
        lambda L, o: L.SequentialLR(
            o,
            [L.LinearLR(o, 0.1, total_iters=4), L.CosineAnnealingWarmRestarts(o, 3, 2)],
            [4],
        ),
    ),
    (
        "sequential_steps",
        lambda L, o: L.SequentialLR(
            o, [L.StepLR(o, 2), L.PolynomialLR(o, 6), L.MultiStepLR(o, [1, 2])], [3, 8]
        ),
    ),
    (
        "chained",
        lambda L, o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 3), L.ExponentialLR(o, 0.9)], o),
    ),
    (
        "chained_cosine",
        lambda L, o: L.ChainedScheduler([L.CosineAnnealingLR(o, 5), L.LinearLR(o)]),
    ),
]


@parameterized.expand(SCHEDULES)
def test_rates_over_sgd(_, make):
    args = {"steps": 20, "momentum": 0.5}
    assert run(ours, make, **args) == run(theirs, make, **args)


@parameterized.expand(
    [
        ("sequence", lambda L, parts, o: L.SequentialLR(o, parts, [2])),
        ("chain", lambda L, parts, o: L.ChainedScheduler(parts, o)),
    ]
)
def test_combinations_nest(_, combine):
    """The outer sequence's first step counts for the inner one too, in PyTorch as here."""

    def make(library, optimizer):
        parts = [library.ConstantLR(optimizer, 0.1), library.LinearLR(optimizer, 0.5)]
        inner = combine(library, parts, optimizer)
        return library.SequentialLR(optimizer, [inner, library.ExponentialLR(optimizer, 0.9)], [9])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(ours, make, steps=15) == run(theirs, make, steps=15)


FOR_TWO_GROUPS = ("cyclic_uneven", "one_cycle_groups")


@parameterized.expand(
    [row for row in SCHEDULES if "cycl" in row[0] and row[0] not in FOR_TWO_GROUPS]
)
def test_first_beta_over_adam(_, make):
    args = {"steps": 20, "optimizer": adam}
    assert run(ours, make, **args) == run(theirs, make, **args)


COMBINED = ("sequential", "warm_up", "chained")  # their step takes no epoch


@parameterized.expand([row for row in SCHEDULES if not row[0].startswith(COMBINED)])
def test_steps_to_an_epoch(_, make):
    seen = []
    for library in (ours, theirs):
        optimizer = sgd(momentum=0.5)
        scheduler = make(library, optimizer)
        optimizer.step()
        rates = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for epoch in (3, 4, 9, 2, 2, None, 7, None, None):
                scheduler.step(epoch)
                rates.append((scheduler.last_epoch, scheduler.get_last_lr()))
        seen.append((rates, [(w.category, str(w.message)) for w in caught]))
    assert seen[0] == seen[1]


def test_restarts_take_fractions_of_epochs():
    seen = []
    for library in (ours, theirs):
        scheduler = library.CosineAnnealingWarmRestarts(sgd(), 3, 2)
        rates = []
        for i in range(60):
            scheduler.step(i / 4)
            rates.append((scheduler.last_epoch, scheduler.T_cur, scheduler.get_last_lr()))
        seen.append(rates)
    assert seen[0] == seen[1]


RESUMED = [
    ("lambda", lambda L, o, e: L.LambdaLR(o, lambda e: 0.95**e, last_epoch=e)),
    ("multiplicative", lambda L, o, e: L.MultiplicativeLR(o, lambda e: 0.95, last_epoch=e)),
    ("step", lambda L, o, e: L.StepLR(o, 3, last_epoch=e)),
    ("multistep", lambda L, o, e: L.MultiStepLR(o, [2, 3, 4, 9], last_epoch=e)),
    ("constant", lambda L, o, e: L.ConstantLR(o, last_epoch=e)),
    ("linear", lambda L, o, e: L.LinearLR(o, last_epoch=e)),
    ("exponential", lambda L, o, e: L.ExponentialLR(o, 0.9, last_epoch=e)),
    ("polynomial", lambda L, o, e: L.PolynomialLR(o, 9, 2.0, last_epoch=e)),
    ("cosine", lambda L, o, e: L.CosineAnnealingLR(o, 5, last_epoch=e)),
    ("restarts", lambda L, o, e: L.CosineAnnealingWarmRestarts(o, 3, last_epoch=e)),
    ("restarts_longer", lambda L, o, e: L.CosineAnnealingWarmRestarts(o, 1, 2, last_epoch=e)),
    ("cyclic", lambda L, o, e: L.CyclicLR(o, 0.01, 0.1, 3, last_epoch=e)),
    ("one_cycle", lambda L, o, e: L.OneCycleLR(o, 0.1, 30, last_epoch=e)),
]


@parameterized.expand(RESUMED)
def test_resumed(_, make):
    for last_epoch in (0, 1, 2, 3, 4, 5):
        seen = []
        for library in (ours, theirs):
            optimizer = sgd(momentum=0.5)
            scheduler = make(library, optimizer, -1)
            for _ in range(last_epoch):
                optimizer.step()
                scheduler.step()
            scheduler = make(library, optimizer, last_epoch)
            rates = [scheduler.get_last_lr()]
            for _ in range(8):
                optimizer.step()
                scheduler.step()
                rates.append((scheduler.last_epoch, scheduler.get_last_lr()))
            seen.append((rates, hyperparameters(optimizer)))
        assert seen[0] == seen[1], last_epoch


@parameterized.expand(SCHEDULES)
def test_state_goes_over_from_torch(_, make):
    """A state saved under torch continues here, and the other way round."""
    seen = []
    for first, second in ((ours, ours), (theirs, ours), (ours, theirs), (theirs, theirs)):
        optimizer = sgd(momentum=0.5)
        scheduler = make(first, optimizer)
        for _ in range(5):
            optimizer.step()
            scheduler.step()
        state = pickle.loads(pickle.dumps((optimizer.state_dict(), scheduler.state_dict())))
        optimizer = sgd(momentum=0.5)
        scheduler = make(second, optimizer)
        optimizer.load_state_dict(state[0])
        scheduler.load_state_dict(copy.deepcopy(state[1]))
        rates = []
        for _ in range(10):
            optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr())
        seen.append(rates)
    assert seen[0] == seen[1] == seen[2] == seen[3]


METRICS = [5.0, 4.0, 4.0, 3.9999, 3.9, 3.9, 3.9, 3.9, 3.9, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 7.0]


@parameterized.expand(
    [
        ("default", {}),
        ("impatient", {"patience": 0}),
        ("relative", {"patience": 1, "factor": 0.5, "threshold": 0.1}),
        ("absolute", {"patience": 1, "threshold_mode": "abs", "threshold": 1.5}),
        ("max", {"mode": "max", "patience": 2}),
        ("max_absolute", {"mode": "max", "patience": 2, "threshold_mode": "abs"}),
        ("cooldown", {"patience": 1, "cooldown": 2}),
        ("floor", {"patience": 0, "min_lr": 0.02}),
        ("floors", {"patience": 0, "min_lr": [0.05, 0.001]}),
        ("eps", {"patience": 0, "eps": 0.01}),
    ]
)
def test_plateau(_, kwargs):
    seen = []
    for library in (ours, theirs):
        optimizer = sgd()
        scheduler = library.ReduceLROnPlateau(optimizer, **kwargs)
        states = []
        for metric in METRICS:
            optimizer.step()
            scheduler.step(torch.tensor(metric))
            states.append((scheduler.state_dict(), hyperparameters(optimizer)))
        other = library.ReduceLROnPlateau(sgd())
        other.load_state_dict(scheduler.state_dict())
        seen.append((states, other.state_dict(), other.in_cooldown))
    assert seen[0] == seen[1]


def test_plateau_follows_new_groups():
    seen = []
    for library in (ours, theirs):
        optimizer = sgd(groups=1)
        scheduler = library.ReduceLROnPlateau(optimizer, patience=0)
        fixed = library.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0])
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
        for _ in range(3):
            scheduler.step(1.0)
        with pytest.raises(RuntimeError) as error:
            for _ in range(3):
                fixed.step(1.0)
        seen.append((hyperparameters(optimizer), str(error.value)))
    assert seen[0] == seen[1]


def flat(momentum=0.9):
    return sgd(groups=1, momentum=momentum)


ERRORS = [
    ("no_optimizer", lambda L: L.StepLR(3, 1)),
    ("no_optimizer_cyclic", lambda L: L.CyclicLR(3, 0.1, 0.2)),
    ("no_optimizer_one_cycle", lambda L: L.OneCycleLR(3, 0.1, 10)),
    ("no_optimizer_plateau", lambda L: L.ReduceLROnPlateau(3)),
    ("not_resumable", lambda L: L.StepLR(flat(), 2, last_epoch=3)),
    ("base_class", lambda L: L.LRScheduler(flat())),
    ("lambdas", lambda L: L.LambdaLR(flat(), [lambda e: 1] * 2)),
    ("lambdas_multiplicative", lambda L: L.MultiplicativeLR(flat(), [lambda e: 1] * 2)),
    ("constant_low", lambda L: L.ConstantLR(flat(), -1)),
    ("constant_high", lambda L: L.ConstantLR(flat(), 2)),
    ("linear_start", lambda L: L.LinearLR(flat(), 0)),
    ("linear_end", lambda L: L.LinearLR(flat(), 0.5, 2)),
    ("plateau_factor", lambda L: L.ReduceLROnPlateau(flat(), factor=1)),
    ("plateau_mode", lambda L: L.ReduceLROnPlateau(flat(), mode="a")),
    ("plateau_threshold", lambda L: L.ReduceLROnPlateau(flat(), threshold_mode="a")),
    ("plateau_floors", lambda L: L.ReduceLROnPlateau(flat(), min_lr=[1, 2])),
    ("cyclic_mode", lambda L: L.CyclicLR(flat(), 0.1, 0.2, mode="x")),
    ("cyclic_rates", lambda L: L.CyclicLR(flat(), [0.1, 0.1], 0.2)),
    ("cyclic_momentum", lambda L: L.CyclicLR(torch.optim.Adagrad([torch.ones(1)]), 0.1, 0.2)),
    ("one_cycle_nothing", lambda L: L.OneCycleLR(flat(), 0.1)),
    ("one_cycle_half", lambda L: L.OneCycleLR(flat(), 0.1, epochs=2)),
    ("one_cycle_total", lambda L: L.OneCycleLR(flat(), 0.1, 0)),
    ("one_cycle_fraction", lambda L: L.OneCycleLR(flat(), 0.1, 1.5)),
    ("one_cycle_epochs", lambda L: L.OneCycleLR(flat(), 0.1, epochs=0, steps_per_epoch=1)),
    ("one_cycle_steps", lambda L: L.OneCycleLR(flat(), 0.1, epochs=1, steps_per_epoch=0)),
    ("one_cycle_pct", lambda L: L.OneCycleLR(flat(), 0.1, 5, pct_start=2.0)),
    ("one_cycle_anneal", lambda L: L.OneCycleLR(flat(), 0.1, 5, anneal_strategy="x")),
    ("one_cycle_rates", lambda L: L.OneCycleLR(flat(), [1, 2], 5)),
    ("restarts_t0", lambda L: L.CosineAnnealingWarmRestarts(flat(), 0)),
    ("restarts_t0_fraction", lambda L: L.CosineAnnealingWarmRestarts(flat(), 1.5)),
    ("restarts_mult", lambda L: L.CosineAnnealingWarmRestarts(flat(), 1, 0)),
    ("restarts_epoch", lambda L: L.CosineAnnealingWarmRestarts(flat(), 1).step(-1)),
    ("sequence_empty", lambda L: L.SequentialLR(flat(), [], [])),
    ("sequence_lengths", lambda L: on_one(lambda o: L.SequentialLR(o, [L.StepLR(o, 1)], [1]))),
    (
        "sequence_other",
        lambda L: on_one(lambda o: L.SequentialLR(flat(), [L.StepLR(o, 1), L.StepLR(o, 1)], [1])),
    ),
    (
        "sequence_plateau",
        lambda L: on_one(
            lambda o: L.SequentialLR(o, [L.StepLR(o, 1), L.ReduceLROnPlateau(o)], [1])
        ),
    ),
    ("sequence_type", lambda L: on_one(lambda o: L.SequentialLR(o, [L.StepLR(o, 1), 3], [1]))),
    ("chain_empty", lambda L: L.ChainedScheduler([])),
    ("chain_type", lambda L: L.ChainedScheduler([L.StepLR(flat(), 1), 3])),
    (
        "chain_other",
        lambda L: L.ChainedScheduler([L.StepLR(flat(), 1), L.StepLR(flat(), 1)]),
    ),
]


def on_one(make):
    return make(flat())


@parameterized.expand(ERRORS)
def test_errors(_, make):
    seen = []
    for library in (ours, theirs):
        with pytest.raises(Exception) as error:  # noqa: B017  (the types are compared below)
            make(library)
        seen.append((error.type, str(error.value)))
    assert seen[0] == seen[1]


def test_one_cycle_ends():
    seen = []
    for library in (ours, theirs):
        optimizer = flat()
        scheduler = library.OneCycleLR(optimizer, 0.1, 10)
        for _ in range(10):
            optimizer.step()
            scheduler.step()
        with pytest.raises(ValueError) as error:
            scheduler.step()
        seen.append(str(error.value))
    assert seen[0] == seen[1]


def test_warnings_about_order():
    """Stepping first, a replaced optimizer.step, and asking get_lr from outside."""
    seen = []
    for library in (ours, theirs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            library.StepLR(flat(), 2).step()
            optimizer = flat()
            scheduler = library.StepLR(optimizer, 2)
            optimizer.step = lambda: None
            scheduler.step()
            scheduler.get_lr()
            optimizer = flat()
            library.StepLR(optimizer, 2)
            scheduler = library.StepLR(optimizer, 2)
            optimizer.step()
            scheduler.step()
        seen.append([(w.category, str(w.message)) for w in caught])
        if library is ours:  # they point at the caller
            assert {w.filename for w in caught} == {__file__}
    assert seen[0] == seen[1]
    assert len(seen[0]) == 3


class Optimizer:
    """As little as a schedule needs."""

    def __init__(self, lr):
        self.param_groups = [{"params": [], "lr": lr}]

    def step(self):
        return "stepped"


def test_optimizer_is_not_kept_alive():
    optimizer = Optimizer(0.5)
    scheduler = ours.StepLR(optimizer, 2)
    assert optimizer.step() == "stepped"
    alive = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer, scheduler
        assert alive() is None
    finally:
        gc.enable()


def test_rate_in_a_tensor_is_written_in_place():
    optimizer = Optimizer(tlc.tensor(0.5))
    rate = optimizer.param_groups[0]["lr"]
    scheduler = ours.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert float(rate) == 0.25
    assert float(scheduler.base_lrs[0]) == 0.5
