"""Batches are cut, and results joined, as PyTorch does."""

from __future__ import annotations

import importlib

import pytest
import torch

import tensorflow_lite_clone as tlc

LIBRARIES = (tlc, torch)


def module(lib):
    return importlib.import_module(f"{lib.__name__}.distributed.pipelining.microbatch")


def plain(value):
    """A result without tensors and specifications of either library."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return value


def both(script):
    """What a script gives under both, or which error it raises."""
    found = []
    for lib in LIBRARIES:
        try:
            found.append(plain(script(lib, module(lib))))
        except Exception as error:
            found.append(type(error))
    assert found[0] == found[1]
    return found[0]


SPLITS = {
    "tensors": lambda t, m: ((t.arange(10), t.ones(10, 2)), {}, 4),
    "nested": lambda t, m: (([t.arange(4), {"a": (t.arange(8), None)}], "b", 3), {}, 2),
    "keywords": lambda t, m: ((), {"mask": t.arange(6), "scale": 0.5}, 3),
    "nothing": lambda t, m: ((), None, 3),
    "no tensors": lambda t, m: ((1, "a"), {"b": None}, 2),
    "too few rows": lambda t, m: ((t.arange(10), t.arange(3)), {}, 4),
    "too few rows first": lambda t, m: ((t.arange(3),), {"x": t.arange(10)}, 4),
    "no rows": lambda t, m: ((t.tensor(1.0),), {}, 2),
    "along a dimension": lambda t, m: ((t.ones(2, 6),), {}, 3, (m.TensorChunkSpec(1),)),
    "from the end": lambda t, m: ((t.ones(2, 6),), {}, 3, m.TensorChunkSpec.from_tuple((-1,))),
    "to all": lambda t, m: (
        (t.arange(4), t.arange(3)), {}, 2, (m.TensorChunkSpec(0), m._Replicate()),
    ),
    "nested specs": lambda t, m: (
        ([t.arange(4), t.ones(1, 4)],), {}, 2, ([m.TensorChunkSpec(0), m.TensorChunkSpec(1)],),
    ),
    "keyword specs": lambda t, m: (
        (), {"a": t.ones(1, 4)}, 2, None, m.TensorChunkSpec.from_dict({"a": 1}),
    ),
    "a spec too few": lambda t, m: ((t.arange(4), 1), {}, 2, (m.TensorChunkSpec(0),)),
    "a spec for a number": lambda t, m: ((3,), {}, 2, (m.TensorChunkSpec(0),)),
    "no spec for a number": lambda t, m: ((t.arange(4), 1), {}, 2, (m.TensorChunkSpec(0), None)),
    "a spec for a list": lambda t, m: (([t.arange(4), t.arange(4)],), {}, 2,
                                       (m.TensorChunkSpec(0),)),
    "no such dimension": lambda t, m: ((t.ones(2, 6),), {}, 3, (m.TensorChunkSpec(3),)),
}  # fmt: skip


@pytest.mark.parametrize("case", SPLITS)
def test_splits(case):
    both(lambda lib, m: m.split_args_kwargs_into_chunks(*SPLITS[case](lib, m)))


MERGES = {
    "tensors": lambda t, m: ([t.arange(3), t.arange(2)], None),
    "along a dimension": lambda t, m: ([t.ones(2, 3), t.ones(2, 2)], m.TensorChunkSpec(1)),
    "nested": lambda t, m: ([{"a": [t.arange(3)], "b": (t.ones(2),)}] * 2, None),
    "replicated": lambda t, m: ([(t.arange(2), 3)] * 2, (m.TensorChunkSpec(0), m._Replicate())),
    "the first": lambda t, m: ([(t.arange(2), 3)] * 2, (m.TensorChunkSpec(0), None)),
    "different": lambda t, m: ([(t.arange(2), 3), (t.arange(2), 4)],
                               (m.TensorChunkSpec(0), m._Replicate())),
    "without rows": lambda t, m: ([t.tensor(1.0)] * 2, None),
    "another structure": lambda t, m: ([(t.arange(2), t.arange(2)), (t.arange(2),)], None),
    "another specification": lambda t, m: ([(t.arange(2), 1)] * 2, m.TensorChunkSpec(0)),
}  # fmt: skip


@pytest.mark.parametrize("case", MERGES)
def test_merges(case):
    both(lambda lib, m: m.merge_chunks(*MERGES[case](lib, m)))


def test_results_that_are_no_tensors():
    """PyTorch joins tensors only; here what is the same for all goes through."""
    merge = module(tlc).merge_chunks
    assert plain(merge([(tlc.arange(2), None, 3)] * 2, None)) == ([0, 1, 0, 1], None, 3)
    with pytest.raises(AssertionError, match="expected the same value"):
        merge([3, 4], None)


def test_specifications_print_alike():
    assert both(lambda lib, m: str(m.TensorChunkSpec(1))) == "TensorChunkSpec(1)"
    assert repr(module(tlc).TensorChunkSpec(1)).endswith("pipelining.microbatch.TensorChunkSpec(1)")
