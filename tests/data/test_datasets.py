"""Datasets give what PyTorch's give, and refuse what they refuse."""

from __future__ import annotations

import pytest
import torch
import torch.utils.data as theirs
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.data as ours
from tensorflow_lite_clone.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe

LIBRARIES = ((tlc, ours), (torch, theirs))


def plain(value):
    """Nested lists and numbers of a value's tensors, with their dtypes."""
    if isinstance(value, tlc.Tensor | torch.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [plain(item) for item in value]
    return value


def tensors(lib, data):
    return data.TensorDataset(lib.arange(6), lib.arange(12.0).reshape(6, 2))


def stream(data, n):
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

        def __len__(self):
            return n

    return Stream()


READS = [
    ("tensors", lambda t, d: [tensors(t, d)[i] for i in (0, 5, -1)]),
    ("tensors' slice", lambda t, d: tensors(t, d)[1:3]),
    ("tensors' length", lambda t, d: len(tensors(t, d))),
    ("concat", lambda t, d: list(d.ConcatDataset([range(3), range(5, 9)]))),
    ("concat from the end", lambda t, d: d.ConcatDataset([range(3), range(5, 9)])[-7]),
    ("concat's sizes", lambda t, d: d.ConcatDataset([range(3), [], range(4)]).cumulative_sizes),
    ("sum", lambda t, d: [(tensors(t, d) + tensors(t, d))[i] for i in (0, 7)]),
    ("stack", lambda t, d: d.StackDataset(tensors(t, d), range(6))[3]),
    ("stack of names", lambda t, d: d.StackDataset(a=tensors(t, d), b=range(6))[3]),
    ("stack's length", lambda t, d: len(d.StackDataset(range(6)))),
    ("stack's batch", lambda t, d: d.StackDataset(range(6), "abcdef").__getitems__([4, 2])),
    (
        "stack's batch of names",
        lambda t, d: d.StackDataset(a=range(6), b=d.Subset("xabcdef", range(1, 7))).__getitems__(
            [4, 2]
        ),
    ),
    ("subset", lambda t, d: [d.Subset("abcdef", [4, 2])[i] for i in (0, 1, -1)]),
    ("subset's batch", lambda t, d: d.Subset("abcdef", [4, 2, 0]).__getitems__([2, 0])),
    (
        "subset of a subset",
        lambda t, d: d.Subset(d.Subset("abcdef", [4, 2]), [1]).__getitems__([0]),
    ),
    ("chain", lambda t, d: list(d.ChainDataset([stream(d, 3), stream(d, 2)]))),
    ("chain's length", lambda t, d: len(d.ChainDataset([stream(d, 3), stream(d, 2)]))),
    ("sum of streams", lambda t, d: list(stream(d, 3) + stream(d, 2))),
]


@parameterized.expand(READS)
def test_reads(name, read):
    mine, reference = (plain(read(lib, data)) for lib, data in LIBRARIES)
    assert mine == reference


def test_an_older_spelling():
    for data in (ours, theirs):
        with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed"):
            assert data.ConcatDataset([range(2), range(3)]).cummulative_sizes == [2, 5]


def half_subset(data):
    class Half(data.Subset):
        def __getitem__(self, idx):
            return 0

    return Half(range(3), [0])


ERRORS = [
    ("sizes of tensors", lambda t, d: d.TensorDataset(t.zeros(2), t.zeros(3))),
    ("out of range", lambda t, d: tensors(t, d)[6]),
    ("abstract", lambda t, d: d.Dataset()[0]),
    ("abstract stream", lambda t, d: d.IterableDataset()),
    ("empty concat", lambda t, d: d.ConcatDataset([])),
    ("concat of streams", lambda t, d: d.ConcatDataset([stream(d, 3)])),
    ("concat's index", lambda t, d: d.ConcatDataset([range(3)])[-4]),
    ("chain of maps", lambda t, d: list(d.ChainDataset([tensors(t, d)]))),
    ("empty stack", lambda t, d: d.StackDataset()),
    ("both stacks", lambda t, d: d.StackDataset([1], a=[1])),
    ("sizes of stack", lambda t, d: d.StackDataset([1], [1, 2])),
    ("subset of half a class", lambda t, d: half_subset(d)),
]


@parameterized.expand(ERRORS)
def test_errors(name, call):
    with pytest.raises(Exception) as reference:
        call(torch, theirs)
    with pytest.raises(type(reference.value)):
        call(tlc, ours)


def test_datasets_are_generic():
    assert issubclass(ours.Dataset[int].__origin__, ours.Dataset)
    assert issubclass(ours.IterableDataset, ours.Dataset)


def test_a_pipeline_class_that_accelerate_asks_for():
    """Its loader of iterable datasets asks whether the dataset is one."""
    assert not isinstance(ours.TensorDataset(tlc.ones(1)), ShufflerIterDataPipe)
    with pytest.raises(NotImplementedError, match="pipelines of data are left out"):
        ShufflerIterDataPipe([1])
