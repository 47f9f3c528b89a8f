"""Optimizers, clipping and loss scaling on the device under test, against torch on the CPU."""

from __future__ import annotations

import math
import pickle
import unittest

import numpy as np
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core import dynamic_scalar
from tensorflow_lite_clone.core.dynamic_scalar import DynamicScalar
from tensorflow_lite_clone.ops.update import unscale, update_scale
from tests.device import DEVICE
from tests.optim.cases import CASES, SHAPES
from tests.optim.cases import values as gradients


def tensor(lib, value, **options):
    """A tensor on the device under test, or torch's on the CPU."""
    return lib.tensor(value, device=DEVICE if lib is tlc else "cpu", **options)


def optimizer_of(lib, name, options):
    """Parameters from a fixed seed, and an optimizer over them in two groups."""
    params = [lib.nn.Parameter(tensor(lib, value)) for value in gradients(99)]
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.05}]
    return params, getattr(lib.optim, name)(groups, **options)


def step(lib, params, optimizer, numbers):
    """Steps with given gradients; the first parameter is left out of the third one."""
    for number in numbers:
        for index, (param, g) in enumerate(zip(params, gradients(number), strict=True)):
            param.grad = None if number == 2 and index == 0 else tensor(lib, g)
        optimizer.step()


def host(value):
    """Tensors within nested data as float64 arrays."""
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu().numpy(), "f8")
    if isinstance(value, dict):
        return {key: host(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [host(entry) for entry in value]
    return value


def assert_close(ours, theirs, rtol=1e-5):
    """Equal structure, arrays equal to a few float32 roundings."""
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(ours, (list, tuple)):
        for a, b in zip(ours, theirs, strict=True):
            assert_close(a, b, rtol)
    elif isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-6)
    else:
        assert ours == theirs


class StepTest(unittest.TestCase):
    @parameterized.expand(CASES)
    def test_steps(self, name, options):
        results = []
        for lib in (tlc, torch):
            params, optimizer = optimizer_of(lib, name, options)
            step(lib, params, optimizer, range(5))
            results.append((host(params), host(optimizer.state_dict()["state"])))
        assert_close(*results)

    @parameterized.expand(CASES)
    def test_states_lie_beside_the_parameters(self, name, options):
        params, optimizer = optimizer_of(tlc, name, options)
        step(tlc, params, optimizer, range(1))
        for state in optimizer.state.values():
            for entry in state.values():
                assert entry.device == params[0].device

    @parameterized.expand([("SGD", {"momentum": 0.9}), ("Adam", {}), ("Adagrad", {})])
    def test_a_state_dict_of_the_cpu(self, name, options):
        made = [tlc.nn.Parameter(tlc.tensor(value)) for value in gradients(99)]
        source = getattr(tlc.optim, name)(made, **options)
        for param, g in zip(made, gradients(0), strict=True):
            param.grad = tlc.tensor(g)
        source.step()
        state = pickle.loads(pickle.dumps(source.state_dict()))
        params = [tlc.nn.Parameter(param.detach().to(DEVICE)) for param in made]
        resumed = getattr(tlc.optim, name)(params, **options)
        resumed.load_state_dict(state)
        for entries, optimizer in ((made, source), (params, resumed)):
            for param, g in zip(entries, gradients(1), strict=True):
                param.grad = tlc.tensor(g, device=param.device)
            optimizer.step()
        assert_close(host(params), host(made))
        assert_close(host(resumed.state_dict()["state"]), host(source.state_dict()["state"]))

    @parameterized.expand(CASES)
    def test_found_inf(self, name, options):
        params, optimizer = optimizer_of(tlc, name, options)
        step(tlc, params, optimizer, range(2))
        before = host(params), host(optimizer.state_dict()["state"])
        optimizer.found_inf = tensor(tlc, 1.0)
        step(tlc, params, optimizer, range(2, 4))
        assert_close((host(params), host(optimizer.state_dict()["state"])), before, 0)
        optimizer.found_inf = tensor(tlc, 0.0)
        step(tlc, params, optimizer, [4])
        assert host(optimizer.state_dict()["state"]).get(0, {}).get("step", 3) == 3
        twins, twin = optimizer_of(tlc, name, options)
        step(tlc, twins, twin, [0, 1, 4])
        assert_close(host(params), host(twins), 1e-6)

    @parameterized.expand(["SGD", "Adam", "RMSprop", "Adagrad"])
    def test_a_rate_that_is_a_tensor(self, name):
        results = []
        for rate in (tensor(tlc, 0.03), 0.03):
            params = [tlc.nn.Parameter(tensor(tlc, value)) for value in gradients(99)]
            optimizer = getattr(tlc.optim, name)(params, lr=rate)
            step(tlc, params, optimizer, range(2))
            results.append(host(params))
        assert_close(*results)

    @parameterized.expand([(tlc.float64, 1e-12), (tlc.float16, 0.02), (tlc.bfloat16, 0.1)])
    def test_other_dtypes(self, dtype, tolerance):
        for name, options in CASES:
            results = []
            for device, kind in ((DEVICE, dtype), ("cpu", tlc.float64)):
                values = [tlc.tensor(g).to(dtype).to(kind) for g in gradients(99)]
                params = [tlc.nn.Parameter(value.to(device)) for value in values]
                eps = {"ASGD": {}, "Rprop": {}, "SGD": {}, "Adafactor": {"eps": (1e-3, 1e-3)}}
                changed = {**options, **eps.get(name, {"eps": 1e-3})}
                optimizer = getattr(tlc.optim, name)(params, **changed)
                for number in range(2):
                    for param, g in zip(params, gradients(number), strict=True):
                        param.grad = tlc.tensor(g).to(dtype).to(kind).to(device)
                    optimizer.step()
                assert all(param.dtype == kind for param in params)
                results.append(host([param.detach().to(tlc.float64) for param in params]))
            for ours, theirs in zip(*results, strict=True):
                np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=name)

    def test_zero_grad(self):
        params, optimizer = optimizer_of(tlc, "SGD", {})
        step(tlc, params, optimizer, [0])
        kept = [param.grad for param in params]
        versions = [g._version for g in kept]
        optimizer.zero_grad(set_to_none=False)
        for g, version in zip(kept, versions, strict=True):
            assert not host(g).any()
            assert g._version == version + 1


class Recorder(dynamic_scalar.Recorder):
    """Keeps the numbers; their cells are of no use to generic formulas."""

    def __init__(self):
        self.numbers = []

    def number(self, read):
        self.numbers.append(DynamicScalar(read, None))
        return self.numbers[-1]


class LiveTest(unittest.TestCase):
    def setUp(self):
        self.recorder = dynamic_scalar.recorder = Recorder()

    def tearDown(self):
        dynamic_scalar.recorder = None

    def test_outside_of_a_capture(self):
        dynamic_scalar.recorder = None
        assert type(dynamic_scalar.dynamic_scalar(lambda: 2.0)) is float

    def test_numbers(self):
        rate = [0.5]
        number = dynamic_scalar.dynamic_scalar(lambda: rate[0])
        assert number == 0.5
        assert not number.consumed
        twice = number.map(lambda x: 2 * x)
        assert twice == 1.0
        assert number.consumed
        assert not twice.consumed
        rate[0] = 0.25
        assert [n.read() for n in self.recorder.numbers] == [0.25, 0.5]
        assert twice.device_value is None
        assert twice.consumed
        assert type(pickle.loads(pickle.dumps(twice))) is float

    @unittest.skipIf(DEVICE == "cuda", "kernels need cells")
    def test_a_generic_step_freezes_them(self):
        results = []
        for recorder in (None, self.recorder):
            dynamic_scalar.recorder = recorder
            params, optimizer = optimizer_of(tlc, "Adam", {"lr": 0.1})
            step(tlc, params, optimizer, [0])
            results.append(host(params))
        assert_close(*results, 0)
        found = self.recorder.numbers
        assert [float(n) for n in found] == [0.1, 0.9, 0.999, 0, 0.05, 0.9, 0.999, 0]
        assert not any(n.consumed for n in found)
        optimizer.param_groups[0]["lr"] = 0.2
        optimizer.param_groups[1]["betas"] = (0.5, 0.999)
        assert [n.read() for n in found] == [0.2, 0.9, 0.999, 0, 0.05, 0.5, 0.999, 0]


class ScalingTest(unittest.TestCase):
    @parameterized.expand([(None, 0.25), (math.inf, 0.25), (math.nan, 1.0)])
    def test_unscale(self, value, factor):
        results = []
        for lib in (tlc, torch):
            grads = [tensor(lib, g) for g in gradients(0)]
            if value is not None:
                grads[1][2] = value
            found, inverse = tensor(lib, 0.0), tensor(lib, factor)
            if lib is tlc:
                unscale(grads, found, inverse)
            else:
                torch._amp_foreach_non_finite_check_and_unscale_(grads, found, inverse)
            results.append(host([found, *grads]))
        assert_close(*results, 1e-7)

    @parameterized.expand([(8.0, 1, 0.0), (8.0, 2, 0.0), (8.0, 2, 1.0), (3e38, 2, 0.0)])
    def test_update_scale(self, scale, good, found):
        results = []
        for lib, function in ((tlc, update_scale), (torch, torch._amp_update_scale_)):
            s, n = tensor(lib, scale), tensor(lib, good, dtype=lib.int32)
            function(s, n, tensor(lib, found), 2.0, 0.5, 3)
            results.append((host(s), host(n)))
        assert results[0] == results[1]


class ClipTest(unittest.TestCase):
    @parameterized.expand(
        [(most, order, dtype)
         for most in (0.7, 50.0)
         for order in (2.0, 1.0, math.inf, 3.0, 0.0)
         for dtype in ("float32", "float64", "bfloat16")]
    )  # fmt: skip
    def test_norm(self, most, order, dtype):
        results = []
        for lib in (tlc, torch):
            params = [lib.nn.Parameter(tensor(lib, np.zeros(shape, "f4"))) for shape in SHAPES]
            kind = getattr(lib, dtype)
            params = [lib.nn.Parameter(param.detach().to(kind)) for param in params]
            for param, g in zip(params, gradients(0), strict=True):
                param.grad = tensor(lib, g).to(kind)
            total = lib.nn.utils.clip_grad_norm_(params, most, order)
            assert total.dtype == kind
            results.append(host([t.to(lib.float64) for t in (total, *[p.grad for p in params])]))
        tolerance = {"float32": 2e-6, "float64": 1e-12, "bfloat16": 0.03}[dtype]
        assert_close(*results, tolerance)

    def test_mixed_dtypes(self):
        results = []
        for lib in (tlc, torch):
            params = [lib.nn.Parameter(tensor(lib, g)) for g in gradients(0)]
            params[1] = lib.nn.Parameter(params[1].detach().to(lib.float64))
            for param in params:
                param.grad = param.detach() * 2
            total = lib.nn.utils.clip_grad_norm_(params, 0.5)
            results.append(host([total, *[param.grad for param in params]]))
        assert_close(*results)

    def test_no_gradients(self):
        param = tlc.nn.Parameter(tensor(tlc, [1.0]))
        assert tlc.nn.utils.clip_grad_norm_([param], 1.0).item() == 0
        tlc.nn.utils.clip_grad_value_([param], 1.0)
        tlc.optim.SGD([param]).zero_grad(set_to_none=False)
