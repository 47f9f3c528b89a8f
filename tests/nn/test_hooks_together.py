"""Hooks of every kind together, and module methods at their edges, against PyTorch's."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import raises, same


def all_hooks_of_a_step(lib):
    seen = []
    nn = lib.nn
    m = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU())
    with lib.no_grad():
        m[0].weight.fill_(1.0)
    every = nn.modules.module
    name = lambda m: type(m).__name__

    def note_full(m, grad_input, grad_output):
        shown = [None if g is None else g.tolist() for g in grad_input]
        seen.append(("full of all", name(m), shown))

    handles = [
        every.register_module_full_backward_pre_hook(
            lambda m, g: seen.append(("pre of all", name(m), g[0].tolist()))
        ),
        every.register_module_full_backward_hook(note_full),
        m[0].register_full_backward_pre_hook(lambda m, g: seen.append("own pre")),
        m[0].register_full_backward_pre_hook(lambda m, g: (g[0] * 2,), prepend=True),
        m[0].register_full_backward_hook(lambda m, i, o: seen.append(("own", o[0].tolist()))),
        m[0].register_full_backward_hook(lambda m, i, o: (i[0] * 3,), prepend=True),
        every.register_module_forward_hook(
            lambda m, args, kwargs, y: seen.append(("forward", name(m), sorted(kwargs))),
            with_kwargs=True,
        ),
        every.register_module_forward_pre_hook(lambda m, args: seen.append(("before", name(m)))),
    ]
    x = lib.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    for handle in handles:
        handle.remove()
    return seen, x.grad, m[0].weight.grad


def keyword_arguments_have_no_gradient_in_hooks(lib):
    class Product(lib.nn.Module):
        def forward(self, x, y):
            return x * y

    seen = []
    m = Product()
    m.register_full_backward_hook(lambda m, i, o: seen.append([g.tolist() for g in i]))
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    m(x, y=y).sum().backward()
    return seen, y.grad


def outputs_in_a_dictionary(lib):
    class Named(lib.nn.Module):
        def forward(self, x):
            return {"a": x * 2}

    seen = []
    m = Named()
    m.register_full_backward_hook(lambda m, i, o: seen.append("never"))
    m.register_forward_hook(lambda m, args, y: {"b": y["a"]})
    x = lib.ones(2, requires_grad=True)
    m(x)["b"].sum().backward()
    return seen, x.grad


def outputs_in_a_list(lib):
    class Listed(lib.nn.Module):
        def forward(self, x):
            return [x * 2, x * 3]

    m = Listed()
    m.register_full_backward_hook(lambda m, i, o: None)
    x = lib.ones(2, requires_grad=True)
    m(x)[0].sum().backward()
    return x.grad


def one_class_of_handles(lib):
    of_module = lib.nn.ReLU().register_forward_hook(lambda *a: None)
    of_tensor = lib.ones(1, requires_grad=True).register_hook(lambda g: g)
    handle = import_module(f"{lib.__name__}.utils.hooks").RemovableHandle
    with lib.nn.ReLU().register_forward_hook(lambda *a: None) as entered:
        inside = isinstance(entered, handle)
    return inside, isinstance(of_module, handle), isinstance(of_tensor, handle)


def registrations(lib):
    every = lib.nn.modules.module
    seen = []
    with (
        every.register_module_parameter_registration_hook(lambda m, n, p: seen.append(("p", n))),
        every.register_module_buffer_registration_hook(lambda m, n, p: seen.append(("b", n))),
        every.register_module_module_registration_hook(lambda m, n, p: seen.append(("m", n))),
    ):
        lib.nn.BatchNorm1d(2)
        lib.nn.Sequential(lib.nn.ReLU())
        m = lib.nn.Module()
        m.x = lib.nn.Parameter(lib.ones(1))
        m.y = lib.nn.Buffer(lib.ones(1))
        m.y = lib.ones(2)
        m.register_module("z", None)
        m.x = None
    lib.nn.Linear(1, 1)
    return seen


def state_hooks(lib):
    seen = []
    m = lib.nn.Sequential(lib.nn.Linear(1, 1))
    m[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((prefix, keep)))
    m[0].register_state_dict_post_hook(lambda m, state, *rest: state.update(extra=1))
    m[0]._register_state_dict_hook(lambda m, s, p, metadata: seen.append(sorted(metadata)))
    state = m.state_dict()
    seen.append(list(state))
    m[0].register_load_state_dict_pre_hook(
        lambda m, state, prefix, metadata, strict, *lists: seen.append(
            (prefix, strict, type(m).__name__, state.pop("extra", None))
        )
    )
    m[0].register_load_state_dict_post_hook(lambda m, keys: seen.append(list(keys)))
    seen.append(repr(m.load_state_dict(state, strict=False)))
    return seen


def always_called_for_all(lib):
    class Failing(lib.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    seen = []
    every = lib.nn.modules.module
    handle = every.register_module_forward_hook(lambda m, a, y: seen.append(y), always_call=True)
    try:
        Failing()(1)
    except ValueError as error:
        seen.append(str(error))
    handle.remove()
    return seen


def hooks_that_change_hooks(lib):
    seen = []
    m = lib.nn.ReLU()

    def once(m, args, y):
        seen.append("once")
        handle.remove()

    def more(m, args):
        seen.append("more")
        m.register_forward_hook(lambda m, a, y: seen.append("later"))

    handle = m.register_forward_hook(once)
    m.register_forward_pre_hook(more)
    m(lib.ones(1))
    m(lib.ones(1))
    return seen


def own_state(lib):
    m = lib.nn.Linear(2, 2)
    twin = lib.nn.Linear.__new__(lib.nn.Linear)
    twin.__setstate__(m.__dict__)
    return twin(lib.ones(1, 2)).shape, sorted(twin.state_dict())


def submodules_put(lib):
    nn = lib.nn
    m = nn.Sequential(nn.Sequential(nn.Linear(1, 1)))
    m.set_submodule("0.0", nn.ReLU())
    m.set_submodule("0.new", nn.Tanh())
    return repr(m)


def duplicates(lib):
    nn = lib.nn
    shared = nn.BatchNorm1d(1)
    m = nn.ModuleList([shared, shared])
    return (
        [name for name, _ in m.named_parameters()],
        [name for name, _ in m.named_parameters(remove_duplicate=False)],
        [name for name, _ in m.named_modules(remove_duplicate=False)],
        [name for name, _ in m.named_buffers(remove_duplicate=False)],
        [name for name, _ in m.named_children()],
        [name for name, _ in m[0].named_parameters(prefix="here")],
        len(list(m.modules(remove_duplicate=False))),
    )


def conversions(lib):
    m = lib.nn.Linear(1, 1)
    return [
        m.half().weight.dtype,
        m.double().bias.dtype,
        m.type(lib.float32).weight.dtype,
        m.type("torch.DoubleTensor").weight.dtype,
        m.to("cpu", lib.float16).weight.dtype,
        m.to(lib.ones(1, dtype=lib.float64)).weight.dtype,
        m.to_empty(device="cpu", recurse=False).weight.shape,
        m.share_memory().training,
    ]


SCRIPTS = [
    all_hooks_of_a_step,
    keyword_arguments_have_no_gradient_in_hooks,
    outputs_in_a_dictionary,
    outputs_in_a_list,
    one_class_of_handles,
    registrations,
    state_hooks,
    always_called_for_all,
    hooks_that_change_hooks,
    own_state,
    submodules_put,
    duplicates,
    conversions,
]


@pytest.mark.usefixtures("flags_of_hooks")
@pytest.mark.parametrize("script", SCRIPTS, ids=[script.__name__ for script in SCRIPTS])
def test_hooks_match_pytorch(script):
    same(script)


WRONG = {
    "submodule path": lambda lib: lib.nn.Sequential(lib.nn.ReLU()).set_submodule(
        "x.y", lib.nn.ReLU()
    ),
    "strict": lambda lib: lib.nn.Sequential(lib.nn.ReLU()).set_submodule("5", lib.nn.ReLU(), True),
    "no module": lambda lib: lib.nn.Sequential(lib.nn.ReLU()).set_submodule("0", 3),
    "no name": lambda lib: lib.nn.Sequential(lib.nn.ReLU()).set_submodule("", lib.nn.ReLU()),
    "parameter": lambda lib: lib.nn.BatchNorm1d(1).get_parameter("running_mean"),
    "buffer": lambda lib: lib.nn.BatchNorm1d(1).get_buffer("weight"),
    "int": lambda lib: lib.nn.Linear(1, 1).to(lib.int32),
    "deleted": lambda lib: delattr(lib.nn.Linear(1, 1), "foo"),
    "number of gradients": lambda lib: too_many(lib),
}


def too_many(lib):
    m = lib.nn.Linear(2, 2)
    m.register_full_backward_pre_hook(lambda m, g: (g[0], g[0]))
    m(lib.ones(1, 2, requires_grad=True)).sum().backward()


@pytest.mark.parametrize("name", WRONG)
def test_hooks_invalid_calls_raise(name):
    raises(WRONG[name])


def test_regular_and_full_hooks_of_all_modules_do_not_mix(monkeypatch):
    monkeypatch.setattr(tlc.nn.modules.hooks, "_global_is_full_backward_hook", None)
    monkeypatch.setattr(torch.nn.modules.module, "_global_is_full_backward_hook", None)

    def script(lib):
        every = lib.nn.modules.module
        every.register_module_full_backward_hook(lambda *args: None).remove()
        every.register_module_backward_hook(lambda *args: None)

    raises(script)
