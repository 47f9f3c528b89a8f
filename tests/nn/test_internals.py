"""What programs do with a module's own dictionaries, which are PyTorch's in name and order."""

from __future__ import annotations

import copy
import pickle
import typing
from collections import OrderedDict
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import LIBRARIES, same
from tests.nn.table import ROWS
from tests.nn.test_every_module import made

#: What PyTorch gives every module, in its order.
INTERNALS = list(vars(torch.nn.Module()))
KINDS = ("_parameters", "_buffers", "_modules")


def internals(lib: Any, text: str) -> Any:
    module = made(text, lib)
    found = []
    for part in module.modules():
        own = vars(part)
        found.append([name for name in own if name in INTERNALS])
        found.append([sorted(part._non_persistent_buffers_set), own["training"]])
        for kind in KINDS:
            found.append(list(own[kind]))
            assert type(own[kind]) is dict and not own[kind].keys() & own.keys()
            for name, value in own[kind].items():
                assert part.__getattr__(name) is getattr(part, name) is value
    return found


@pytest.mark.parametrize("text", dict.fromkeys(text for text, _ in ROWS))
def test_dictionaries_of_every_module(text: str) -> None:
    assert internals(tlc, text) == internals(torch, text)


@pytest.mark.parametrize("text", dict.fromkeys(text for text, _ in ROWS))
def test_copies_of_every_module(text: str) -> None:
    module = made(text, tlc)
    copies = [copy.deepcopy(module), copy.copy(module), pickle.loads(pickle.dumps(module))]
    for other in copies:
        assert list(vars(other)) == list(vars(module)) and type(other) is type(module)
        for kind in KINDS:
            assert list(vars(other)[kind]) == list(vars(module)[kind])
        assert repr(other) == repr(module)
    assert all(copies[1]._parameters[name] is p for name, p in module._parameters.items())


FILES = (tlc.nn, tlc.nn.modules.module, tlc.nn.modules.loss, tlc.nn.modules.batchnorm)
CLASSES = {
    kind.__name__: kind
    for file in FILES
    for kind in vars(file).values()
    if isinstance(kind, type) and issubclass(kind, tlc.nn.Module)
}


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
def test_type_hints_of_classes(kind: type) -> None:
    hints = typing.get_type_hints(kind, globalns={}, localns={})
    assert "_parameters" in hints and not [hint for hint in hints.values() if type(hint) is str]


def doubled(lib: Any, module: Any) -> Any:
    """What a test puts in a weight's place: it shows in what the layer computes."""
    return lib.nn.Parameter(module._parameters["weight"].detach() * 2)


def layer(lib: Any) -> Any:
    linear = lib.nn.Linear(2, 2)
    with lib.no_grad():
        linear.weight.copy_(lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        linear.bias.zero_()
    return linear


def x(lib: Any) -> Any:
    return lib.tensor([[1.0, -1.0]])


def write_by_dict(lib: Any) -> Any:
    m = layer(lib)
    m.__dict__["_parameters"]["weight"] = doubled(lib, m)
    return m(x(lib)), m.weight, list(m.state_dict())


def write_by_table(lib: Any) -> Any:
    m = layer(lib)
    m._parameters["weight"] = doubled(lib, m)
    return m(x(lib)), m.weight, [name for name, _ in m.named_parameters()]


def write_what_is_no_parameter(lib: Any) -> Any:
    m = layer(lib)
    m._parameters["weight"] = doubled(lib, m).detach()
    return m(x(lib)), m.weight, [name for name, _ in m.named_parameters()]


def delete_from_table(lib: Any) -> Any:
    m = layer(lib)
    del m._parameters["weight"]
    return hasattr(m, "weight"), list(m.state_dict()), m(x(lib))


def delete_and_set(lib: Any) -> Any:
    m = layer(lib)
    weight = m._parameters.pop("weight")
    m.weight = weight * 2
    return "weight" in vars(m), m(x(lib)), list(m.state_dict())


def swap_tables(lib: Any) -> Any:
    m = layer(lib)
    kept = m._parameters
    m._parameters = {"weight": doubled(lib, m), "bias": None}
    found = [m(x(lib)), m.bias]
    m._parameters = kept
    return *found, m(x(lib))


def update_tables(lib: Any) -> Any:
    m = lib.nn.BatchNorm1d(2).eval()
    m._parameters.update(weight=None, bias=None)
    m._buffers["running_mean"] = lib.tensor([1.0, 2.0])
    return m(x(lib)), list(m.state_dict())


def children_by_table(lib: Any) -> Any:
    m = lib.nn.Sequential(layer(lib), lib.nn.ReLU())
    m._modules["1"] = lib.nn.Identity()
    m._modules["extra"] = lib.nn.Tanh()
    found = [len(m), m(x(lib)), list(m._modules)]
    del m._modules["extra"]
    return *found, m(x(lib))


def shadow_by_dict(lib: Any) -> Any:
    m = lib.nn.Sequential(layer(lib))
    m.__dict__["extra"] = lib.ones(1)
    return m.extra, list(m.state_dict())


def property_in_a_subclass(lib: Any) -> Any:
    class Doubled(lib.nn.Linear):
        @property
        def weight(self):
            if "weight" not in self._parameters:
                raise AttributeError
            return self._parameters["weight"] * 2

    m = Doubled(2, 2, bias=False)
    with lib.no_grad():
        m._parameters["weight"].fill_(1)
    return m(x(lib) + 1), list(m.state_dict())


def attribute_of_a_mixin(lib: Any) -> Any:
    class Half:
        bias = 0.5

    class Mixed(Half, lib.nn.Embedding):
        pass

    return Mixed(2, 2).bias, list(Mixed(2, 2)._parameters)


def own_getattr(lib: Any) -> Any:
    asked = []

    class Wrapper(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = layer(lib)

        def __getattr__(self, name):
            asked.append(name)
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    m = Wrapper()
    asked.clear()
    return m.in_features, m.weight, m.module(x(lib)), hasattr(m, "absent"), asked


def own_getattr_of_a_layer(lib: Any) -> Any:
    class Doubled(lib.nn.Linear):
        def __getattr__(self, name):
            value = super().__getattr__(name)
            return value * 2 if name == "weight" and self.ready else value

        ready = False

    m = Doubled(2, 2, bias=False)
    with lib.no_grad():
        m.weight.fill_(1)
    m.ready = True
    return m(x(lib) + 1)


def own_getattribute(lib: Any) -> Any:
    class Doubled(lib.nn.Linear):
        def __getattribute__(self, name):
            value = super().__getattribute__(name)
            return value * 2 if name == "bias" else value

        def __init__(self):
            super().__init__(2, 2)
            self.__dict__["bias"] = lib.ones(2)

    m = Doubled()
    with lib.no_grad():
        m.weight.zero_()
    return m(x(lib))


def own_register_buffer(lib: Any) -> Any:
    seen = []

    class Named(lib.nn.Module):
        def register_buffer(self, name, tensor):
            seen.append(name)
            super().register_buffer(name, tensor)

    m = Named()
    m.register_buffer("a", lib.ones(1))
    m.a = lib.zeros(1)
    m.b = lib.nn.Buffer(lib.ones(1))
    return seen, list(m.state_dict())


def hooks_by_table(lib: Any) -> Any:
    m = layer(lib)
    seen = []
    m._forward_hooks[0] = lambda module, args, output: seen.append("after")
    m._forward_pre_hooks[1] = lambda module, args: seen.append("before")
    m._backward_hooks[2] = lambda module, gx, gy: seen.append("backward")
    m._is_full_backward_hook = True
    m(x(lib).requires_grad_()).sum().backward()
    kept, m._forward_hooks = m._forward_hooks, OrderedDict()
    m(x(lib))
    m._forward_hooks = kept
    m(x(lib))
    m._forward_pre_hooks.clear()
    m(x(lib))
    m.register_forward_hook(lambda module, args, output: output * 0)
    return seen, m(x(lib)), [len(vars(m)[name]) for name in INTERNALS if "hook" in name[-5:]]


def global_hooks_by_table(lib: Any) -> Any:
    seen = []
    table = lib.nn.modules.module._global_forward_hooks
    table[10**6] = lambda module, args, output: seen.append(type(module).__name__)
    lib.nn.Sequential(layer(lib))(x(lib))
    del table[10**6]
    layer(lib)(x(lib))
    return seen


def state_hooks_by_table(lib: Any) -> Any:
    m = layer(lib)
    seen = []
    m._state_dict_hooks[0] = lambda module, state, prefix, metadata: seen.append("out")
    m._load_state_dict_pre_hooks[1] = lambda *args: seen.append(len(args))
    m._load_state_dict_post_hooks[2] = lambda module, keys: seen.append("in")
    m.load_state_dict(m.state_dict())
    return seen


def hooks_of_copies(lib: Any) -> Any:
    m = layer(lib)
    handle = m.register_forward_hook(lambda module, args, output: output + 1)
    deep, shallow = copy.deepcopy(m), copy.copy(m)
    handle.remove()
    return m(x(lib)), deep(x(lib)), shallow(x(lib))


def shallow_copies_share(lib: Any) -> Any:
    m = layer(lib)
    other = copy.copy(m)
    other.new = lib.nn.Parameter(lib.ones(1))
    other.in_features = 7
    return list(m._parameters), m.in_features


def listing(lib: Any) -> Any:
    m = lib.nn.Sequential(OrderedDict(first=layer(lib)))
    m.register_buffer("mean", lib.ones(1), persistent=False)
    m.gain = lib.nn.Parameter(lib.ones(1))
    names = {"first", "mean", "gain", "training", "_parameters", "forward", "0"}
    return sorted(names & set(dir(m))), sorted(names & set(dir(m.first)))


def renamed(lib: Any) -> Any:
    """A name that was one kind of member becomes another."""
    m = lib.nn.Module()
    m.register_buffer("a", lib.ones(1), persistent=False)
    m.a = lib.nn.Parameter(lib.zeros(1))
    found = [list(m._buffers), list(m._parameters), list(m._non_persistent_buffers_set)]
    m.a = lib.nn.Identity()
    found += [list(m._parameters), list(m._modules)]
    del m.a
    m.a = 3
    return *found, "a" in vars(m), list(m._modules)


def old_pickle(lib: Any) -> Any:
    """The state of a module that PyTorch 0.4 wrote."""
    m = lib.nn.Linear.__new__(lib.nn.Linear)
    state = {"training": True, "_buffers": OrderedDict(), "_modules": OrderedDict()}
    state["_parameters"] = OrderedDict(weight=lib.nn.Parameter(lib.ones(2, 2)), bias=None)
    state.update(_backward_hooks=OrderedDict(), _forward_hooks=OrderedDict(), in_features=2)
    m.__setstate__(state)
    m.register_forward_hook(lambda module, args, output: output + 1)
    missing = [name for name in INTERNALS if name not in vars(m)]
    return m(x(lib)), list(m.state_dict()), missing


DOING = [
    write_by_dict, write_by_table, write_what_is_no_parameter, delete_from_table, delete_and_set,
    swap_tables, update_tables, children_by_table, shadow_by_dict, property_in_a_subclass,
    attribute_of_a_mixin, own_getattr, own_getattr_of_a_layer, own_getattribute,
    own_register_buffer, hooks_by_table, global_hooks_by_table, state_hooks_by_table,
    hooks_of_copies, shallow_copies_share, listing, renamed, old_pickle,
]  # fmt: skip


@pytest.mark.parametrize("script", DOING, ids=[script.__name__ for script in DOING])
def test_programs(script: Any) -> None:
    same(script)


def early(statement: str) -> Any:
    def script(lib: Any) -> Any:
        class Early(lib.nn.Module):
            def __init__(self):
                exec(statement, {"lib": lib, "self": self, "layer": layer})

        return vars(Early())

    return script


ERRORS = {
    **{
        f"early {statement}": early(statement)
        for statement in (
            "self.p = lib.nn.Parameter(lib.ones(1))",
            "self.m = layer(lib)",
            "self.b = lib.nn.Buffer(lib.ones(1))",
            "self.register_parameter('p', None)",
            "self.register_buffer('b', None)",
            "self.p",
            "del self.p",
            "self.x = 3",
        )
    },
    **{
        statement: lambda lib, statement=statement: exec(
            statement, {"lib": lib, "m": layer(lib), "one": lib.ones(1)}
        )
        for statement in (
            "m.absent",
            "m.__getattr__('absent')",
            "del m.absent",
            "m.weight = one",
            "m.weight = 'text'",
            "m.register_buffer('b', one); m.b = 'text'",
            "m.register_module('c', lib.nn.Identity()); m.c = one",
            "m.weight = lib.nn.Buffer(one)",
            "m.in_features = lib.nn.Buffer(one)",
            "m.register_parameter(3, None)",
            "m.register_parameter('', None)",
            "m.register_parameter('a.b', None)",
            "m.register_parameter('training', None)",
            "m.register_parameter('p', one)",
            "m.register_parameter('p', one.requires_grad_() * 2)",
            "m.register_buffer(3, None)",
            "m.register_buffer('', None)",
            "m.register_buffer('a.b', None)",
            "m.register_buffer('weight', None)",
            "m.register_buffer('b', 'text')",
            "m.add_module(3, None)",
            "m.add_module('', None)",
            "m.add_module('a.b', None)",
            "m.add_module('weight', None)",
            "m.add_module('c', one)",
            "m.register_module('c', 'text')",
        )
    },
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    same(ERRORS[name])


@pytest.mark.parametrize("lib", LIBRARIES, ids=["here", "torch"])
def test_names_of_pytorchs_file(lib: Any) -> None:
    file = lib.nn.modules.module
    assert file._EXTRA_STATE_KEY_SUFFIX == "_extra_state"
    assert file._IncompatibleKeys(["a"], []).missing_keys == ["a"]
    for table, name in {
        "forward": "forward",
        "forward_pre": "forward_pre",
        "backward": "full_backward",
        "backward_pre": "full_backward_pre",
    }.items():
        with getattr(file, f"register_module_{name}_hook")(lambda *args: None) as handle:
            assert handle.id in getattr(file, f"_global_{table}_hooks")
            assert file._has_any_global_hook()
        assert not getattr(file, f"_global_{table}_hooks")
