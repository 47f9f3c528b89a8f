"""Module against PyTorch's: what it holds, in which order, what it prints, refuses and saves."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from collections import OrderedDict

import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tests.nn.both import outcome, raises, same


def layers(lib):
    """Two small layers and a model over them, as classes of `lib`."""

    class Scale(lib.nn.Module):
        def __init__(self, size, bias=True):
            super().__init__()
            self.size = size
            self.weight = lib.nn.Parameter(lib.arange(float(size)))
            if bias:
                self.bias = lib.nn.Parameter(lib.ones(size))
            else:
                self.register_parameter("bias", None)

        def forward(self, x):
            y = x * self.weight
            return y if self.bias is None else y + self.bias

        def extra_repr(self):
            return f"size={self.size}"

    class Mean(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", lib.zeros(2))
            self.register_buffer("steps", lib.tensor(0), persistent=False)
            self.register_buffer("nothing", None)

        def forward(self, x):
            if self.training:
                self.steps = self.steps + 1
                self.mean = (self.mean + x.detach()) / 2
            return x - self.mean

    class Model(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Scale(2)
            self.norm = Mean()
            self.rest = lib.nn.Sequential(Scale(2, bias=False), lib.nn.Sequential(Scale(2)))
            self.tied = self.first
            self.gain = lib.nn.Parameter(lib.ones(1))
            self.absent = None

        def forward(self, x):
            return self.rest(self.norm(self.first(x))) * self.gain

    return Scale, Mean, Model


def scale(lib, *args):
    return layers(lib)[0](*args)


def mean(lib):
    return layers(lib)[1]()


def model(lib):
    return layers(lib)[2]()


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


def test_plain_reads_are_plain():
    """Parameters, buffers and children are found in the instance's own dictionary."""
    m = model(tlc)
    assert m.__dict__["first"] is m.first
    assert m.first.__dict__["weight"] is m.first.weight
    assert m.norm.__dict__["mean"] is m.norm.mean


def everything(m):
    return (
        dict(m.named_parameters()),
        dict(m.named_buffers()),
        dict(m.named_children()),
        m.state_dict(),
        repr(m),
    )


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


# -- state -----------------------------------------------------------------------------------------


def test_state_shares_memory():
    def script(lib):
        m = scale(lib, 2)
        state = m.state_dict()
        with lib.no_grad():
            m.weight.fill_(7)
        kept = m.state_dict(keep_vars=True)
        return state, kept["weight"] is m.weight, type(state)

    same(script)


def test_positional_arguments_of_state_dict():
    def script(lib):
        destination = {}
        scale(lib, 2).state_dict(destination, "a.", True)
        return destination

    same(script)


STATES = {
    "same": lambda lib, s: s,
    "empty": lambda lib, s: {},
    "missing": lambda lib, s: {k: v for k, v in s.items() if k != "rest.0.weight"},
    "unexpected": lambda lib, s: {**s, "x": lib.ones(1), "rest.y": lib.ones(1), "z.z": 3},
    "shape": lambda lib, s: {**s, "gain": lib.ones(2), "rest.0.weight": lib.ones(2, 3)},
    "no_tensor": lambda lib, s: {**s, "gain": 3},
    "dtype": lambda lib, s: {k: v.double() for k, v in s.items()},
    "volatile_buffer": lambda lib, s: {**s, "norm.steps": lib.tensor(3)},
    "values": lambda lib, s: {k: v * 3 for k, v in s.items()},
    "parameters": lambda lib, s: {k: lib.nn.Parameter(v) for k, v in s.items()},
    "one_dimension_too_many": lambda lib, s: {**s, "scalar": lib.ones(1)},
    "extra_state": lambda lib, s: {**s, "_extra_state": 1, "rest._extra_state": 2},
    "not_a_mapping": lambda lib, s: 3,
}


@parameterized.expand(
    [
        (f"{name}_{'strict' if strict else 'loose'}{'_assign' * assign}", name, strict, assign)
        for name in STATES
        for strict in (True, False)
        for assign in (False, True)
    ]
)
def test_load_state_dict(_, name, strict, assign):
    def script(lib):
        m = model(lib)
        if name == "one_dimension_too_many":
            m.register_buffer("scalar", lib.tensor(0.5))
        m.first.weight.requires_grad_(False)
        state = STATES[name](lib, m.state_dict())
        before = [p for p in m.parameters()]
        try:
            result = repr(m.load_state_dict(state, strict=strict, assign=assign))
        except Exception as error:
            result = type(error).__name__, str(error)
        return result, everything(m), [a is b for a, b in zip(before, m.parameters())]

    same(script)


def test_incompatible_keys():
    def script(lib):
        keys = model(lib).load_state_dict({"x": 1}, strict=False)
        missing, unexpected = keys
        return repr(keys), str(keys), missing, unexpected, keys.missing_keys, keys.unexpected_keys

    same(script)


def test_extra_state():
    def script(lib):
        class Counting(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.count = 0
                self.weight = lib.nn.Parameter(lib.ones(1))

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        m = lib.nn.Sequential(Counting())
        m[0].count = 5
        other = lib.nn.Sequential(Counting())
        other.load_state_dict(m.state_dict())
        seen = [list(m.state_dict()), other[0].count]
        try:
            other.load_state_dict({"0.weight": lib.ones(1)})
        except RuntimeError as error:
            seen.append(str(error))
        return seen

    same(script)
    for method in ("get_extra_state", "set_extra_state"):
        with pytest.raises(RuntimeError):
            getattr(nn.Module(), method)(*([] if method[0] == "g" else [3]))


def test_versions_reach_the_loader():
    def script(lib):
        seen = []

        class Versioned(lib.nn.Module):
            _version = 3

            def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
                seen.append((prefix, dict(local_metadata), sorted(state_dict), rest[0]))
                super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

            def _save_to_state_dict(self, destination, prefix, keep_vars):
                super()._save_to_state_dict(destination, prefix, keep_vars)
                destination[prefix + "more"] = lib.ones(1)

        m = lib.nn.Sequential(Versioned(), lib.nn.Sequential(Versioned()))
        state = m.state_dict()
        seen += [list(state), dict(state._metadata)]
        try:
            m.load_state_dict(state)
        except RuntimeError as error:
            seen.append(str(error))
        m.load_state_dict(dict(state), strict=False)
        return seen

    same(script)


def test_state_hooks():
    def script(lib):
        seen = []

        def note(name, *keep):
            return lambda *args: seen.append((name, *[plain_arg(args[i]) for i in keep]))

        def plain_arg(value):
            return dict(value) if isinstance(value, dict) else value

        m = model(lib)
        handles = [
            m.rest.register_state_dict_pre_hook(note("pre", 1, 2)),
            m.rest.register_state_dict_post_hook(note("post", 1, 2, 3)),
            m._register_state_dict_hook(lambda m, state, prefix, meta: {"only": 1}),
            m.rest.register_load_state_dict_pre_hook(note("load_pre", 1, 2, 3, 4, 5, 6, 7)),
            m.rest._register_load_state_dict_pre_hook(note("private_load_pre", 0, 1, 2, 3)),
            m.register_load_state_dict_post_hook(note("load_post")),
            m.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear()),
        ]
        seen.append(dict(m.state_dict()))
        seen.append(repr(m.load_state_dict({})))
        for handle in handles:
            handle.remove()
        count = len(seen)
        m.load_state_dict(m.state_dict())
        return seen, len(seen) == count

    same(script)


def test_state_hooks_may_not_return():
    def post(lib):
        m = scale(lib, 1)
        m.register_state_dict_post_hook(lambda *args: 3)
        m.state_dict()

    def load_post(lib):
        m = scale(lib, 1)
        m.register_load_state_dict_post_hook(lambda m, keys: keys)
        m.load_state_dict(m.state_dict())

    raises(post)
    raises(load_post)


# -- copies ----------------------------------------------------------------------------------------


class Pickled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tlc.ones(2))
        self.register_buffer("mean", tlc.zeros(2))
        self.register_buffer("steps", tlc.tensor(3), persistent=False)
        self.inner = nn.Sequential()
        self.register_forward_hook(double)

    def forward(self, x):
        return x * self.weight


def double(module, args, output):
    return output * 2


@parameterized.expand(
    [
        ("deepcopy", copy.deepcopy),
        ("pickle", lambda m: pickle.loads(pickle.dumps(m))),
    ]
)
def test_copies_are_whole_and_apart(_, duplicate):
    m = Pickled()
    other = duplicate(m)
    assert list(other.state_dict()) == ["weight", "mean"]
    assert other._non_persistent_buffers_set == {"steps"}
    assert isinstance(other.weight, nn.Parameter) and other.weight is not m.weight
    assert other(tlc.ones(2)).tolist() == [2.0, 2.0]
    with tlc.no_grad():
        other.weight.fill_(5)
    other.new = nn.Parameter(tlc.ones(1))
    other.register_forward_hook(double)
    assert m.weight.tolist() == [1.0, 1.0]
    assert list(m.state_dict()) == ["weight", "mean"]
    assert m(tlc.ones(2)).tolist() == [2.0, 2.0]
    assert other(tlc.ones(2)).tolist() == [20.0, 20.0]


def test_shallow_copy_has_its_own_names():
    m = Pickled()
    other = copy.copy(m)
    assert other.weight is m.weight
    other.new = nn.Parameter(tlc.ones(1))
    assert "new" not in dict(m.named_parameters())
    assert "new" in dict(other.named_parameters())


def test_state_written_by_pytorch_is_understood():
    """PyTorch's pickles hold the members in dictionaries."""
    m = nn.Module.__new__(nn.Module)
    weight = nn.Parameter(tlc.ones(1))
    m.__setstate__(
        {
            "training": False,
            "_parameters": {"weight": weight, "bias": None},
            "_buffers": {"mean": tlc.zeros(1), "steps": tlc.zeros(1)},
            "_non_persistent_buffers_set": {"steps"},
            "_modules": {"inner": nn.Sequential()},
            "size": 3,
        }
    )
    assert m.weight is weight and m.bias is None and m.size == 3
    assert list(m.state_dict()) == ["weight", "mean"]
    assert [name for name, _ in m.named_modules()] == ["", "inner"]
    assert not m.training


def test_tied_parameters_stay_tied():
    def script(lib):
        m = model(lib)
        other = copy.deepcopy(m)
        return other.tied is other.first, other.first is not m.first, everything(other)

    same(script)


def test_modules_die_at_once():
    """A module is not part of a reference cycle."""
    m = model(tlc)
    alive = weakref.ref(m)
    gc.disable()
    try:
        del m
        assert alive() is None
    finally:
        gc.enable()


def test_pickle_goes_through_files():
    m = nn.Sequential(Pickled())
    stream = io.BytesIO()
    pickle.dump(m.state_dict(), stream)
    stream.seek(0)
    state = pickle.load(stream)
    assert (
        outcome(lambda lib: m.load_state_dict(state), tlc)[0] == "<All keys matched successfully>"
    )
    assert state._metadata["0"] == {"version": 1}
