"""What programs ask of modules by Python's own means: attributes by name, type hints, arrays."""

from __future__ import annotations

import typing

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc

MODULES = {
    name: kind
    for name, kind in vars(tlc.nn).items()
    if isinstance(kind, type) and issubclass(kind, tlc.nn.Module)
}


@pytest.mark.parametrize("name", MODULES)
def test_type_hints_in_other_namespaces(name):
    instance = MODULES[name].__new__(MODULES[name])
    hints = typing.get_type_hints(instance, globalns={}, localns={})
    assert not [text for text in hints.values() if isinstance(text, str)]


def test_hints_are_pytorchs_where_both_have_them():
    for name in ("MSELoss", "CrossEntropyLoss", "Linear", "Conv2d"):
        here, there = (
            typing.get_type_hints(object.__new__(getattr(lib.nn, name)), globalns={}, localns={})
            for lib in (tlc, torch)
        )
        both = here.keys() & there.keys()
        assert all(repr(here[key])[-5:] == repr(there[key])[-5:] for key in both)


@pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])
def test_members_by_name(lib):
    nn = lib.nn
    layer = nn.Linear(2, 2)
    assert layer.__getattr__("weight") is layer.weight
    assert nn.Sequential(layer).__getattr__("0") is layer
    norm = nn.BatchNorm1d(2)
    assert norm.__getattr__("running_mean") is norm.running_mean
    assert nn.Linear(2, 2, bias=False).__getattr__("bias") is None
    for name in ("in_features", "training", "other"):
        with pytest.raises(AttributeError, match=f"'Linear' object has no attribute '{name}'"):
            layer.__getattr__(name)


@pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])
def test_arrays_of_what_requires_gradients(lib):
    leaf = lib.ones(2, requires_grad=True, device="cpu")
    for tensor in (leaf, leaf * 2):
        with pytest.raises(RuntimeError, match="requires grad"):
            tensor.numpy()
        with pytest.raises(RuntimeError, match="requires grad"):
            np.asarray(tensor)
        with lib.no_grad():
            assert tensor.numpy().tolist() == np.asarray(tensor).tolist() == tensor.tolist()
    with lib.inference_mode():
        assert leaf.numpy().tolist() == [1, 1]


@pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])
def test_flattened_tensors(lib):
    utils = lib._utils
    tensors = [lib.arange(6.0).reshape(2, 3), lib.tensor(7.0), lib.zeros(0, 2)]
    flat = utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 1, 2, 3, 4, 5, 7]
    parts = utils._unflatten_dense_tensors(flat, tensors)
    assert [part.tolist() for part in parts] == [tensor.tolist() for tensor in tensors]
    flat.zero_()
    assert parts[0].sum() == 0  # they share memory


def test_products_by_numpys_name_of_the_axes():
    """As opt_einsum calls the tensordot of whatever package an array is of."""
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    product = tlc.tensordot(tlc.from_numpy(a), tlc.from_numpy(b), axes=([1], [0]))
    assert (product.numpy() == np.tensordot(a, b, axes=([1], [0]))).all()
