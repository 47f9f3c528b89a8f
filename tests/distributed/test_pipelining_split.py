"""Models are cut between modules that are called one after the other, and only there."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.pipelining import SplitPoint, pipe_split, pipeline
from tests.device import DEVICE

BEGINNING, END = SplitPoint.BEGINNING, SplitPoint.END


class Deep(nn.Module):
    """A loop over a list of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.ReLU())
            for _ in range(3)
        )
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


def batch():
    return torch.randn(5, 3, device=DEVICE)


def made(model):
    return model().to(DEVICE)


CUTS = {
    "between": ({"layers.1": BEGINNING}, ["first layers.0", "layers.1 layers.2 last"]),
    "inside": (
        {"layers.1.2": BEGINNING},
        ["first layers.0 layers.1.0 layers.1.1", "layers.1.2 layers.1.3 layers.2 last"],
    ),
    "four": (
        {"layers.0": END, "layers.2": END, "layers.2.3": BEGINNING},
        ["first layers.0", "layers.1 layers.2.0 layers.2.1 layers.2.2", "layers.2.3", "last"],
    ),
    "the same place": (
        {"first": END, "layers.0": BEGINNING},
        ["first", "layers.0 layers.1 layers.2 last"],
    ),
    "the ends": ({"first": BEGINNING, "last": END}, ["first layers.0 layers.1 layers.2 last"]),
    "nowhere": ({}, ["first layers last"]),
}


@pytest.mark.parametrize("case", CUTS)
def test_stages_are_parts_of_the_model(case):
    points, expected = CUTS[case]
    model, x = made(Deep), batch()
    torch.manual_seed(0)
    state, running = torch.get_rng_state(), model.layers[0][1].running_mean.clone()
    pipe = pipeline(model, (x,), split_spec=points)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model.layers[0][1].running_mean, running)
    stages = [pipe.get_stage_module(index) for index in range(pipe.num_stages)]
    assert pipe.num_stages == len(expected) == pipe.info().num_stages
    own = dict(model.named_parameters())
    names = []
    for stage, modules in zip(stages, expected, strict=True):
        found = dict(stage.named_parameters())
        assert all(own[name] is value for name, value in found.items())
        assert all(any(f"{n}.".startswith(f"{m}.") for m in modules.split()) for n in found)
        names += found
    assert names == [*own]
    for training in (True, False):
        model.train(training)
        torch.manual_seed(1)
        y = model(x)
        torch.manual_seed(1)
        assert torch.equal(pipe(x), y)


class Marked(nn.Module):
    """Ends a stage in its forward, and gives several values on."""

    class Two(nn.Module):
        def forward(self, x, *, scale=1):
            return x * scale, x + 1

    class One(nn.Module):
        def forward(self, x, y):
            return x - y

    def __init__(self) -> None:
        super().__init__()
        self.two, self.one, self.act = self.Two(), self.One(), nn.ReLU(inplace=True)

    def forward(self, x, *, scale=1):
        pair = self.two(x, scale=scale)
        pipe_split()
        x = self.one(*pair)
        pipe_split()
        return self.act(x)


def test_marks_in_a_forward():
    model, x = made(Marked), batch()
    pipe = pipeline(model, (x,), {"scale": 3})
    assert pipe.num_stages == 3
    assert torch.equal(pipe(x, scale=3), model(x, scale=3))
    assert pipe_split() is None


class Between(nn.Module):
    """Runs its modules in the way `how`."""

    def __init__(self, how) -> None:
        super().__init__()
        self.a, self.b, self.how = nn.Linear(3, 3), nn.Linear(3, 3), how

    def forward(self, x, y=None):
        return self.how(self, x, y)


REFUSED = {
    "a function": (lambda m, x, y: m.b(torch.relu(m.a(x))), "what b takes is not just what a gi"),
    "a function at last": (lambda m, x, y: m.b(m.a(x)) + 1, "the result is not just what b gives"),
    "a function first": (lambda m, x, y: m.b(m.a(x * 2)), "what a takes is not just the input"),
    "in place": (lambda m, x, y: m.b(m.a(x).relu_()), "what b takes is not just what a gives"),
    "in place at last": (lambda m, x, y: m.b(m.a(x)).relu_(), "the result is not just what b gi"),
    "in place first": (lambda m, x, y: m.b(m.a(x.mul_(2))), "what a takes is not just the input"),
    "a way around": (lambda m, x, y: m.a(x) + m.b(x), "what b takes is not just what a gives"),
    "not all": (lambda m, x, y: (m.a(x), m.b(x))[1], "what b takes is not just what a gives"),
    "twice": (lambda m, x, y: m.b(m.a(m.a(x))), "a is called twice"),
    "never": (lambda m, x, y: m.b(x), "the model calls none of \\['a'\\]"),
    "another view": (lambda m, x, y: m.b(m.a(x).view(-1, 3)), "what b takes is not just what a"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_split_refuses_computation_between_modules(case):
    how, message = REFUSED[case]
    model, x = Between(how).to(DEVICE), batch()
    with pytest.raises(ValueError, match=message):
        pipeline(model, (x,), split_spec={"a": END})
    assert pipeline(model, (x,)).num_stages == 1


def test_an_argument_that_is_not_handed_on_is_refused():
    model = Between(lambda m, x, y: m.b(m.a(x))).to(DEVICE)
    with pytest.raises(ValueError, match="what a takes is not just the input"):
        pipeline(model, (batch(), batch()), split_spec={"a": END})


def test_parameters_of_two_stages_are_refused():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)).to(DEVICE)
    model[2].weight = model[0].weight
    with pytest.raises(ValueError, match=r"2.weight is needed in stages 0 and 1"):
        pipeline(model, (batch(),), split_spec={"1": BEGINNING})


def test_parameters_of_none_are_refused():
    model = Deep().to(DEVICE)
    model.extra = nn.Parameter(torch.ones(1, device=DEVICE))
    with pytest.raises(ValueError, match="extra would be in no stage"):
        pipeline(model, (batch(),), split_spec={"last": BEGINNING})


def test_a_tuple_as_one_argument_stays_in_a_stage():
    class Sum(nn.Module):
        def forward(self, pair):
            return pair[0] + pair[1]

    model = nn.Sequential(Marked.Two(), Sum(), nn.ReLU()).to(DEVICE)
    with pytest.raises(ValueError, match="0 gives tuple as one argument to 1"):
        pipeline(model, (batch(),), split_spec={"0": END})
    assert pipeline(model, (batch(),), split_spec={"1": END}).num_stages == 2


def test_bad_arguments():
    model, x = made(Deep), batch()
    with pytest.raises(AttributeError, match="nope"):
        pipeline(model, (x,), split_spec={"nope": BEGINNING})
    with pytest.raises(ValueError, match="Unknown split point type"):
        pipeline(model, (x,), split_spec={"last": 3})
    with pytest.raises(NotImplementedError, match="split_policy"):
        pipeline(model, (x,), split_policy=print)
    pipe = pipeline(model, (x,), split_spec={"last": BEGINNING})
    for index in (-1, 2):
        with pytest.raises(ValueError, match=f"Invalid stage index {index}!"):
            pipe.get_stage_module(index)


def test_an_error_of_the_model_leaves_no_traces():
    model = Between(lambda m, x, y: m.b(m.a(x), 1)).to(DEVICE)
    with pytest.raises(TypeError):
        pipeline(model, (batch(),), split_spec={"a": END})
    assert pipeline(made(Deep), (batch(),), split_spec={"last": BEGINNING}).num_stages == 2
