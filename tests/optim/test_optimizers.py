"""Optimizers against torch: parameters and states over several steps, dictionaries, errors."""

from __future__ import annotations

import copy
import pickle
import unittest

import numpy as np
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"alpha": 0.9, "eps": 1e-4, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"initial_accumulator_value": 0.5, "eps": 1e-6, "maximize": True}),
]
SHAPES = [(3, 4), (5,), ()]
STEPS = 5


def gradients(seed: int) -> list[np.ndarray]:
    """One gradient per parameter."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype("f4") for shape in SHAPES]


def optimizer_of(lib, name, options):
    """Parameters from a fixed seed, and an optimizer over them in two groups."""
    values = [np.array(value) for value in gradients(99)]
    params = [lib.nn.Parameter(lib.tensor(value)) for value in values]
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.05}]
    return params, getattr(lib.optim, name)(groups, **options)


def run(lib, params, optimizer, steps):
    """Steps with given gradients; the first parameter is left out of the third one."""
    for step in steps:
        for index, (param, g) in enumerate(zip(params, gradients(step), strict=True)):
            param.grad = None if step == 2 and index == 0 else lib.tensor(g)
        optimizer.step()


def plain(value):
    """States as nested Python data, so that both libraries' compare."""
    if hasattr(value, "detach"):
        return np.asarray(value.detach().numpy(), "f8")
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def assert_same(ours, theirs):
    """Equal structure; arrays equal to float32 rounding of a few operations."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key])
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)
    else:
        assert ours == theirs


class OptimizerTest(unittest.TestCase):
    @parameterized.expand(CASES)
    def test_steps(self, name, options):
        results = []
        for lib in (tlc, torch):
            params, optimizer = optimizer_of(lib, name, options)
            run(lib, params, optimizer, range(STEPS))
            results.append((plain(params), plain(optimizer.state_dict()), repr(optimizer)))
        assert_same(results[0][0], results[1][0])
        assert_same(results[0][1], results[1][1])
        assert results[0][2] == results[1][2]

    @parameterized.expand(CASES)
    def test_state_dict_resumes(self, name, options):
        params, optimizer = optimizer_of(tlc, name, options)
        run(tlc, params, optimizer, range(3))
        state = pickle.loads(pickle.dumps(optimizer.state_dict()))
        twins = [tlc.nn.Parameter(param.detach().clone()) for param in params]
        groups = [{"params": twins[:2]}, {"params": twins[2:], "lr": 0.3}]
        resumed = getattr(tlc.optim, name)(groups, **options)
        resumed.load_state_dict(state)
        run(tlc, params, optimizer, range(3, 5))
        run(tlc, twins, resumed, range(3, 5))
        for param, twin in zip(params, twins, strict=True):
            np.testing.assert_array_equal(param.detach().numpy(), twin.detach().numpy())

    def test_version_counter_sees_the_step(self):
        w = tlc.nn.Parameter(tlc.ones(3))
        y = (w * w).sum()
        w.grad = tlc.ones(3)
        tlc.optim.SGD([w], lr=0.1).step()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.backward()

    def test_closure_and_hooks(self):
        w = tlc.nn.Parameter(tlc.ones(2))
        optimizer = tlc.optim.SGD([w], lr=0.5)
        seen = []
        optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append("pre"))
        handle = optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append("post"))

        def closure():
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        assert optimizer.step(closure).item() == 2.0
        np.testing.assert_array_equal(w.detach().numpy(), [0.0, 0.0])
        handle.remove()
        optimizer.step()
        assert seen == ["pre", "post", "pre"]

    def test_zero_grad(self):
        w = tlc.nn.Parameter(tlc.ones(2))
        optimizer = tlc.optim.SGD([w])
        w.grad = tlc.ones(2)
        kept = w.grad
        optimizer.zero_grad(set_to_none=False)
        np.testing.assert_array_equal(kept.numpy(), [0.0, 0.0])
        optimizer.zero_grad()
        assert w.grad is None

    @parameterized.expand(
        [
            ("SGD", {"lr": -1}),
            ("SGD", {"momentum": -1}),
            ("SGD", {"nesterov": True}),
            ("SGD", {"weight_decay": -1}),
            ("Adam", {"eps": -1}),
            ("Adam", {"betas": (1.0, 0.9)}),
            ("RMSprop", {"alpha": -1}),
            ("Adagrad", {"lr_decay": -1}),
        ]
    )
    def test_bad_hyperparameters(self, name, options):
        messages = []
        for lib in (tlc, torch):
            with self.assertRaises(ValueError) as caught:
                getattr(lib.optim, name)([lib.ones(1)], **options)
            messages.append(str(caught.exception))
        assert messages[0] == messages[1]

    @parameterized.expand(
        [
            ("tensor", lambda lib: lib.optim.SGD(lib.ones(1))),
            ("empty", lambda lib: lib.optim.SGD([])),
            ("number", lambda lib: lib.optim.SGD([1.0])),
            ("non_leaf", lambda lib: lib.optim.SGD([lib.ones(1, requires_grad=True) * 2])),
            ("set", lambda lib: lib.optim.SGD([{"params": {lib.ones(1)}}])),
            ("twice", lambda lib: _same_parameter_in_two_groups(lib)),
        ]
    )
    def test_bad_parameters(self, _, make):
        with self.assertRaises(Exception) as theirs:
            make(torch)
        with self.assertRaises(type(theirs.exception)):
            make(tlc)

    def test_load_state_dict_of_other_groups(self):
        w = tlc.nn.Parameter(tlc.ones(2))
        state = copy.deepcopy(tlc.optim.SGD([w]).state_dict())
        state["param_groups"].append(state["param_groups"][0])
        optimizer = tlc.optim.SGD([w])
        with self.assertRaisesRegex(ValueError, "different number of parameter groups"):
            optimizer.load_state_dict(state)
        assert len(optimizer.param_groups) == 1


def _same_parameter_in_two_groups(lib):
    w = lib.ones(1)
    return lib.optim.SGD([{"params": [w]}, {"params": [w]}])
