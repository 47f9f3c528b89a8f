"""What all optimizers share, against torch: arguments, groups, names, hooks, module paths."""

from __future__ import annotations

import copy
import importlib
import inspect
import itertools
import unittest
import warnings
from functools import partial

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.optim.cases import NAMES

BOTH = (tlc, torch)


def library_of(lib):
    """The module that `Optimizer` is in, which torch.optim has no name for."""
    return importlib.import_module(f"{lib.__name__}.optim.optimizer")


def parameter(lib, *shape, dtype="float32"):
    return lib.nn.Parameter(lib.ones(*shape or (2, 2), dtype=getattr(lib, dtype)))


def outcome(make):
    """Type and message of the error, or None."""
    try:
        make()
    except Exception as error:  # (compared with torch's)
        message = str(error).partition(" at 0x")[0]
        return type(error), message.replace(", 'xla'", "")  # torch's Adadelta alone is not for XLA
    return None


def agree(make):
    """That both libraries refuse `make(lib)` alike, or that both take it."""
    ours, theirs = [outcome(lambda lib=lib: make(lib)) for lib in BOTH]
    assert ours == theirs
    return ours is not None


def text(value):
    return repr(value).replace("tensorflow_lite_clone.", "torch.")


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    ours, theirs = [getattr(lib.optim, name) for lib in BOTH]
    mine, yours = [inspect.signature(kind.__init__).parameters for kind in (ours, theirs)]
    assert list(mine) == list(yours)
    for key, parameter_ in yours.items():
        assert mine[key].kind == parameter_.kind
        assert mine[key].default == parameter_.default
    made = [kind([parameter(lib)]) for lib, kind in zip(BOTH, (ours, theirs), strict=True)]
    assert list(made[0].defaults.items()) == list(made[1].defaults.items())
    assert repr(made[0]) == repr(made[1])
    assert made[0]._zero_grad_profile_name == made[1]._zero_grad_profile_name
    assert ours.__mro__[1].__name__ == theirs.__mro__[1].__name__


VALUES = [-1, 0, "x", (-1, 0.5), (0.5, 1.5), (1.5, 0.5), (0.5, -1), (1, 2), (0.2, 0.1)]


@pytest.mark.parametrize("name", NAMES)
def test_bad_hyperparameters(name):
    refused = 0
    arguments = list(inspect.signature(getattr(torch.optim, name)).parameters)[1:]
    for argument, value in itertools.product(arguments, VALUES):
        ours, theirs = [
            outcome(partial(getattr(lib.optim, name), [parameter(lib)], **{argument: value}))
            for lib in BOTH
        ]
        if theirs is not None and theirs[0] is not TypeError:
            assert ours == theirs, (argument, value)
            refused += 1
    assert refused >= 1


@pytest.mark.parametrize("name", NAMES)
def test_tensors_as_hyperparameters(name):
    arguments = inspect.signature(getattr(torch.optim, name)).parameters
    for options in (
        lambda lib: {"lr": lib.tensor([0.1, 0.2])},
        lambda lib: {"lr": lib.tensor([0.1])},
        lambda lib: {"lr": lib.tensor(0.1), "foreach": True},
        lambda lib: {"lr": lib.tensor(-0.1)},
        lambda lib: {"betas": (lib.tensor(0.9), 0.99)},
        lambda lib: {"betas": (lib.tensor([0.9]), lib.tensor([0.99]))},
    ):
        if options(tlc).keys() <= arguments.keys():
            agree(lambda lib, o=options: getattr(lib.optim, name)([parameter(lib)], **o(lib)))
    if name in ("Adam", "AdamW"):
        betas = lambda lib: (lib.tensor(0.9), lib.tensor(0.99))  # noqa: E731
        assert agree(
            lambda lib: getattr(lib.optim, name)([parameter(lib)], betas=betas(lib), foreach=True)
        )


CHOICES = [
    {"fused": True},
    {"fused": True, "foreach": True},
    {"fused": True, "differentiable": True},
    {"foreach": True},
    {"foreach": True, "differentiable": True},
    {"capturable": True},
    {"capturable": True, "foreach": False},
]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("LBFGS", "SparseAdam")])
def test_choices_of_an_implementation(name):
    """Refused at once, or at the first step, or taken."""
    arguments = inspect.signature(getattr(torch.optim, name)).parameters

    def attempt(lib, options, dtype):
        param = parameter(lib, dtype=dtype)
        optimizer = getattr(lib.optim, name)([param], **options)
        param.grad = lib.ones_like(param)
        optimizer.step()

    for options in CHOICES:
        if not options.keys() <= arguments.keys():
            continue
        if name == "SGD" and options == {"foreach": True, "differentiable": True}:
            continue  # torch notices something else first
        agree(lambda lib, o=options: attempt(lib, o, "float32"))
    if "fused" in arguments and name != "Adagrad":
        for dtype in ("complex64",):
            assert agree(lambda lib, d=dtype: attempt(lib, {"fused": True}, d))


@pytest.mark.parametrize("dtype", ["float64", "float16"])
@pytest.mark.parametrize("name", ["ASGD", "Adafactor", "Adagrad", "Adam", "NAdam"])
def test_dtypes_of_counts(name, dtype):
    """Counts are float64 where that is the default dtype, unless fused."""
    found = []
    for lib in BOTH:
        lib.set_default_dtype(getattr(lib, dtype))
        try:
            for options in ({}, {"fused": True}) if name in ("Adam", "Adagrad") else ({},):
                param = parameter(lib)
                optimizer = getattr(lib.optim, name)([param], **options)
                param.grad = lib.ones_like(param)
                optimizer.step()
                found.append({k: text(v.dtype) for k, v in optimizer.state[param].items()})
        finally:
            lib.set_default_dtype(lib.float32)
    assert found[: len(found) // 2] == found[len(found) // 2 :]


REFUSED = {
    "a tensor": lambda lib: lib.optim.SGD(lib.ones(1)),
    "none": lambda lib: lib.optim.SGD([]),
    "a number": lambda lib: lib.optim.SGD(5),
    "numbers": lambda lib: lib.optim.SGD([1.0]),
    "a dict": lambda lib: lib.optim.SGD({"a": parameter(lib)}),
    "no leaf": lambda lib: lib.optim.SGD([parameter(lib) * 2]),
    "a set": lambda lib: lib.optim.SGD([{"params": {parameter(lib)}}]),
    "twice": lambda lib: lib.optim.SGD([{"params": [p]} for p in [parameter(lib)] * 2]),
    "no params": lambda lib: lib.optim.SGD([{"lr": 1}]),
    "a list as group": lambda lib: lib.optim.SGD([parameter(lib)]).add_param_group([]),
    "a name is missing": lambda lib: lib.optim.SGD([("a", parameter(lib)), parameter(lib)]),
    "the first name is missing": lambda lib: lib.optim.SGD([parameter(lib), ("a", parameter(lib))]),
    "a group without names": lambda lib: lib.optim.SGD(
        [{"params": [("a", parameter(lib))]}, {"params": [parameter(lib)]}]
    ),
    "a group with names": lambda lib: lib.optim.SGD(
        [{"params": [parameter(lib)]}, {"params": [("a", parameter(lib))]}]
    ),
    "required": lambda lib: lib.optim.Optimizer([parameter(lib)], {"lr": library_of(lib).required}),
    "two groups": lambda lib: lib.optim.LBFGS([{"params": [parameter(lib)]} for _ in "ab"]),
    "not a matrix": lambda lib: lib.optim.Muon([parameter(lib, 3)]),
    "complex rows": lambda lib: lib.optim.SparseAdam([parameter(lib, dtype="complex64")]),
    "fewer groups": lambda lib: lib.optim.SGD([parameter(lib)]).load_state_dict(
        lib.optim.SGD([{"params": [parameter(lib)]} for _ in "ab"]).state_dict()
    ),
    "fewer parameters": lambda lib: lib.optim.SGD([parameter(lib)]).load_state_dict(
        lib.optim.SGD([parameter(lib) for _ in "ab"]).state_dict()
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what):
    if what == "a dict":
        with pytest.raises(TypeError, match="one of the params is str"):
            REFUSED[what](tlc)
    assert agree(REFUSED[what])


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_complex_parameters_are_refused(name):
    def attempt(lib):
        param = parameter(lib, dtype="complex64")
        optimizer = getattr(lib.optim, name)([param])
        param.grad = lib.ones_like(param)
        optimizer.step()

    assert agree(attempt)


def test_a_parameter_twice_in_a_group():
    seen = []
    for lib in BOTH:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lib.optim.SGD([parameter(lib)] * 2)
        seen.append([(w.category, str(w.message)) for w in caught])
    assert seen[0] == seen[1]
    assert len(seen[0]) == 1


def test_names():
    """They are kept, shown, stored, and taken from what is loaded if it has them."""
    seen = []
    for lib in BOTH:
        named, others = [
            lib.optim.SGD([(key, parameter(lib)) for key in keys], lr=lr)
            for keys, lr in (("ab", 0.1), ("cd", 0.2))
        ]
        bare = lib.optim.SGD([parameter(lib) for _ in "ab"], lr=0.3)
        model = lib.optim.Adam(lib.nn.Linear(2, 2).named_parameters())
        seen.append([repr(named), named.state_dict(), model.state_dict()])
        seen[-1].append(list(named.param_groups[0]))
        without = copy.deepcopy(bare.state_dict())
        bare.load_state_dict(named.state_dict())
        others.load_state_dict(without)
        seen[-1] += [bare.state_dict(), others.state_dict(), list(others.param_groups[0])]
    assert seen[0] == seen[1]


def test_step_hooks():
    seen = []
    for lib in BOTH:
        param = parameter(lib)
        optimizer = lib.optim.SGD([param])
        log = []

        def before(one, args, kwargs, log=log, optimizer=optimizer):
            log.append(("before", one is optimizer, args[0] is optimizer, args[1:], kwargs))

        handles = [
            optimizer.register_step_pre_hook(before),
            optimizer.register_step_post_hook(lambda *a, log=log: log.append(("after", len(a)))),
            library_of(lib).register_optimizer_step_pre_hook(
                lambda *a, log=log: log.append(("before all", len(a)))
            ),
            library_of(lib).register_optimizer_step_post_hook(
                lambda *a, log=log: log.append(("after all", len(a)))
            ),
        ]
        optimizer.step()
        optimizer.step(None)
        optimizer.step(closure=None)
        for handle in handles:
            handle.remove()
        optimizer.step()
        with optimizer.register_step_pre_hook(lambda o, a, k: (a, {"closure": lambda: 7})):
            log.append(optimizer.step())
        with optimizer.register_step_pre_hook(lambda o, a, k: 5):
            log.append(outcome(optimizer.step)[0])
        log.append((optimizer.step.__name__, optimizer.step.hooked))
        seen.append(log)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 15


def test_hooks_of_the_state():
    seen = []
    for lib in BOTH:
        param = parameter(lib)
        optimizer = lib.optim.SGD([param], lr=0.5)
        log = []

        def note(word, log=log):
            return lambda *args: log.append((word, len(args)))

        def load(_, state):
            state["param_groups"][0]["lr"] = 0.125
            return state

        optimizer.register_state_dict_pre_hook(note("second"))
        optimizer.register_state_dict_pre_hook(note("first"), prepend=True)
        optimizer.register_state_dict_post_hook(note("second"))
        optimizer.register_state_dict_post_hook(note("first"), prepend=True)
        optimizer.register_state_dict_post_hook(lambda _, state: {**state, "more": 1})
        optimizer.register_load_state_dict_pre_hook(note("second"))
        optimizer.register_load_state_dict_pre_hook(note("first"), prepend=True)
        optimizer.register_load_state_dict_pre_hook(load)
        optimizer.register_load_state_dict_post_hook(note("second"))
        optimizer.register_load_state_dict_post_hook(note("first"), prepend=True)
        state = optimizer.state_dict()
        optimizer.load_state_dict(state)
        log += [list(state), optimizer.param_groups[0]["lr"], len(optimizer.__getstate__())]
        optimizer.state_dict()  # loading keeps the hooks
        seen.append(log)
    assert seen[0] == seen[1]


class OwnOptimizerTest(unittest.TestCase):
    """Optimizers as people write them for PyTorch."""

    def make(self, lib):
        differentiable = library_of(lib)._use_grad_for_differentiable

        nothing = library_of(lib).required

        class Signed(lib.optim.Optimizer):
            def __init__(self, params, lr=nothing):
                super().__init__(params, {"lr": lr, "differentiable": False})

            def __setstate__(self, state):
                super().__setstate__(state)
                for group in self.param_groups:
                    group.setdefault("extra", 3)

            @differentiable
            def step(self, closure=None):
                loss = None
                if closure is not None:
                    with lib.enable_grad():
                        loss = closure()
                for group in self.param_groups:
                    for param in group["params"]:
                        if param.grad is None:
                            continue
                        state = self.state[param]
                        state["step"] = state.get("step", 0) + 1
                        param.add_(param.grad.sign(), alpha=-group["lr"] / state["step"])
                return loss

        return Signed

    def test_step_hooks_of_an_own_optimizer(self):
        seen = []
        for lib in BOTH:
            param = parameter(lib)
            optimizer = self.make(lib)([param], lr=0.5)
            log = []
            optimizer.register_step_post_hook(lambda *args, log=log: log.append(len(args)))

            def closure(optimizer=optimizer, param=param):
                optimizer.zero_grad()
                loss = (param**2).sum()
                loss.backward()
                return loss

            log += [optimizer.step(closure).item() for _ in range(3)]
            log += [param.tolist(), repr(optimizer)]
            optimizer.load_state_dict(optimizer.state_dict())
            log.append(repr(optimizer.state_dict()))
            seen.append(log)
        assert seen[0] == seen[1]
        assert seen[0][0] == 3


def test_closures_see_gradients_and_grad_mode_returns():
    for name in NAMES:
        param = parameter(tlc)
        optimizer = getattr(tlc.optim, name)([param])

        def closure(optimizer=optimizer, param=param, name=name):
            optimizer.zero_grad()
            loss = (param**2).sum()
            loss.backward()
            if name == "SparseAdam":
                param.grad = param.grad.to_sparse(1)
            return loss

        with tlc.no_grad():
            assert optimizer.step(closure).item() == 4.0
            assert not tlc.is_grad_enabled()
        assert tlc.is_grad_enabled()
        assert param.tolist() != [[1.0, 1.0], [1.0, 1.0]], name


def test_zero_grad():
    """Gradients that are kept stay the same objects, out of any graph."""
    for lib in BOTH:
        params = [parameter(lib) for _ in range(3)]
        params[0].grad = lib.ones(2, 2)
        params[1].grad = lib.ones(2, 2, requires_grad=True) * 2
        kept = [param.grad for param in params]
        optimizer = lib.optim.SGD(params)
        optimizer.zero_grad(set_to_none=False)
        assert params[0].grad is kept[0]
        assert params[1].grad is kept[1]
        assert kept[1].grad_fn is None
        assert kept[1].tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert params[2].grad is None
        optimizer.zero_grad()
        assert params[0].grad is None


PLACES = {
    **{getattr(torch.optim, name).__module__.removeprefix("torch."): name for name in NAMES},
    "optim.adamw": "AdamW Adam",
    "optim.optimizer": "Optimizer ParamsT required register_optimizer_step_pre_hook "
    "register_optimizer_step_post_hook _use_grad_for_differentiable _default_to_fused_or_foreach "
    "_get_capturable_supported_devices _get_fused_kernels_supported_devices _get_scalar_dtype "
    "_get_foreach_kernels_supported_devices _get_value _view_as_real _RequiredParameter Args "
    "Kwargs StateDict _global_optimizer_pre_hooks _global_optimizer_post_hooks",
    "optim.swa_utils": "AveragedModel SWALR update_bn get_ema_avg_fn get_ema_multi_avg_fn "
    "get_swa_avg_fn get_swa_multi_avg_fn",
}


@pytest.mark.parametrize("place", PLACES)
def test_places(place):
    for lib in BOTH:
        module = importlib.import_module(f"{lib.__name__}.{place}")
        for name in PLACES[place].split():
            assert hasattr(module, name), name


def test_small_helpers():
    seen = []
    for lib in BOTH:
        found = library_of(lib)
        param, z = parameter(lib), parameter(lib, dtype="complex64")
        group = lib.optim.Optimizer._group_tensors_by_device_and_dtype
        parts = group([[param, z, param], [None, z, param]], with_indices=True)
        lists = [param, z], [param, z]
        found._view_as_real(*lists)
        seen.append(
            (
                found._get_capturable_supported_devices(),
                found._get_capturable_supported_devices(supports_xla=False),
                found._default_to_fused_or_foreach([param], False),
                found._default_to_fused_or_foreach([param], False, True),
                found._default_to_fused_or_foreach([param], True, True),
                found._get_value(lib.tensor(2.0)),
                found._get_value(3),
                repr(found.required),
                sorted([(text(key), text(value)) for key, value in parts.items()]),
                [[list(x.shape) for x in entries] for entries in lists],
            )
        )
    assert seen[0] == seen[1]


def test_parameters_that_come_later() -> None:
    for name in ("Adagrad", "Adam", "SGD"):
        found = []
        for lib in BOTH:
            first, second = [lib.nn.Parameter(lib.ones(2)) for _ in range(2)]
            optimizer = getattr(lib.optim, name)([first], lr=0.1)
            optimizer.add_param_group({"params": [second], "lr": 0.5})
            first.grad, second.grad = lib.ones(2), lib.ones(2)
            optimizer.step()
            found.append([first.tolist(), second.tolist()])
        np.testing.assert_allclose(*found, rtol=1e-6)
