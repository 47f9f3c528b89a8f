"""Seeds, saved states and bad parameters of the CPU's random streams, against PyTorch's."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tensorflow_lite_clone.backends.numpy import random as host_random
from tensorflow_lite_clone.backends.numpy.random import Generator
from tests.backends.streams import check_same, check_stream, native, pair

Filler = Callable[[Any, Any], Any]


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31, 2**32 + 5, 2**63, 2**64 - 1, -(2**63), 42])
def test_seeds(seed: int) -> None:
    ours, theirs = Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    assert ours.initial_seed() == theirs.initial_seed()
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
    check_same(ours.uniform(700), torch.rand(700, generator=theirs))


def test_seeding_forgets_the_kept_normal() -> None:
    ours, theirs = pair()
    ours.manual_seed(4)
    theirs.manual_seed(4)
    check_same(ours.normal(1), torch.randn(1, generator=theirs))


def test_default_seed() -> None:
    assert Generator().initial_seed() == torch.Generator().initial_seed()
    check_same(Generator().uniform(3), torch.rand(3, generator=torch.Generator()))


def test_random_seeds() -> None:
    generator = Generator()
    seeds = {generator.seed() for _ in range(20)}
    assert len(seeds) == 20
    assert generator.initial_seed() in seeds
    expected = torch.rand(3, generator=torch.Generator().manual_seed(generator.initial_seed()))
    check_same(generator.uniform(3), expected)
    assert isinstance(host_random.default_generator, Generator)


@pytest.mark.parametrize("seed", [1.5, "a", None, True, 2**64, -(2**63) - 1])
def test_bad_seeds(seed: Any) -> None:
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        torch.Generator().manual_seed(seed)
    ours = Generator(5)
    with pytest.raises(theirs.type):
        ours.manual_seed(seed)
    assert ours.initial_seed() == 5


@pytest.mark.parametrize("draws", [0, 1, 2, 100, 623, 624, 625, 1248, 2000])
@pytest.mark.parametrize("kept", [False, True])
def test_states_are_exchanged(draws: int, kept: bool) -> None:
    ours, theirs = Generator(11), torch.Generator().manual_seed(11)
    if kept:
        ours.normal(1)
    ours.uniform(draws)
    theirs.set_state(torch.from_numpy(ours.get_state()))
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
    assert theirs.initial_seed() == 11
    check_same(ours.normal(5), torch.randn(5, generator=theirs))
    check_same(ours.uniform(1000), torch.rand(1000, generator=theirs))

    torch.rand(draws, generator=theirs)
    if kept:
        torch.randn(1, generator=theirs)
    ours.manual_seed(0)
    ours.set_state(theirs.get_state().numpy())
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
    check_same(ours.normal(5), torch.randn(5, generator=theirs))
    check_same(ours.permutation(1000), torch.randperm(1000, generator=theirs))
    check_stream(ours, theirs)


def test_state_is_a_copy() -> None:
    ours, _ = pair()
    saved = ours.get_state()
    first = ours.uniform(10)
    ours.set_state(saved)
    saved[:] = 0
    np.testing.assert_array_equal(ours.uniform(10), first)


def test_state_keeps_the_float_normal() -> None:
    state = Generator(1).get_state()
    state[5048:5052].view(np.float32)[0] = 3.5
    state[5052] = 1
    ours, theirs = Generator(), torch.Generator()
    ours.set_state(state)
    theirs.set_state(torch.from_numpy(state))
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())


def test_clone_state() -> None:
    ours, _ = pair()
    clone = ours.clone_state()
    expected = clone.normal(17)
    np.testing.assert_array_equal(ours.normal(17), expected)
    assert clone.initial_seed() == ours.initial_seed()


def changed(offset: int, value: int) -> np.ndarray:
    """A fresh state with one 32-bit field changed."""
    state = Generator(1).get_state()
    state[offset : offset + 4].view(np.int32)[0] = value
    return state


@pytest.mark.parametrize(
    "state",
    [
        np.zeros(5056, np.float32),
        np.zeros(10, np.uint8),
        np.zeros(5048, np.uint8),
        np.zeros(5056, np.uint8),
        None,
        changed(8, 0),
        changed(8, 625),
        changed(12, 0),
        changed(16, 625),
    ],
    ids=["float", "short", "legacy", "zeros", "none", "left0", "left625", "unseeded", "next625"],
)
def test_bad_states(state: Any) -> None:
    bad = torch.from_numpy(state) if isinstance(state, np.ndarray) else state
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        torch.Generator().set_state(bad)
    ours, _ = pair()
    before = ours.get_state()
    with pytest.raises(theirs.type) as error:
        ours.set_state(state)
    assert str(error.value)[:20] == str(theirs.value)[:20]
    np.testing.assert_array_equal(ours.get_state(), before)


# ---- parameters out of their domain

NAN = math.nan
BAD: list[tuple[str, Callable[..., Any], Filler]] = [
    ("float32", lambda g, d: g.uniform(3, d, 1, 0), lambda x, g: x.uniform_(1, 0)),
    ("float32", lambda g, d: g.uniform(3, d, -3e38, 3e38), lambda x, g: x.uniform_(-3e38, 3e38)),
    ("float16", lambda g, d: g.uniform(3, d, 0, 1e5), lambda x, g: x.uniform_(0, 1e5)),
    ("int64", lambda g, d: g.uniform(3, d), lambda x, g: x.uniform_()),
    ("float32", lambda g, d: g.normal(3, d, 0, -1), lambda x, g: x.normal_(0, -1)),
    ("float32", lambda g, d: g.normal(3, d, 0, NAN), lambda x, g: x.normal_(0, NAN)),
    ("bool", lambda g, d: g.normal(3, d), lambda x, g: x.normal_()),
    ("float32", lambda g, d: g.normal(3, d, 0, -np.ones(3)), lambda x, g: torch.normal(x, -x - 1)),
    ("float32", lambda g, d: g.log_normal(3, d, 0, 0), lambda x, g: x.log_normal_(0, 0)),
    ("int8", lambda g, d: g.log_normal(3, d), lambda x, g: x.log_normal_()),
    ("float32", lambda g, d: g.exponential(3, d, 0), lambda x, g: x.exponential_(0)),
    ("int64", lambda g, d: g.exponential(3, d), lambda x, g: x.exponential_()),
    ("float32", lambda g, d: g.cauchy(3, d, 0, 0), lambda x, g: x.cauchy_(0, 0)),
    ("int64", lambda g, d: g.cauchy(3, d), lambda x, g: x.cauchy_()),
    ("float32", lambda g, d: g.geometric(3, d, 0), lambda x, g: x.geometric_(0)),
    ("float32", lambda g, d: g.geometric(3, d, 1), lambda x, g: x.geometric_(1)),
    ("bool", lambda g, d: g.geometric(3, d), lambda x, g: x.geometric_(0.5)),
    ("float32", lambda g, d: g.bernoulli(1.5, 3, d), lambda x, g: x.bernoulli_(1.5)),
    ("complex64", lambda g, d: g.bernoulli(0.5, 3, d), lambda x, g: x.bernoulli_(0.5)),
    ("float32", lambda g, d: g.bernoulli(np.full(3, 2.0)), lambda x, g: torch.bernoulli(x + 2)),
    ("float32", lambda g, d: g.bernoulli(np.full(3, NAN)), lambda x, g: torch.bernoulli(x + NAN)),
    ("int64", lambda g, d: g.bernoulli(np.ones(3, d)), lambda x, g: torch.bernoulli(x)),
    ("complex64", lambda g, d: g.random(3, d), lambda x, g: x.random_()),
    ("int64", lambda g, d: g.randint(3, 3, 3, d), lambda x, g: x.random_(3, 3)),
    ("int64", lambda g, d: g.randint(5, 3, 0, d), lambda x, g: x[:0].random_(5, 3)),
    ("uint8", lambda g, d: g.randint(0, 300, 3, d), lambda x, g: x.random_(0, 300)),
    ("uint8", lambda g, d: g.randint(-1, 30, 3, d), lambda x, g: x.random_(-1, 30)),
    ("bool", lambda g, d: g.randint(0, 3, 3, d), lambda x, g: x.random_(0, 3)),
    ("float16", lambda g, d: g.randint(0, 70000, 3, d), lambda x, g: x.random_(0, 70000)),
    ("float16", lambda g, d: g.randint(5000, None, 3, d), lambda x, g: x.random_(5000, None)),
    ("int32", lambda g, d: g.randint(-(2**63), None, 3, d), lambda x, g: x.random_(-(2**63), None)),
    ("int64", lambda g, d: g.randint(0, 2**63, 3, d), lambda x, g: torch.randint(2**63, (3,))),
    ("int64", lambda g, d: g.permutation(-1), lambda x, g: torch.randperm(-1)),
    ("uint8", lambda g, d: g.permutation(257, d), lambda x, g: torch.randperm(257, dtype=x.dtype)),
    ("bool", lambda g, d: g.permutation(2, d), lambda x, g: torch.randperm(2, dtype=x.dtype)),
    ("float32", lambda g, d: g.poisson(-np.ones(3, d)), lambda x, g: torch.poisson(-x - 1)),
    ("int64", lambda g, d: g.poisson(np.ones(3, d)), lambda x, g: torch.poisson(x)),
    ("int64", lambda g, d: g.multinomial(np.ones(3, d), 1), lambda x, g: torch.multinomial(x, 1)),
    *[
        (
            "float32",
            lambda g, d, w=weights, r=rest: g.multinomial(np.array(w, d), *r),
            lambda x, g, w=weights, r=rest: torch.multinomial(torch.tensor(w), *r),
        )
        for weights, rest in [
            ([1.0, 1.0], (0,)),
            ([1.0, 1.0], (3,)),
            (1.0, (1,)),
            ([[[1.0]]], (1,)),
            ([-1.0, 2.0], (2,)),
            ([0.0, 0.0], (2,)),
            ([0.0, 0.0], (2, True)),
            ([-1.0, 2.0], (2, True)),
            ([1.0, math.inf], (2, True)),
            ([], (2, True)),
            ([1.0, NAN], (1,)),
        ]
    ],
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_parameters(case: int) -> None:
    dtype, draw, fill = BAD[case]
    with pytest.raises((RuntimeError, ValueError, NotImplementedError)) as theirs:
        fill(torch.zeros(3, dtype=getattr(torch, dtype)), None)
    ours, _ = pair()
    before = ours.get_state()
    with pytest.raises(theirs.type) as error:
        draw(ours, native(dtype))
    assert error.type is theirs.type
    assert str(error.value)[:16] == str(theirs.value)[:16]
    np.testing.assert_array_equal(ours.get_state(), before)


def test_import_and_seeding_leave_numpy_random_alone() -> None:
    """numpy.random takes 10 ms to import: only a draw may ask for it."""
    code = (
        "import sys\n"
        "from tensorflow_lite_clone.backends.numpy import random\n"
        "random.default_generator.manual_seed(3)\n"
        "assert 'numpy.random' not in sys.modules\n"
        "random.default_generator.uniform(1)\n"
        "assert 'numpy.random' in sys.modules\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
