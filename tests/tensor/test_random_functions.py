"""Random tensors: the same seed gives PyTorch's numbers, whatever the function and arguments."""

from __future__ import annotations

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, raises, same
from tests.device import DEVICE
from tests.tensor.expressions import lines, names

SAMPLES = [
    ("rand", "torch.rand(3), torch.rand(2, 3), torch.rand((2, 3)), torch.rand([]), torch.rand(0)"),
    ("rand of a size", "torch.rand(size=(2,)), torch.rand(torch.Size([2])), torch.rand(())"),
    ("rand dtypes", "torch.rand(20, dtype=torch.float64), torch.rand(20, dtype=torch.float16)"),
    ("rand bfloat16", "torch.rand(20, dtype=torch.bfloat16)"),
    ("rand complex", "torch.rand(5, dtype=torch.complex64)"),
    ("rand grad", "torch.rand(2, requires_grad=True)"),
    ("rand out", "torch.rand(2, 2, out=torch.empty(2, 2))"),
    ("randn", "torch.randn(3), torch.randn(40), torch.randn(2, 9)"),
    ("randn dtypes", "torch.randn(20, dtype=torch.float64), torch.randn(20, dtype=torch.float16)"),
    ("randn complex", "torch.randn(5, dtype=torch.complex128)"),
    ("randint", "torch.randint(10, (3,)), torch.randint(5, 10, (2, 3)), torch.randint(3, [2])"),
    (
        "randint keywords",
        "torch.randint(low=2, high=5, size=(3,)), torch.randint(high=5, size=(2,))",
    ),
    (
        "randint dtypes",
        "[torch.randint(0, 9, (5,), dtype=d) for d in (torch.int8, torch.uint8, torch.float32)]",
    ),
    ("randint large", "torch.randint(-2**62, 2**62, (5,)), torch.randint(2**40, (3,))"),
    ("randint negative", "torch.randint(-5, 5, (20,))"),
    ("randperm", "torch.randperm(10), torch.randperm(0), torch.randperm(5, dtype=torch.int32)"),
    ("randperm large", "torch.randperm(50000)[:20]"),
    (
        "rand_like",
        "torch.rand_like(f), torch.randn_like(f), torch.rand_like(i, dtype=torch.float32)",
    ),
    ("like dtypes", "torch.rand_like(f, dtype=torch.float64), torch.randn_like(h)"),
    (
        "like of a transpose",
        "torch.rand_like(f.t()), torch.randn_like(f.t()), torch.rand_like(f.t()).stride()",
    ),
    ("like grad", "torch.rand_like(f, requires_grad=True).requires_grad"),
    (
        "randint_like",
        "torch.randint_like(f, 10), torch.randint_like(f, 3, 8), torch.randint_like(i, 5)",
    ),
    ("randint_like dtype", "torch.randint_like(f, 10, dtype=torch.int64)"),
    ("randint_like by names", "torch.randint_like(f, high=10), torch.randint_like(f, 3, high=8)"),
    (
        "randint_like generator",
        "torch.randint_like(f, 10, generator=torch.Generator().manual_seed(3))",
    ),
    (
        "normal",
        "torch.normal(0.0, 1.0, (3,)), torch.normal(2, 3, size=(20,)), torch.normal(f, f + 1)",
    ),
    (
        "normal mixed",
        "torch.normal(f, 2.0), torch.normal(1.0, f), torch.normal(f), torch.normal(f, f[0])",
    ),
    ("normal std zero", "torch.normal(f, f * 0)"),
    (
        "bernoulli",
        "torch.bernoulli(torch.full((20,), 0.3)), torch.bernoulli(f / 6), f.bernoulli(0.5)",
    ),
    ("bernoulli double", "torch.bernoulli(torch.full((20,), 0.3, dtype=torch.float64))"),
    ("bernoulli p", "torch.bernoulli(f, 0.7), torch.bernoulli(f, p=0.1)"),
    ("multinomial", "torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 2)"),
    ("multinomial many", "torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 20, replacement=True)"),
    (
        "multinomial rows",
        "torch.multinomial(f + 1, 2), torch.multinomial(f + 1, 5, True), (f + 1).multinomial(1)",
    ),
    ("poisson", "torch.poisson(f), torch.poisson(f * 10)"),
    (
        "uniform_",
        "torch.empty(5).uniform_(), torch.empty(5).uniform_(-2, 3), torch.empty(5).uniform_(to=2)",
    ),
    (
        "normal_",
        "torch.empty(5).normal_(), torch.empty(20).normal_(2, 3), torch.empty(5).normal_(std=2)",
    ),
    ("in place", "torch.empty(5).exponential_(), torch.empty(5).exponential_(2.0)"),
    (
        "in place 2",
        "torch.empty(5).cauchy_(), torch.empty(5).cauchy_(1, 2), torch.empty(5).log_normal_()",
    ),
    (
        "in place 3",
        "torch.empty(5).geometric_(0.3), torch.zeros(5, dtype=torch.int64).geometric_(0.3)",
    ),
    (
        "random_",
        "torch.empty(5).random_(), torch.zeros(5, dtype=torch.int64).random_(), i.random_(10)",
    ),
    (
        "random_ range",
        "i.random_(3, 8), torch.zeros(5, dtype=torch.uint8).random_(), f.random_(-3, 3)",
    ),
    (
        "bernoulli_",
        "torch.empty(9).bernoulli_(), torch.empty(9).bernoulli_(0.9), f.bernoulli_(f / 6)",
    ),
    (
        "bernoulli_ int",
        "torch.zeros(9, dtype=torch.int64).bernoulli_(0.5), torch.zeros(9).bool().bernoulli_()",
    ),
    (
        "transposed",
        "torch.empty(3, 4).t().normal_(), torch.empty(4, 6).t().uniform_(), f.t().random_(9)",
    ),
    ("sliced", "torch.zeros(4, 6)[:, ::2].normal_(), torch.zeros(10)[::3].uniform_()"),
    ("dropout", "torch.nn.functional.dropout(torch.ones(20), 0.3), torch.dropout(f, 0.5, True)"),
    (
        "alternating",
        "[torch.rand(1), torch.randn(1), torch.randint(5, (1,)), torch.randn(3), torch.rand(1)]",
    ),
    ("layers", "torch.nn.Linear(3, 2).weight, torch.nn.init.kaiming_normal_(torch.empty(3, 4))"),
]


@parameterized.expand(SAMPLES)
def test_samples(name, expression):
    def script(lib):
        lib.manual_seed(1234)
        return eval(expression, names(lib)), lib.rand(1)

    same(script, rtol=2e-6, atol=1e-6, warned=False)


@parameterized.expand(
    [
        (expression,)
        for expression in (
            "torch.rand(2, generator=g)",
            "torch.randn(20, generator=g)",
            "torch.randint(9, (4,), generator=g)",
            "torch.randperm(6, generator=g)",
            "torch.bernoulli(torch.full((5,), 0.5), generator=g)",
            "torch.multinomial(torch.ones(5), 2, generator=g)",
            "torch.poisson(torch.full((5,), 3.0), generator=g)",
            "torch.normal(0.0, 1.0, (3,), generator=g)",
            "torch.normal(torch.zeros(3), 1.0, generator=g)",
            "torch.normal(torch.zeros(3), torch.ones(3), generator=g)",
            "torch.empty(3).uniform_(generator=g)",
            "torch.empty(3).normal_(generator=g)",
            "torch.empty(3).exponential_(generator=g)",
            "torch.empty(3).random_(generator=g)",
            "torch.empty(3).random_(5, generator=g)",
            "torch.empty(3).bernoulli_(0.5, generator=g)",
            "torch.empty(3).geometric_(0.5, generator=g)",
            "torch.empty(3).cauchy_(generator=g)",
            "torch.empty(3).log_normal_(generator=g)",
            "torch.nn.init.normal_(torch.empty(3), generator=g)",
        )
    ]
)
def test_generators_of_functions(expression):
    def script(lib):
        lib.manual_seed(0)
        default = lib.get_rng_state()
        g = lib.Generator(device=None if DEVICE == "cpu" or lib is not tlc else DEVICE)
        g.manual_seed(99)
        drawn = eval(expression, {"torch": lib, "g": g})
        return drawn, lib.equal(default, lib.get_rng_state())

    same(script, rtol=2e-6, atol=1e-6)


@lines(
    """
    torch.rand(-1)
    torch.rand(2.5)
    torch.rand()
    torch.rand(2, dtype=torch.int64)
    torch.randn(2, dtype=torch.int64)
    torch.randint(0, (2,))
    torch.randint(5, 5, (2,))
    torch.randint(5, 3, (2,))
    torch.randint(5)
    torch.randint(2.5, (2,))
    torch.randint(300, (2,), dtype=torch.int8)
    torch.randint(-5, 5, (2,), dtype=torch.uint8)
    torch.randperm(-1)
    torch.randperm(2.5)
    torch.randperm(300, dtype=torch.int8)
    torch.rand_like(i)
    torch.randn_like(i)
    torch.rand_like(3)
    torch.normal(f, -1.0)
    torch.normal(0.0, -1.0, (2,))
    torch.normal(f, -f - 1)
    torch.normal(f, f[:1, :2])
    torch.normal(0.0, 1.0)
    torch.bernoulli(f)
    torch.bernoulli(i)
    torch.bernoulli(f, 1.5)
    torch.multinomial(f, 5)
    torch.multinomial(-f, 1)
    torch.multinomial(f * 0, 1)
    torch.multinomial(i, 1)
    torch.multinomial(f, 0)
    torch.multinomial(torch.ones(2, 2, 2), 1)
    torch.poisson(-f - 1)
    torch.poisson(i)
    torch.empty(3).uniform_(3, 2)
    torch.empty(3).normal_(0, -1)
    torch.empty(3).exponential_(0)
    torch.empty(3).exponential_(-1)
    torch.empty(3).geometric_(0)
    torch.empty(3).geometric_(1)
    torch.empty(3).cauchy_(0, 0)
    torch.empty(3).log_normal_(0, 0)
    torch.empty(3).bernoulli_(2)
    torch.empty(3).random_(5, 5)
    torch.empty(3).random_(0)
    i.uniform_()
    i.normal_()
    i.exponential_()
    i.cauchy_()
    x.uniform_()
    torch.ones(1).expand(3).uniform_()
    torch.rand(2, generator=3)
    torch.manual_seed('a')
    torch.manual_seed(2**65)
    torch.Generator().manual_seed('a')
    torch.Generator().set_state(torch.zeros(3))
    torch.Generator().set_state(torch.zeros(3, dtype=torch.uint8))
    torch.Generator().set_state([1])
    torch.Generator('nonsense')
    torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))
    """
)
def test_refused(expression):
    raises(lambda lib: eval(expression, names(lib)), "")


# -- generators ------------------------------------------------------------------------------------


def test_generator():
    def script(lib):
        g = lib.Generator()
        seen = [g.device.type, g.initial_seed(), type(g.seed()).__name__]
        seen.append(g.manual_seed(7) is g)
        seen += [g.initial_seed(), lib.rand(2, generator=g)]
        state = g.get_state()
        seen += [state.dtype, list(state.shape), state.device.type]
        a = lib.rand(3, generator=g), lib.randn(3, generator=g)
        g.set_state(state)
        b = lib.rand(3, generator=g), lib.randn(3, generator=g)
        clone = g.clone_state()
        c = lib.rand(3, generator=g), lib.rand(3, generator=clone)
        seen.append(lib.equal(a[0], b[0]) and lib.equal(a[1], b[1]) and lib.equal(*c))
        return seen, c

    if DEVICE == "cpu":
        same(script)


def test_negative_and_large_seeds():
    def script(lib):
        seen = []
        for seed in (-1, 0, 2**31, 2**32 + 5, 2**63, 2**64 - 1, True):
            lib.manual_seed(seed)
            seen.append((lib.initial_seed(), lib.rand(1)))
        return seen, attempt(lib.manual_seed, -(2**63) - 1), lib.manual_seed(1.9).initial_seed()

    same(script, words=("",))


def test_states_move_between_the_libraries():
    import torch

    torch.manual_seed(3)
    torch.randn(5)
    state = torch.get_rng_state()
    tlc.set_rng_state(tlc.from_numpy(state.numpy()))
    assert tlc.rand(4, device="cpu").tolist() == torch.rand(4).tolist()
    assert tlc.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()


def test_random_module():
    def script(lib):
        module = lib.random
        module.manual_seed(5)
        seen = [module.initial_seed(), lib.rand(1)]
        state = module.get_rng_state()
        first = lib.rand(2, device="cpu")
        module.set_rng_state(state)
        seen += [lib.equal(first, lib.rand(2, device="cpu")), type(module.seed()).__name__]
        seen.append(isinstance(module.default_generator, lib.Generator))
        seen.append(lib.default_generator is module.default_generator)
        return seen

    same(script)


def test_fork_rng():
    def script(lib):
        lib.manual_seed(0)
        with lib.random.fork_rng():
            inside = lib.rand(2)
            lib.manual_seed(100)
            lib.rand(5)
        after = lib.rand(2)
        with lib.random.fork_rng(enabled=False):
            off = lib.rand(1)
        try:
            with lib.random.fork_rng(devices=[] if DEVICE == "cpu" else None):
                lib.manual_seed(3)
                raise ValueError
        except ValueError:
            pass

        @lib.random.fork_rng()
        def f():
            return lib.rand(1)

        return inside, after, off, lib.rand(1), f(), f()

    same(script)


def test_fork_rng_with_a_device_in_use_that_has_no_stream():
    tlc.empty(2, device="meta")
    tlc.manual_seed(0)
    with tlc.random.fork_rng():
        first = tlc.rand(3)
    assert tlc.equal(first, tlc.rand(3))


def test_seeds_differ():
    assert tlc.seed() != tlc.seed()
    tlc.seed()
    first = tlc.rand(5)
    tlc.seed()
    assert not tlc.equal(first, tlc.rand(5))


def test_manual_seed_returns_the_generator():
    def script(lib):
        return lib.manual_seed(4) is lib.default_generator, lib.default_generator.initial_seed()

    same(script)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a second device")
def test_generators_of_another_device():
    with pytest.raises(RuntimeError, match="device type for generator"):
        tlc.rand(2, device=DEVICE, generator=tlc.Generator("cpu"))
