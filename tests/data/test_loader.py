"""DataLoader in one process: order, draws, collation and errors are PyTorch's."""

from __future__ import annotations

import collections
import pickle
import types

import numpy as np
import pytest
import torch
import torch.utils.data as theirs
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.data as ours
from tensorflow_lite_clone.utils.data._utils import collate as our_rules
from tensorflow_lite_clone.utils.data._utils.fetch import gather
from tensorflow_lite_clone.utils.data._utils.pin_memory import pin_memory, pinning_helps
from tests.data.test_datasets import plain, stream, tensors

LIBRARIES = ((tlc, ours), (torch, theirs))
Point = collections.namedtuple("Point", ["x", "y"])


class Samples:
    """Numbers, text and a draw from the global stream."""

    def __init__(self, lib, n):
        self.lib = lib
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return {"i": i, "draw": self.lib.rand(2), "text": str(i), "pair": (float(i), np.int8(i))}


def epochs(lib, data, own, options, count=2):
    """The batches of some passes, then what the streams give next."""
    lib.manual_seed(3)
    generator = None if own is None else lib.Generator().manual_seed(own)
    loader = data.DataLoader(Samples(lib, 10), generator=generator, **options)
    batches = [[plain(batch) for batch in loader] for _ in range(count)]
    # A pass that is not finished takes its draws as well.
    batches.append(plain(next(iter(loader))))
    streams = [lib.rand(2).tolist()]
    if generator is not None:
        streams.append(lib.rand(2, generator=generator).tolist())
    return len(loader), batches, streams


@parameterized.expand(
    [
        (own, options)
        for own in (None, 5)
        for options in (
            {},
            {"batch_size": 3},
            {"batch_size": 3, "shuffle": True},
            {"batch_size": 5, "shuffle": True},
            {"batch_size": 3, "shuffle": True, "drop_last": True},
            {"batch_size": None, "shuffle": True},
            {"batch_size": 4, "sampler": [3, 1, 4, 1, 5]},
            {"batch_sampler": [[3, 1], [4], [1, 5, 9]]},
        )
    ]
)
def test_order_and_draws(own, options):
    mine, reference = (epochs(lib, data, own, options) for lib, data in LIBRARIES)
    assert mine == reference


@parameterized.expand([(size, drop) for size in (1, 3, None) for drop in (False, True)])
def test_streams(size, drop):
    if size is None and drop:
        return
    results = []
    for _, data in LIBRARIES:
        loader = data.DataLoader(stream(data, 7), batch_size=size, drop_last=drop)
        results.append((len(loader), [plain(batch) for batch in loader]))
    assert results[0] == results[1]


def test_a_stream_longer_than_promised():
    for _, data in LIBRARIES:
        dataset = stream(data, 3)
        type(dataset).__len__ = lambda self: 2
        loader = data.DataLoader(dataset, batch_size=1)
        assert len(loader) == 2
        with pytest.warns(UserWarning, match="reported to be 2.*3 samples have been fetched"):
            list(loader)


COLLATE = [
    ("tensors", lambda t: [t.tensor([1.0, 2.0]), t.tensor([3.0, 4.0])]),
    ("scalars", lambda t: [t.tensor(1), t.tensor(2)]),
    ("ints", lambda t: [1, 2]),
    ("bools", lambda t: [True, False]),
    ("floats", lambda t: [1.5, 2.0]),
    ("text", lambda t: ["a", "b"]),
    ("bytes", lambda t: [b"a"]),
    ("arrays", lambda t: [np.ones(2, np.float32), np.zeros(2, np.float32)]),
    ("doubles", lambda t: [np.ones((2, 1)), np.zeros((2, 1))]),
    ("array scalars", lambda t: [np.float32(1), np.float32(2)]),
    ("double scalars", lambda t: [np.float64(1)]),
    ("byte scalars", lambda t: [np.uint8(1), np.uint8(255)]),
    ("bool scalars", lambda t: [np.bool_(True)]),
    ("tuples", lambda t: [(1, "a"), (2, "b")]),
    ("lists", lambda t: [[1, t.ones(2)], [2, t.zeros(2)]]),
    ("dicts", lambda t: [{"x": 1, "y": [1.0]}, {"x": 2, "y": [2.0]}]),
    ("proxies", lambda t: [types.MappingProxyType({"x": 1}), types.MappingProxyType({"x": 2})]),
    ("named tuples", lambda t: [Point(1, 2.0), Point(3, 4.0)]),
    ("ranges", lambda t: [range(3), range(3)]),
    ("defaults", lambda t: [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)]),
    ("ordered", lambda t: [collections.OrderedDict(b=1, a=2)]),
    ("nothing", lambda t: [[], []]),
]


def described(value):
    """`plain`, with the types of mappings."""
    if isinstance(value, collections.abc.Mapping):
        return type(value), {key: described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [described(item) for item in value]
    return plain(value)


@parameterized.expand(COLLATE)
def test_default_collate(name, make):
    mine, reference = (described(data.default_collate(make(lib))) for lib, data in LIBRARIES)
    assert mine == reference


@parameterized.expand(
    [
        *COLLATE,
        ("array of text", lambda t: np.array(["a"]).tolist()),
        ("number", lambda t: 3),
        ("array", lambda t: np.arange(3)),
        ("array scalar", lambda t: np.float32(2)),
        ("none", lambda t: None),
    ]
)
def test_default_convert(name, make):
    mine, reference = (described(data.default_convert(make(lib))) for lib, data in LIBRARIES)
    assert mine == reference


@parameterized.expand(
    [
        ("none", lambda t: [None]),
        ("objects", lambda t: [object()]),
        ("complex", lambda t: [1j]),
        ("text arrays", lambda t: [np.array(["a"])]),
        ("lengths", lambda t: [[1], [1, 2]]),
        ("no samples", lambda t: []),
        ("shapes", lambda t: [t.zeros(2), t.zeros(3)]),
        ("shapes of arrays", lambda t: [np.zeros(2), np.zeros(3)]),
        ("keys", lambda t: [{"a": 1}, {"b": 1}]),
        ("deep", lambda t: [{"a": [None]}]),
    ]
)
def test_collate_errors(name, make):
    with pytest.raises(Exception) as reference:
        theirs.default_collate(make(torch))
    with pytest.raises(type(reference.value)) as mine:
        ours.default_collate(make(tlc))
    assert str(mine.value) == str(reference.value)


def test_rules_of_ones_own():
    rules = {complex: lambda batch, *, collate_fn_map: sum(batch)}
    assert our_rules.collate([{"z": 1j}, {"z": 2j}], collate_fn_map=rules) == {"z": 3j}
    our_rules.default_collate_fn_map[complex] = rules[complex]
    try:
        assert ours.default_collate([(1j, 1), (2j, 1)])[0] == 3j
    finally:
        del our_rules.default_collate_fn_map[complex]


@parameterized.expand(
    [
        ("plain", lambda d: tensors(tlc, d)),
        ("subset", lambda d: d.Subset(tensors(tlc, d), [5, 1, 1, 0])),
        ("nested", lambda d: d.Subset(d.Subset(tensors(tlc, d), [5, 1, 1, 0]), [3, 0, 2, 1])),
        ("strided", lambda d: d.TensorDataset(tlc.arange(12.0).reshape(2, 6).t()[::1])),
    ]
)
def test_tensors_are_gathered_in_one_read(name, make):
    dataset = make(ours)
    indices = [3, 0, -1, 3]
    read = gather(dataset, indices)
    slow = ours.default_collate([dataset[i] for i in indices])
    assert plain(read) == plain(slow)
    assert all(fast.is_contiguous() for fast in read)
    # The batch is a copy: writing to it leaves the dataset alone.
    before = plain(dataset[3])
    read[0].zero_()
    assert plain(dataset[3]) == before


def test_gather_declines_subclasses_and_other_keys():
    class Doubled(ours.TensorDataset):
        def __getitem__(self, i):
            return tuple(2 * t for t in super().__getitem__(i))

    assert gather(Doubled(tlc.arange(3)), [1]) is None
    assert gather(tensors(tlc, ours), [True]) is None
    assert gather(tensors(tlc, ours), [slice(2)]) is None
    assert gather(tensors(tlc, ours), (1, 2)) is None
    assert gather(tensors(tlc, ours), []) is None
    assert gather(ours.TensorDataset(tlc.ones(3, requires_grad=True)), [1]) is None
    assert list(ours.DataLoader(Doubled(tlc.arange(3)), batch_size=3))[0][0].tolist() == [0, 2, 4]


def test_gradients_pass_through_a_batch():
    weights = tlc.ones(4, requires_grad=True)
    for (batch,) in ours.DataLoader(ours.TensorDataset(weights), batch_size=2):
        batch.sum().backward()
    assert weights.grad.tolist() == [1, 1, 1, 1]


def test_gathered_out_of_range():
    with pytest.raises(IndexError):
        list(ours.DataLoader(tensors(tlc, ours), batch_size=2, sampler=[0, 6]))


ERRORS = [
    ("workers", {"num_workers": -1}),
    ("timeout", {"timeout": -1}),
    ("prefetch without workers", {"prefetch_factor": 2}),
    ("negative prefetch", {"num_workers": 1, "prefetch_factor": -1}),
    ("persistent without workers", {"persistent_workers": True}),
    ("sampler and shuffle", {"sampler": [1], "shuffle": True}),
    ("batch sampler and size", {"batch_sampler": [[1]], "batch_size": 2}),
    ("batch sampler and shuffle", {"batch_sampler": [[1]], "shuffle": True}),
    ("batch sampler and sampler", {"batch_sampler": [[1]], "sampler": [1]}),
    ("batch sampler and drop_last", {"batch_sampler": [[1]], "drop_last": True}),
    ("drop_last without batches", {"batch_size": None, "drop_last": True}),
    ("batch of 0", {"batch_size": 0}),
    ("batch of text", {"batch_size": "2"}),
    ("context without workers", {"multiprocessing_context": "fork"}),
    ("unknown context", {"num_workers": 1, "multiprocessing_context": "teleport"}),
    ("no context", {"num_workers": 1, "multiprocessing_context": 3}),
    ("shuffled stream", {"shuffle": True, "stream": True}),
    ("sampled stream", {"sampler": [1], "stream": True}),
    ("batch-sampled stream", {"batch_sampler": [[1]], "stream": True}),
]


def build(data, stream=False, **options):
    return data.DataLoader(data.ChainDataset([]) if stream else range(3), **options)


@parameterized.expand(ERRORS)
def test_errors(name, options):
    with pytest.raises(Exception) as reference:
        build(theirs, **options)
    with pytest.raises(type(reference.value)) as mine:
        build(ours, **options)
    assert str(mine.value)[:25].lower() == str(reference.value)[:25].lower()


def test_loader_attributes_cannot_be_set_after_init():
    loader = ours.DataLoader(range(3))
    for name in ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set after"):
            setattr(loader, name, 1)
    loader.collate_fn = list
    assert list(loader) == [[0], [1], [2]]


def test_iterators():
    loader = ours.DataLoader(range(3), batch_size=2)
    iterator = iter(loader)
    assert len(iterator) == 2
    assert iter(iterator) is iterator
    assert [next(iterator).tolist(), next(iterator).tolist()] == [[0, 1], [2]]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)
    with pytest.raises(NotImplementedError):
        pickle.dumps(iterator)


class Pinned:
    """A batch of one's own that notes that it was pinned."""

    pinned = False

    def pin_memory(self):
        self.pinned = True
        return self


def test_pinning():
    own = Pinned()
    x = tlc.arange(3)
    data = pin_memory({"x": (x, "text"), "p": Point(x, own), "n": [None, 3]})
    assert own.pinned
    assert plain(data["x"]) == plain([x, "text"])
    assert plain(data["p"].x) == plain(x) and data["n"] == [None, 3]
    # Without another device in use nothing is to be pinned, and nothing is said.
    loader = ours.DataLoader([0], collate_fn=lambda batch: Pinned(), pin_memory=True)
    assert next(iter(loader)).pinned == pinning_helps()


def test_loader_names_are_in_pytorchs_modules():
    from tensorflow_lite_clone.utils.data import dataloader, dataset, distributed, sampler

    assert dataloader.default_collate is ours.default_collate is our_rules.default_collate
    assert dataset.Subset is ours.Subset
    assert sampler.Sampler is ours.Sampler
    assert distributed.DistributedSampler is ours.DistributedSampler
    assert issubclass(dataloader._MultiProcessingDataLoaderIter, dataloader._BaseDataLoaderIter)
    with pytest.raises(AttributeError):
        _ = dataloader.nothing
