"""What a module saves, loads and copies, against PyTorch's."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tests.nn.against_torch import outcome, raises, same
from tests.nn.models import everything, model, scale


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
