"""Module against PyTorch's: what it holds, in which order, what it prints and refuses."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import raises, same
from tests.nn.models import everything, mean, model, scale

# -- what a module holds ---------------------------------------------------------------------------


@parameterized.expand(
    [
        (name, walk)
        for name, walk in {
            "parameters": lambda m: list(m.named_parameters()),
            "parameters_prefix": lambda m: [n for n, _ in m.named_parameters("top")],
            "parameters_flat": lambda m: list(m.named_parameters(recurse=False)),
            "parameters_twice": lambda m: [n for n, _ in m.named_parameters("", True, False)],
            "parameters_plain": lambda m: list(m.parameters()),
            "parameters_plain_flat": lambda m: list(m.parameters(recurse=False)),
            "buffers": lambda m: list(m.named_buffers()),
            "buffers_prefix": lambda m: list(m.named_buffers("top")),
            "buffers_plain": lambda m: list(m.buffers()),
            "buffers_flat": lambda m: list(m.buffers(False)),
            "modules": lambda m: list(m.named_modules()),
            "modules_prefix": lambda m: [n for n, _ in m.named_modules(prefix="top")],
            "modules_twice": lambda m: [n for n, _ in m.named_modules(remove_duplicate=False)],
            "modules_plain": lambda m: list(m.modules()),
            "modules_plain_twice": lambda m: list(m.modules(remove_duplicate=False)),
            "children": lambda m: list(m.named_children()),
            "children_plain": lambda m: list(m.children()),
            "repr": repr,
            "str": str,
            "state_dict": lambda m: m.state_dict(),
            "keys": lambda m: list(m.state_dict()),
            "metadata": lambda m: m.state_dict()._metadata,
            "prefix": lambda m: m.state_dict(prefix="a."),
            "keep_vars": lambda m: m.state_dict(keep_vars=True),
            "_parameters": lambda m: dict(m.first._parameters),
            "_buffers": lambda m: dict(m.norm._buffers),
            "_modules": lambda m: dict(m._modules),
            "_non_persistent": lambda m: m.norm._non_persistent_buffers_set,
        }.items()
    ]
)
def test_walks(_, walk):
    same(lambda lib: walk(model(lib)))


def test_dir_names_what_the_module_holds():
    def script(lib):
        return [
            sorted(set(dir(m)) - set(dir(type(m))) - set(vars(m)) - {"0", "1"})
            + [name for name in dir(m) if not name.startswith("_") and hasattr(m, name)]
            for m in (scale(lib, 2), mean(lib), model(lib))
        ]

    here = [set(names) for names in script(tlc)]
    there = [set(names) for names in script(torch)]
    unwanted = {"compile", "ipu", "mtia", "xpu", "T_destination"}
    assert [b - a - unwanted for a, b in zip(here, there)] == [set()] * 3


@parameterized.expand(
    [
        (name, change)
        for name, change in {
            "parameter": lambda lib, m: setattr(m, "first", lib.nn.Parameter(lib.zeros(1))),
            "parameter_again": lambda lib, m: setattr(m, "gain", lib.nn.Parameter(lib.zeros(3))),
            "parameter_to_none": lambda lib, m: setattr(m, "gain", None),
            "parameter_over_plain": lambda lib, m: setattr(
                m, "absent", lib.nn.Parameter(lib.zeros(1))
            ),
            "parameter_over_buffer": lambda lib, m: setattr(
                m.norm, "mean", lib.nn.Parameter(lib.zeros(1))
            ),
            "module": lambda lib, m: setattr(m, "first", scale(lib, 3)),
            "module_over_plain": lambda lib, m: setattr(m, "absent", scale(lib, 3)),
            "module_over_buffer": lambda lib, m: setattr(m.norm, "mean", scale(lib, 3)),
            "module_to_none": lambda lib, m: setattr(m, "first", None),
            "buffer": lambda lib, m: setattr(m.norm, "mean", lib.ones(3)),
            "buffer_to_none": lambda lib, m: setattr(m.norm, "mean", None),
            "buffer_from_none": lambda lib, m: setattr(m.norm, "nothing", lib.ones(3)),
            "buffer_class": lambda lib, m: setattr(m, "new", lib.nn.Buffer(lib.ones(3))),
            "buffer_class_volatile": lambda lib, m: setattr(
                m, "new", lib.nn.Buffer(lib.ones(3), persistent=False)
            ),
            "buffer_becomes_persistent": lambda lib, m: setattr(
                m.norm, "steps", lib.nn.Buffer(lib.ones(3))
            ),
            "buffer_over_parameter": lambda lib, m: setattr(m, "gain", lib.nn.Buffer(lib.ones(3))),
            "buffer_over_module": lambda lib, m: setattr(m, "first", lib.nn.Buffer(lib.ones(3))),
            "plain_tensor": lambda lib, m: setattr(m, "absent", lib.ones(3)),
            "registered_buffer": lambda lib, m: m.register_buffer("new", lib.ones(1)),
            "registered_volatile": lambda lib, m: m.register_buffer("new", lib.ones(1), False),
            "registered_parameter": lambda lib, m: m.register_parameter(
                "new", lib.nn.Parameter(lib.ones(1))
            ),
            "registered_none": lambda lib, m: m.register_parameter("new", None),
            "registered_module": lambda lib, m: m.register_module("new", scale(lib, 1)),
            "added_none": lambda lib, m: m.add_module("new", None),
            "delete_parameter": lambda lib, m: delattr(m, "gain"),
            "delete_buffer": lambda lib, m: delattr(m.norm, "mean"),
            "delete_module": lambda lib, m: delattr(m, "first"),
            "delete_plain": lambda lib, m: delattr(m, "absent"),
            "delete_nothing": lambda lib, m: delattr(m, "absurd"),
            "raw_parameter": lambda lib, m: m._parameters.update(new=lib.nn.Parameter(lib.ones(1))),
            "raw_delete": lambda lib, m: m._parameters.pop("gain"),
            "raw_module": lambda lib, m: m._modules.update(new=scale(lib, 1)),
            "raw_clear": lambda lib, m: m.norm._buffers.clear(),
            "raw_replaced": lambda lib, m: setattr(
                m, "_modules", OrderedDict((k, v) for k, v in m._modules.items() if k != "norm")
            ),
            "wrong_parameter": lambda lib, m: setattr(m, "gain", 3),
            "tensor_as_parameter": lambda lib, m: setattr(m, "gain", lib.ones(1)),
            "module_as_parameter": lambda lib, m: setattr(m, "gain", lib.nn.Sequential()),
            "wrong_module": lambda lib, m: setattr(m, "first", 3),
            "wrong_buffer": lambda lib, m: setattr(m.norm, "mean", 3),
            "set_submodule": lambda lib, m: m.set_submodule("rest.1.0", scale(lib, 1)),
            "set_submodule_new": lambda lib, m: m.set_submodule("rest.1.new", scale(lib, 1)),
            "set_submodule_strict": lambda lib, m: m.set_submodule("new", scale(lib, 1), True),
            "set_submodule_no_path": lambda lib, m: m.set_submodule("", scale(lib, 1)),
            "set_submodule_no_parent": lambda lib, m: m.set_submodule("a.b", scale(lib, 1)),
            "set_submodule_no_module": lambda lib, m: m.set_submodule("rest", 3),
            "set_submodule_parameter": lambda lib, m: m.set_submodule("gain", scale(lib, 1)),
        }.items()
    ]
)
def test_changes(_, change):
    def script(lib):
        m = model(lib)
        change(lib, m)
        return everything(m)

    same(script)


def test_weight_may_become_a_plain_tensor():
    """What weight normalisation does: the parameter goes, a tensor takes its name."""

    def script(lib):
        m = scale(lib, 2)
        weight = m.weight
        del m._parameters["weight"]
        m.register_parameter("weight_raw", lib.nn.Parameter(weight.data))
        m.weight = m.weight_raw * 2
        return everything(m), m(lib.ones(2))

    same(script)


NAMES = (3, "a.b", "", "forward", "training", "gain", "first", "norm", "new", "absent")


@parameterized.expand(
    [(f"{method}_{name}", method, name) for method in ("parameter", "buffer") for name in NAMES]
    + [(f"module_{name}", "module", name) for name in NAMES]
)
def test_names(_, method, name):
    """Registering checks the name before the value."""
    for make in (
        lambda lib: lib.nn.Parameter(lib.ones(1)),
        lambda lib: lib.ones(1),
        lambda lib: lib.nn.Sequential(),
        lambda lib: 3,
        lambda lib: None,
    ):

        def script(lib, make=make):
            m = model(lib)
            getattr(m, f"register_{method}")(name, make(lib))
            return everything(m)

        same(script)


def test_parameter_has_to_be_a_leaf():
    def script(lib):
        p = lib.nn.Parameter(lib.ones(2))
        with lib.no_grad():
            p.data = lib.zeros(2)
        p.requires_grad_(False)
        p.mul_(lib.ones(2, requires_grad=True))  # in place: it is a Parameter, and no leaf
        lib.nn.Module().register_parameter("p", p)

    raises(script)


def test_no_members_before_init():
    for make in (
        lambda lib: lib.nn.Parameter(lib.ones(1)),
        lambda lib: lib.nn.Buffer(lib.ones(1)),
        lambda lib: lib.nn.Sequential(),
    ):

        def script(lib, make=make):
            class Hasty(lib.nn.Module):
                def __init__(self):
                    self.plain = 3
                    self.member = make(lib)

            Hasty()

        raises(script)
        for method in ("register_parameter", "register_buffer"):

            def register(lib, make=make, method=method):
                m = lib.nn.Module.__new__(lib.nn.Module)
                getattr(m, method)("member", make(lib))

            raises(register)


def test_init_takes_no_arguments():
    def cooperative(lib):
        class Mixin:
            def __init__(self, value):
                super().__init__()
                self.value = value

        class Both(lib.nn.Module, Mixin):
            call_super_init = True

            def __init__(self):
                super().__init__(7)

        return Both().value

    raises(lambda lib: lib.nn.Module(3))
    raises(lambda lib: lib.nn.Module(a=3, b=4))
    assert same(cooperative) == 7


def test_missing_forward_and_attributes():
    raises(lambda lib: lib.nn.Module()(3))
    raises(lambda lib: lib.nn.Module().forward(3))
    raises(lambda lib: scale(lib, 1).absurd)

    def delegate(lib):
        """A wrapper that passes on what it does not have, by way of super().__getattr__."""

        class Wrapper(lib.nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def __getattr__(self, name):
                try:
                    return super().__getattr__(name)
                except AttributeError:
                    return getattr(self.inner, name)

        return Wrapper(scale(lib, 2)).weight

    same(delegate)


PATHS = ("", "first", "rest.1", "rest.1.0", "absurd", "rest.absurd.0", "gain", "first.weight")
PATHS += ("first.weight.x", "norm.mean", "norm.nothing", "training", "first.bias", "rest.0.bias")


@parameterized.expand(
    [
        (f"{method}_{path}", method, path)
        for method in ("get_submodule", "get_parameter", "get_buffer")
        for path in PATHS
    ]
)
def test_paths(_, method, path):
    same(lambda lib: getattr(model(lib), method)(path))


# -- modes, conversions ----------------------------------------------------------------------------


def test_train_and_eval():
    def script(lib):
        m = model(lib)
        seen = [m.eval() is m, [x.training for x in m.modules()]]
        m.rest.train()
        seen.append([x.training for x in m.modules()])
        return [*seen, m.train() is m, [x.training for x in m.modules()]]

    same(script)
    raises(lambda lib: model(lib).train(3))


def test_requires_grad_and_zero_grad():
    def script(lib):
        m = model(lib)
        seen = [m.requires_grad_(False) is m, [p.requires_grad for p in m.parameters()]]
        m.requires_grad_()
        m(lib.ones(2)).sum().backward()
        grads = [p.grad for p in m.parameters()]
        m.zero_grad(set_to_none=False)
        seen += [[p.grad for p in m.parameters()], grads]
        m.zero_grad()
        return [*seen, [p.grad for p in m.parameters()], m.share_memory() is m]

    same(script)


def test_apply_runs_children_first():
    def script(lib):
        seen = []
        m = model(lib)
        return m.apply(lambda x: seen.append(x)) is m, seen

    same(script)


@parameterized.expand(
    [
        ("double", lambda lib, m: m.double()),
        ("half", lambda lib, m: m.half()),
        ("float", lambda lib, m: m.double().float()),
        ("type", lambda lib, m: m.type(lib.float64)),
        ("type_name", lambda lib, m: m.type("torch.DoubleTensor")),
        ("cpu", lambda lib, m: m.cpu()),
        ("to_nothing", lambda lib, m: m.to()),
        ("to_dtype", lambda lib, m: m.to(lib.float64)),
        ("to_dtype_keyword", lambda lib, m: m.to(dtype=lib.float64)),
        ("to_device", lambda lib, m: m.to("cpu")),
        ("to_device_object", lambda lib, m: m.to(lib.device("cpu"))),
        ("to_device_keyword", lambda lib, m: m.to(device="cpu", non_blocking=True)),
        ("to_both", lambda lib, m: m.to("cpu", lib.float16)),
        ("to_both_flag", lambda lib, m: m.to("cpu", lib.float16, True)),
        ("to_dtype_flag", lambda lib, m: m.to(lib.float16, True)),
        ("to_none", lambda lib, m: m.to(None, lib.float16)),
        ("to_tensor", lambda lib, m: m.to(lib.ones(1, dtype=lib.float64))),
    ]
)
def test_conversions_keep_parameters(_, convert):
    def script(lib):
        m = model(lib)
        m(lib.ones(2)).sum().backward()
        before = list(m.parameters())
        kept = convert(lib, m) is m, [a is b for a, b in zip(before, m.parameters())]
        grads = [p.grad for p in m.parameters()]
        return kept, everything(m), grads

    result = same(script)
    assert result[0][0] is True


def test_bfloat16():
    same(lambda lib: [str(v.dtype) for v in model(lib).bfloat16().state_dict().values()])


def test_wrong_conversions():
    raises(lambda lib: model(lib).to(lib.int32))
    raises(lambda lib: model(lib).to(lib.ones(1, dtype=lib.int64)))
    for lib in (tlc, torch):
        with pytest.raises(TypeError, match="invalid combination"):
            model(lib).to([])


def test_to_empty():
    def script(lib):
        m = scale(lib, 2)
        p = m.weight
        return m.to_empty(device="cpu") is m, m.weight is p, m.weight.shape, str(m.weight.dtype)

    same(script)


# -- printing --------------------------------------------------------------------------------------


def test_repr_of_many_lines():
    def script(lib):
        class Chatty(lib.nn.Module):
            def extra_repr(self):
                return "a=1,\nb=2"

        class Named(lib.nn.Module):
            def _get_name(self):
                return "Other"

        class Titled(Chatty):
            def __init__(self):
                super().__init__()
                self.inner = Chatty()
                self.empty = None if lib is None else Named()

        outer = lib.nn.Sequential(Chatty(), lib.nn.ModuleList([Titled(), Titled(), Named()]))
        return repr(Chatty()), repr(Named()), repr(Titled()), repr(outer)

    same(script)
