"""Arguments of loaders, samplers and splits: taken and refused as PyTorch does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import torch.utils.data as theirs

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.data as ours
from tests.data.test_datasets import plain, stream

LIBRARIES = ((tlc, ours), (torch, theirs))
OPTIONS = {
    "batch_size": [0, -1, True, 2.0, "2", None, 3, np.int64(2), [1]],
    "shuffle": [True, False, None, 1, 0, "yes", [], 2.5, [1]],
    "sampler": [[0, 1], range(3), 5, "ab", ()],
    "batch_sampler": [[[0, 1], [2]], 5, [1, 2], [[]], ()],
    "collate_fn": [len, 5, "x"],
    "drop_last": [True, False, None, 1, 0, "x"],
    "timeout": [-1, 0, 1, 1.5, None, "1", True],
    "multiprocessing_context": ["fork", "spawn", "nope", 5, "", []],
    "generator": [5, "x", 0, None],
    "prefetch_factor": [0, 1, -1, 2.0, True, None, "2"],
    "persistent_workers": [True, False, 1, 0, None],
    "num_workers": [-1, 0, False, "1", None],
}
ODD = [0, -1, True, 2, 2.0, None, "2", np.int64(2), [], np.float32(1)]


def outcome(call, lib, data):
    """What a call gives, or the type of its exception."""
    lib.manual_seed(0)
    try:
        return plain(call(lib, data))
    except Exception as error:
        return type(error)


def assert_same(call):
    mine, reference = (outcome(call, lib, data) for lib, data in LIBRARIES)
    assert repr(mine) == repr(reference)


def first_batches(data, dataset, **options):
    return list(itertools.islice(data.DataLoader(dataset, **options), 3))


def parts(data, *arguments):
    return [list(part) for part in data.random_split(*arguments)]


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_single_options(name, is_stream):
    for value in OPTIONS[name]:

        def call(lib, data, value=value):
            dataset = stream(data, 5) if is_stream else range(10)
            return first_batches(data, dataset, **{name: value})

        assert_same(call)


@pytest.mark.parametrize(
    "options",
    [
        {"prefetch_factor": 0},
        {"prefetch_factor": 0, "persistent_workers": True},
        {"prefetch_factor": 2.0},
        {"prefetch_factor": True},
        {"prefetch_factor": "2"},
        {"timeout": 5},
        {"timeout": "1"},
        {"generator": 5},
        {"multiprocessing_context": "nope"},
        {"batch_size": None, "prefetch_factor": 1},
        {"in_order": None},
    ],
)
# PyTorch's iterator that was never finished fails once more when it is deleted.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_options_with_a_worker(options):
    assert_same(lambda lib, data: first_batches(data, range(5), num_workers=1, **options))


def test_pairs_of_options():
    values = {
        "batch_size": [None, 2],
        "drop_last": [True],
        "shuffle": [True],
        "sampler": [[0, 1]],
        "batch_sampler": [[[0], [1]]],
        "prefetch_factor": [0, 2],
        "timeout": [3],
    }
    for first, second in itertools.combinations(values, 2):
        for a, b in itertools.product(values[first], values[second]):
            for make in (lambda data: range(4), lambda data: stream(data, 4), lambda data: []):
                options = {first: a, second: b}
                assert_same(lambda lib, data: first_batches(data, make(data), **options))  # noqa: B023


SAMPLERS = {
    "size of batches": lambda data, x: data.BatchSampler(range(5), x, False),
    "whether a last batch is dropped": lambda data, x: data.BatchSampler(range(5), 2, x),
    "what batches are made of": lambda data, x: data.BatchSampler(x, 2, False),
    "number of random samples": lambda data, x: data.RandomSampler(range(5), num_samples=x),
    "replacement": lambda data, x: data.RandomSampler(range(5), replacement=x),
    "generator": lambda data, x: data.RandomSampler(range(5), generator=x),
    "source": lambda data, x: data.RandomSampler(x),
    "number of weighted samples": lambda data, x: data.WeightedRandomSampler([0.1, 0.9], x),
    "weighted replacement": lambda data, x: data.WeightedRandomSampler([0.1, 0.9], 2, x),
    "weighted generator": lambda data, x: data.WeightedRandomSampler([0.1, 0.9], 2, True, x),
    "subset": lambda data, x: data.SubsetRandomSampler(x),
    "generator of a subset": lambda data, x: data.SubsetRandomSampler([3, 4], x),
    "sequence": lambda data, x: data.SequentialSampler(x),
    "indices": lambda data, x: data.Subset(range(5), x),
    "generator of a split": lambda data, x: parts(data, range(5), [2, 3], x),
    "lengths": lambda data, x: parts(data, range(5), x),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    for value in ODD:
        assert_same(lambda lib, data: list(SAMPLERS[name](data, value)))  # noqa: B023


@pytest.mark.filterwarnings("ignore:Length of split at index")
def test_splits():
    lengths = [
        [5], [2, 2], [2, 3, 0], [6, -1], [0.5, 0.5], [0.3, 0.7], [1.0], [0.5, 0.6], [1.5, -0.5],
        [0.2] * 5, [], [2.0, 3.0], [1, 0, 0], [0, 1], [True, 4], [0.1, 0.1], ["a"], (2, 3),
        [2.5, 2.5], [1 / 3] * 3, [0.5, 0.49999999999],
    ]  # fmt: skip
    for one in lengths:
        for dataset in (range(5), [], [7]):
            assert_same(lambda lib, data: parts(data, dataset, one))  # noqa: B023


@pytest.mark.parametrize("weights", [[0.1, -0.2], [0, 0], [float("nan"), 1], [[0.1]], [1], ["a"]])
def test_weights(weights):
    for count, replacement in itertools.product((1, 2, 5), (True, False)):
        options = weights, count, replacement
        assert_same(lambda lib, data: list(data.WeightedRandomSampler(*options)))  # noqa: B023


@pytest.mark.parametrize(
    "batch",
    [
        [np.float32(1), 2], [np.int64(1), 2.5], [np.float32(1), 2.5], [np.complex64(1), 2.5],
        [np.float16(1), np.float32(2)], [np.float64(1), 1], [None], [],
        [1, "a"], [1, None], ["a", 1], [[1], [2, 3]], [(1,), (2, 3)], [{"a": 1}, {"b": 1}], [{1}],
        [1j], 5, None, [np.array(["a"])], [np.array([1, 2]), np.array([3])], [2**70],
    ],
    ids=repr,
)  # fmt: skip
def test_collated(batch):
    def call(lib, data):
        result = data.default_collate(batch)
        return [result, str(getattr(result, "dtype", None)).removeprefix("torch.")]

    assert_same(call)
