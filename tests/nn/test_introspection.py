"""What programs ask of modules by Python's own means: attributes by name, type hints, arrays."""

from __future__ import annotations

import inspect
import operator
import re
import typing

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core.public import EXPORTS

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


#: What PyTorch has in Python and nobody intercepts, so that no list of these tells it apart.
IN_PYTHON_TOO = re.compile(
    "sym_|_check|_assert|set_|get_|is_|are_|use_|atleast_|broadcast_|cond|"
    "while_loop|from_dlpack|typename|block_diag|cartesian_prod|compiled_with|manual_seed|seed|"
    "initial_seed|eig|symeig|matrix_rank|chain_matmul|solve|lstsq"
)


@pytest.mark.parametrize("place", ["", "nn.functional", "linalg", "fft", "special"])
def test_functions_kept_in_a_class_are_methods_where_they_are_pytorchs(place):
    """``conv = torch.conv2d`` in the body of a module's class is no method: that is a builtin."""

    def bound(lib):
        namespace = operator.attrgetter(place)(lib) if place else lib
        functions = {
            name: getattr(namespace, name, None)
            for name in EXPORTS[place.removeprefix("nn.") or "torch"]
            if place or not IN_PYTHON_TOO.match(name)
        }
        kept = type("Kept", (lib.nn.Module,), functions)()
        return {
            name
            for name, function in functions.items()
            if inspect.isroutine(function) and getattr(kept, name) is not function
        }

    assert bound(tlc) == bound(torch)


@pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])
def test_functions_kept_in_a_class_are_called_without_the_module(lib):
    class Shared:
        pool = lib.max_pool2d

    class Base(Shared, lib.nn.Module):
        conv = lib.conv2d
        own = lambda self: self  # noqa: E731

    class Net(Base):
        conv = lib.nn.functional.conv1d

        def forward(self, x):
            return self.conv(x, weight=lib.ones(1, 1, 2))

    x = lib.arange(4.0).reshape(1, 1, 4)
    assert Net()(x).tolist() == [[[1.0, 3.0, 5.0]]]
    assert Base.conv is lib.conv2d and Base().conv is lib.conv2d
    assert Base().pool(x[None], (1, 2)).tolist() == [[[[1.0, 3.0]]]]
    assert (base := Base()).own() is base


@pytest.mark.parametrize("lib", [torch, tlc], ids=["torch", "here"])
def test_attributes_of_object(lib):
    """A program may go round what a module does with its attributes."""

    class Net(lib.nn.Module):
        def __setattr__(self, name, value):
            super(lib.nn.Module, self).__setattr__(name, value)

    net = Net()
    net.act = lib.nn.ReLU()
    assert not list(net.children()) and net.__dict__["act"] is net.act
    super(lib.nn.Module, net).__delattr__("act")
    assert "act" not in super(lib.nn.Module, net).__dir__()
