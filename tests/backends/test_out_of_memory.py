"""Where there is no room for an array, PyTorch's exception is raised, whatever asked for it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc

MANY = 1 << 42  # elements: more than any address space of 47 bits has room for
SIDE = 1 << 21  # as a square

CALLS = {
    "empty": lambda L: L.empty(MANY),
    "zeros": lambda L: L.zeros(MANY),
    "ones": lambda L: L.ones(MANY),
    "full": lambda L: L.full((MANY,), 2.0),
    "arange": lambda L: L.arange(MANY),
    "linspace": lambda L: L.linspace(0, 1, MANY),
    "eye": lambda L: L.eye(SIDE),
    "rand": lambda L: L.rand(MANY),
    "randn": lambda L: L.randn(MANY),
    "randint": lambda L: L.randint(3, (MANY,)),
    "randperm": lambda L: L.randperm(MANY),
    "ones_like": lambda L: L.ones_like(L.zeros(1).expand(MANY), memory_format=L.contiguous_format),
    "repeat": lambda L: L.zeros(1).repeat(MANY),
    "contiguous": lambda L: L.zeros(1).expand(MANY).contiguous(),
    "clone": lambda L: L.zeros(1).expand(MANY).clone(memory_format=L.contiguous_format),
    "double": lambda L: L.zeros(SIDE, 1).expand(SIDE, SIDE).double() + L.zeros(SIDE, SIDE),
    "add": lambda L: L.zeros(SIDE, 1) + L.zeros(1, SIDE),
    "recorded": lambda L: L.zeros(SIDE, 1, requires_grad=True) * L.zeros(1, SIDE),
    "matmul": lambda L: L.zeros(SIDE, 1) @ L.zeros(1, SIDE),
    "outer": lambda L: L.outer(L.zeros(SIDE), L.zeros(SIDE)),
    "cat": lambda L: L.cat([L.zeros(1).expand(MANY)] * 2),
    "stack": lambda L: L.stack([L.zeros(1).expand(MANY)] * 2),
    "pad": lambda L: L.nn.functional.pad(L.zeros(1), (0, MANY)),
    "one_hot": lambda L: L.nn.functional.one_hot(L.tensor([0]), MANY),
    "cdist": lambda L: L.cdist(L.zeros(SIDE, 2), L.zeros(SIDE, 2)),
    "resize": lambda L: L.zeros(1).resize_(MANY),
    "layer": lambda L: L.nn.Linear(SIDE, SIDE),
    "bincount": lambda L: L.bincount(L.tensor([MANY])),
    "gradient": lambda L: _gradient(L),
}


def _gradient(L):
    """A backward pass whose gradient, and nothing before it, is too large."""

    class Large(L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.expand(MANY).contiguous()

    Large.apply(L.ones(3, requires_grad=True)).backward()


@pytest.mark.parametrize("name", CALLS)
def test_a_runtime_error_as_in_pytorch(name):
    for lib in (torch, tlc):
        with pytest.raises(RuntimeError, match="DefaultCPUAllocator: can't allocate memory"):
            CALLS[name](lib)


def test_a_search_for_a_size_that_fits():
    """What programs do: halve until a step does not raise RuntimeError."""
    size = 1 << 24
    while size > 1 << 10:
        try:
            tlc.zeros(size, 1) + tlc.zeros(1, size)
            break
        except RuntimeError as error:
            assert isinstance(error, tlc.OutOfMemoryError | tlc.cuda.OutOfMemoryError)
            size >>= 7
    assert size == 1 << 10


def test_it_is_numpys_error_too():
    with pytest.raises(MemoryError, match="you tried to allocate 17592186044416 bytes") as caught:
        np.zeros(MANY, np.float32)
    assert caught.value.shape == (MANY,) and copy.copy(caught.value).shape == (MANY,)
