"""Samplers and splits draw what PyTorch draws from the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.utils.data as theirs
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.data as ours

LIBRARIES = ((tlc, ours), (torch, theirs))
WEIGHTS = [0.1, 0.9, 0.4, 0.7, 3.0, 0.6, 0.0, 1.0]


def both(make, seed=7, own=None):
    """For each library: two passes over `make(data, generator)`, and the streams afterwards."""
    results = []
    for lib, data in LIBRARIES:
        lib.manual_seed(seed)
        generator = None if own is None else lib.Generator().manual_seed(own)
        sampler = make(data, generator)
        passes = [list(sampler), list(sampler)]
        streams = [lib.rand(2).tolist()]
        if generator is not None:
            streams.append(lib.rand(2, generator=generator).tolist())
        results.append((len(sampler), passes, streams))
    return results


RANDOM = [
    (name, own, make)
    for own in (None, 11)
    for name, make in {
        "permutation": lambda d, g: d.RandomSampler(range(10), generator=g),
        "one": lambda d, g: d.RandomSampler(range(1), generator=g),
        "large": lambda d, g: d.RandomSampler(range(3000), generator=g),
        "fewer": lambda d, g: d.RandomSampler(range(10), num_samples=4, generator=g),
        "more": lambda d, g: d.RandomSampler(range(10), num_samples=25, generator=g),
        "twice": lambda d, g: d.RandomSampler(range(10), num_samples=20, generator=g),
        "replacement": lambda d, g: d.RandomSampler(range(10), True, generator=g),
        "replacement 32": lambda d, g: d.RandomSampler(range(10), True, 32, generator=g),
        "replacement 77": lambda d, g: d.RandomSampler(range(1000), True, 77, generator=g),
        "subset": lambda d, g: d.SubsetRandomSampler([5, 3, 8, 1], generator=g),
        "weighted": lambda d, g: d.WeightedRandomSampler(WEIGHTS, 20, generator=g),
        "weighted once": lambda d, g: d.WeightedRandomSampler(WEIGHTS, 6, False, generator=g),
        "batches": lambda d, g: d.BatchSampler(d.RandomSampler(range(10), generator=g), 3, False),
        "full": lambda d, g: d.BatchSampler(d.RandomSampler(range(10), generator=g), 3, True),
    }.items()
]


@parameterized.expand(RANDOM)
def test_random_samplers(name, own, make):
    mine, reference = both(make, own=own)
    assert mine == reference


@parameterized.expand(
    [(n, size, drop) for n in (0, 1, 6, 7) for size in (1, 3, 9) for drop in (False, True)]
)
def test_batches_in_order(n, size, drop):
    mine, reference = both(lambda d, g: d.BatchSampler(d.SequentialSampler(range(n)), size, drop))
    assert mine == reference


@parameterized.expand(
    [
        (n, count, shuffle, drop)
        for n in (1, 7, 8)
        for count in (1, 2, 3, 5)
        for shuffle in (False, True)
        for drop in (False, True)
    ]
)
def test_distributed(n, count, shuffle, drop):
    for rank in range(count):
        parts = []
        for data in (ours, theirs):
            sampler = data.DistributedSampler(
                range(n), count, rank, shuffle=shuffle, seed=3, drop_last=drop
            )
            sampler.set_epoch(2)
            parts.append((len(sampler), list(sampler)))
        assert parts[0] == parts[1]


def test_distributed_without_a_group():
    with pytest.raises(ValueError, match="init_process_group"):
        ours.DistributedSampler(range(4))


@parameterized.expand(
    [
        ("lengths", 10, [3, 7]),
        ("an empty part", 10, [10, 0]),
        ("fractions", 10, [0.3, 0.3, 0.4]),
        ("uneven fractions", 11, [0.25, 0.25, 0.5]),
        ("a hundredth", 1000, [0.99, 0.01]),
    ]
)
def test_random_split(name, n, lengths):
    for own in (None, 5):
        results = []
        for lib, data in LIBRARIES:
            lib.manual_seed(1)
            extra = {} if own is None else {"generator": lib.Generator().manual_seed(own)}
            parts = data.random_split(range(n), lengths, **extra)
            results.append(([list(p.indices) for p in parts], lib.rand(2).tolist()))
        assert results[0] == results[1]


def test_random_split_warns_of_an_empty_part():
    for data in (ours, theirs):
        with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
            data.random_split(range(1), [0.5, 0.5])


ERRORS = [
    ("replacement", lambda d: d.RandomSampler(range(3), replacement=1)),
    ("no samples", lambda d: d.RandomSampler(range(0))),
    ("negative samples", lambda d: d.RandomSampler(range(3), num_samples=-1)),
    ("fraction of a sample", lambda d: d.RandomSampler(range(3), num_samples=1.5)),
    ("no weighted samples", lambda d: d.WeightedRandomSampler([1.0], 0)),
    ("a bool of samples", lambda d: d.WeightedRandomSampler([1.0], True)),
    ("weights in 2-d", lambda d: d.WeightedRandomSampler([[1.0]], 1)),
    ("weighted replacement", lambda d: d.WeightedRandomSampler([1.0], 1, replacement="no")),
    ("batch of 0", lambda d: d.BatchSampler(range(3), 0, False)),
    ("batch of a bool", lambda d: d.BatchSampler(range(3), True, False)),
    ("batch of 1.5", lambda d: d.BatchSampler(range(3), 1.5, False)),
    ("drop_last", lambda d: d.BatchSampler(range(3), 1, 1)),
    ("rank", lambda d: d.DistributedSampler(range(3), 2, 2)),
    ("lengths", lambda d: d.random_split(range(5), [1, 2])),
    ("fractions", lambda d: d.random_split(range(5), [1.5, -0.5])),
    ("abstract sampler", lambda d: iter(d.Sampler())),
]


@parameterized.expand(ERRORS)
def test_errors(name, call):
    with pytest.raises(Exception) as reference:
        call(theirs)
    with pytest.raises(type(reference.value)) as mine:
        call(ours)
    # What was wrong is said in PyTorch's words; what was seen may follow.
    assert str(mine.value).startswith(str(reference.value).rstrip(".")[:60])


def test_samplers_take_any_sized_source():
    dataset = ours.TensorDataset(tlc.arange(5))
    assert list(ours.SequentialSampler(dataset)) == [0, 1, 2, 3, 4]
    assert sorted(ours.RandomSampler(np.zeros(4))) == [0, 1, 2, 3]
