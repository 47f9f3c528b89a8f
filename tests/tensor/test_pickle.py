"""Pickles and copies."""

from __future__ import annotations

import copy
import io
import pickle

import ml_dtypes  # noqa: F401  (bfloat16 arrays)
import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn
from tests.autograd.against_torch import attempt, same
from tests.device import DEVICE
from tests.tensor.expressions import check, lines


@lines(
    """
    pickle.loads(pickle.dumps(f)), pickle.loads(pickle.dumps(x)), pickle.loads(pickle.dumps(bf))
    pickle.loads(pickle.dumps(torch.float16)), pickle.loads(pickle.dumps(torch.device('cuda', 1)))
    pickle.loads(pickle.dumps(torch.Size([1, 2])))
    pickle.loads(pickle.dumps(torch.float16)) is torch.half
    pickle.loads(pickle.dumps(f.t())).stride(), pickle.loads(pickle.dumps(f.t()))
    pickle.loads(pickle.dumps(s)), pickle.loads(pickle.dumps(torch.zeros(0, 3)))
    pickle.loads(pickle.dumps(b))
    pickle.loads(pickle.dumps(torch.preserve_format)) is torch.preserve_format
    pickle.loads(pickle.dumps(torch.strided)) is torch.strided
    (lambda p: (p[0] is p[1], p[0]))(pickle.loads(pickle.dumps([f, f])))
    pickle.loads(pickle.dumps(x * 2)).requires_grad
    pickle.loads(pickle.dumps(torch.nn.Parameter(torch.ones(2))))
    pickle.loads(pickle.dumps({'a': f, 'b': [i, None]}))
    copy.copy(f) is f, copy.copy(f).data_ptr() == f.data_ptr(), copy.copy(x)
    copy.deepcopy(f).data_ptr() == f.data_ptr(), copy.deepcopy(f.t()).stride()
    (lambda p: p[0] is p[1])(copy.deepcopy([f, f]))
    (lambda p: (p[0].zero_(), p[1]))(copy.deepcopy([f, f[0]]))
    (lambda p: (p[1].zero_(), p[0]))(copy.deepcopy([f[0], f[:, 1:].t()]))
    (lambda p: (p[0].zero_(), p[1]))(copy.deepcopy([f, f.detach()]))
    copy.deepcopy(x * 2)
    copy.deepcopy(torch.nn.Parameter(torch.ones(2), requires_grad=False))
    copy.copy(torch.nn.Parameter(torch.ones(2)))
    copy.deepcopy(torch.ones(1).expand(3)), copy.deepcopy(torch.zeros(0, 2)), copy.deepcopy(bf)
    copy.deepcopy(torch.float32) is torch.float32, copy.copy(torch.float32) is torch.float32
    """
)
def test_expressions(expression):
    check(expression)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_protocols(protocol):
    def script(lib):
        values = [lib.arange(3.0), lib.ones(2, dtype=lib.bfloat16), lib.tensor(True)]
        return pickle.loads(pickle.dumps(values, protocol))

    same(script)


def test_attributes_go_along():
    def script(lib):
        x = lib.ones(2)
        x.note = "mine"
        p = lib.nn.Parameter(lib.ones(2))
        p.note = [1, 2]
        return [
            attempt(getattr, other, "note")
            for original in (x, p)
            for other in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original))
        ]

    same(script)


def test_grad_stays_behind():
    def script(lib):
        x = lib.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        loaded = pickle.loads(pickle.dumps(x))
        copied = copy.deepcopy(x)
        return loaded.grad, loaded.requires_grad, copied.grad, copied.grad is x.grad

    same(script)


def test_subclasses():
    class Mine(tlc.Tensor):
        pass

    original = Mine([1.0, 2.0])
    for made in (copy.copy(original), copy.deepcopy(original)):
        assert type(made) is Mine
        assert made.tolist() == [1, 2]


def test_modules():
    def script(lib):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3))
        stream = io.BytesIO()
        pickle.dump(model, stream)
        stream.seek(0)
        loaded, copied = pickle.load(stream), copy.deepcopy(model)
        x = lib.rand(4, 2)
        expected = model(x).tolist()
        return [m(x).tolist() == expected for m in (loaded, copied)], [
            p.requires_grad for p in loaded.parameters()
        ]

    same(script)


def test_shared_parameters():
    def script(lib):
        a = lib.nn.Linear(2, 2)
        b = lib.nn.Linear(2, 2)
        b.weight = a.weight
        model = lib.nn.Sequential(a, b)
        results = []
        for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            results.append(made[0].weight is made[1].weight)
        return results

    same(script)


def test_generators():
    def script(lib):
        g = lib.Generator().manual_seed(5)
        lib.rand(3, generator=g)
        loaded = pickle.loads(pickle.dumps(g))
        return lib.rand(3, generator=g), lib.rand(3, generator=loaded)

    if DEVICE == "cpu":
        same(script)


def test_a_slice_of_a_large_tensor_is_small():
    x = tlc.zeros(1_000_000)
    assert len(pickle.dumps(x[:3])) < 2000


def test_arrays_of_every_dtype():
    for dtype in (np.bool_, np.uint8, np.int8, np.int16, np.int32, np.float16, np.float64):
        x = tlc.tensor(np.array([0, 1], dtype))
        y = pickle.loads(pickle.dumps(x))
        assert y.dtype is x.dtype
        assert y.tolist() == x.tolist()
