"""``torch.cuda.FloatTensor`` and its kin; those of the CPU are in `test_convert`."""

from __future__ import annotations

import pytest
import torch

import tensorflow_lite_clone as tlc

NAMES = [name for name in dir(torch.cuda) if name.endswith("Tensor")]


@pytest.mark.parametrize("name", NAMES)
def test_types(name):
    ours, theirs = getattr(tlc.cuda, name), getattr(torch.cuda, name)
    assert repr(ours) == repr(theirs)
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.is_cuda is theirs.is_cuda is True
    assert getattr(tlc, name).is_cuda is getattr(torch, name).is_cuda is False
    assert not isinstance(tlc.zeros(1, dtype=ours.dtype), ours)


@pytest.mark.skipif(tlc.cuda.is_available(), reason="what is said without a GPU")
def test_without_a_device():
    for lib in (tlc, torch):
        with pytest.raises(TypeError, match=r"type torch.cuda.FloatTensor not available"):
            lib.cuda.FloatTensor(2)
        with pytest.raises(RuntimeError):
            lib.ones(1).type(lib.cuda.FloatTensor)


@pytest.mark.cuda
def test_constructors():
    x = tlc.cuda.FloatTensor([1, 2])
    assert isinstance(x, tlc.cuda.FloatTensor) and not isinstance(x, tlc.FloatTensor)
    assert tlc.cuda.LongTensor(2, 3).shape == (2, 3)
    assert tlc.ones(1).type(tlc.cuda.DoubleTensor).device.type == "cuda"
    with pytest.raises(TypeError, match="expected torch.cuda.FloatTensor"):
        tlc.cuda.FloatTensor(tlc.ones(1))


def test_default_types():
    try:
        tlc.set_default_tensor_type("torch.cuda.DoubleTensor")
        assert tlc.get_default_dtype() is tlc.float64
        assert tlc.get_default_device().type == "cuda"
        tlc.set_default_tensor_type(tlc.FloatTensor)
        assert tlc.get_default_dtype() is tlc.float32
        assert tlc.get_default_device().type == "cpu"
    finally:
        tlc.set_default_dtype(tlc.float32)
        tlc.set_default_device("cpu")
    with pytest.raises(TypeError, match="invalid type object"):
        tlc.set_default_tensor_type("FloatTensor")


def test_constructors_leave_the_default_device_alone():
    def devices(module):
        module.set_default_device("meta")
        try:
            made = module.Tensor([1.0]), module.Tensor(2), module.FloatTensor(2), module.ones(2)
            return [tensor.device.type for tensor in made]
        finally:
            module.set_default_device(None)

    assert devices(tlc) == devices(torch) == ["cpu", "cpu", "cpu", "meta"]
