"""functional_call, stack_module_state and replace_all_batch_norm_modules_ against PyTorch's."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import raises, same
from tests.func.numbers import filled


def model(lib, seed=0):
    nn = lib.nn
    return filled(lib, nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), seed)


def tied(lib):
    class Tied(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = lib.nn.Linear(2, 2)
            self.b = lib.nn.Linear(2, 2)
            self.b.weight = self.a.weight

        def forward(self, x, scale=1):
            return (self.a(x) + self.b(x)) * scale

    return filled(lib, Tied())


def zeros(lib, *names):
    return {name: lib.zeros(2, 2) if "weight" in name else lib.zeros(2) for name in names}


CALLS = [
    ("nothing", lambda lib, m, x: (m, {}, x)),
    ("one", lambda lib, m, x: (m, zeros(lib, "a.weight"), x)),
    ("tuple", lambda lib, m, x: (m, zeros(lib, "a.weight"), (x, 2))),
    ("keywords", lambda lib, m, x: (m, zeros(lib, "a.weight"), x, {"scale": 3})),
    ("all by keyword", lambda lib, m, x: (m, zeros(lib, "a.bias"), None, {"x": x})),
    ("dictionaries", lambda lib, m, x: (m, (zeros(lib, "a.weight"), zeros(lib, "a.bias")), x)),
    ("unknown", lambda lib, m, x: (m, {"c": x}, x)),
]


@parameterized.expand(CALLS)
def test_call(name, arguments):
    def script(lib):
        m = tied(lib)
        before = m.a.weight
        result = lib.func.functional_call(*arguments(lib, m, lib.ones(1, 2)))
        return result, m.a.weight is before, isinstance(m.a.weight, lib.nn.Parameter)

    same(script)


def test_untied():
    same(lambda lib: lib.func.functional_call(
        tied(lib), zeros(lib, "a.weight"), lib.ones(1, 2), tie_weights=False))  # fmt: skip


ERRORS = [
    ("repeated", lambda lib: ((zeros(lib, "a.bias"), zeros(lib, "a.bias")), {})),
    ("number", lambda lib: (3, {})),
    ("nowhere", lambda lib: (zeros(lib, "c.weight"), {})),
    ("no tensor", lambda lib: ({"a.weight": 3}, {})),
    ("missing", lambda lib: (zeros(lib, "a.bias"), {"strict": True})),
    ("unknown", lambda lib: (zeros(lib, "c.bias", "b.weight"), {"strict": True})),
    ("tied", lambda lib: (zeros(lib, "a.weight", "b.weight"), {})),
]


@parameterized.expand(ERRORS)
def test_error(name, arguments):
    def script(lib):
        state, options = arguments(lib)
        return lib.func.functional_call(tied(lib), state, lib.ones(1, 2), **options)

    raises(script)


def test_members_are_back_after_an_error():
    def script(lib):
        m = model(lib)
        before = m[0].weight
        try:
            lib.func.functional_call(m, {"0.weight": lib.ones(5, 5)}, lib.ones(1, 3))
        except RuntimeError:
            return m[0].weight is before

    assert same(script)


def test_gradient_by_state():
    def script(lib):
        m = model(lib)
        state = dict(m.named_parameters())

        def loss(state, x):
            return (lib.func.functional_call(m, state, x) ** 2).sum()

        return lib.func.grad(loss)(state, lib.ones(2, 3))

    same(script)


def test_stack_module_state():
    def script(lib):
        models = [model(lib, seed) for seed in range(3)]
        parameters, buffers = lib.func.stack_module_state(models)
        norms = lib.func.stack_module_state([lib.nn.BatchNorm1d(2), lib.nn.BatchNorm1d(2)])
        return parameters, buffers, norms, [p.is_leaf for p in parameters.values()]

    same(script)


STACKS = [
    ("none", lambda lib: []),
    ("classes", lambda lib: [lib.nn.Linear(2, 2), lib.nn.ReLU()]),
    ("modes", lambda lib: [lib.nn.Linear(2, 2), lib.nn.Linear(2, 2).eval()]),
]


@parameterized.expand(STACKS)
def test_stack_error(name, models):
    raises(lambda lib: lib.func.stack_module_state(models(lib)))


def test_replace_all_batch_norm_modules():
    def script(lib):
        nn = lib.nn
        root = nn.Sequential(nn.BatchNorm1d(3), nn.Sequential(nn.BatchNorm2d(2)), nn.Linear(1, 1))
        same_root = lib.func.replace_all_batch_norm_modules_(root) is root
        norm = root[1][0]
        state = norm.running_mean, norm.running_var, norm.num_batches_tracked
        return same_root, state, norm.track_running_stats, list(root.state_dict())

    same(script)
