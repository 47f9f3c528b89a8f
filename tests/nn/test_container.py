"""Containers against PyTorch's: the same operations on both, and what is left afterwards."""

from __future__ import annotations

from collections import OrderedDict

from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import raises, same


def tag(lib, name, shift=1.0):
    """A small module that prints its name and adds a number."""

    class Tag(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.full((1,), shift))

        def forward(self, x):
            return x + self.weight

        def extra_repr(self):
            return name

    return Tag()


def tags(lib, names):
    return [tag(lib, name, float(i)) for i, name in enumerate(names)]


def assign(target, key, value):
    target[key] = value


def delete(target, key):
    del target[key]


def left(container):
    return repr(container), list(container.state_dict().items()), len(container)


def cases(rows):
    return [(name, change) for name, change in rows.items()]


SEQUENCE = {
    "length": lambda lib, s: len(s),
    "iterate": lambda lib, s: list(s),
    "contains": lambda lib, s: [s[0] in s, tag(lib, "a") in s],
    "reversed": lambda lib, s: list(reversed(s)),
    "item": lambda lib, s: s[1],
    "item_last": lambda lib, s: s[-1],
    "item_tensor": lambda lib, s: s[lib.tensor(1)],
    "item_out": lambda lib, s: s[4],
    "item_out_below": lambda lib, s: s[-5],
    "item_name": lambda lib, s: s["0"],
    "item_float": lambda lib, s: s[1.0],
    "slice": lambda lib, s: s[1:],
    "slice_step": lambda lib, s: s[::2],
    "slice_back": lambda lib, s: s[::-1],
    "slice_empty": lambda lib, s: s[9:],
    "slice_type": lambda lib, s: type(s[1:]),
    "set": lambda lib, s: assign(s, 1, tag(lib, "new")),
    "set_last": lambda lib, s: assign(s, -1, tag(lib, "new")),
    "set_out": lambda lib, s: assign(s, 9, tag(lib, "new")),
    "set_int": lambda lib, s: assign(s, 0, 3),
    "set_none": lambda lib, s: assign(s, 0, None),
    "set_slice": lambda lib, s: assign(s, slice(0, 1), tag(lib, "new")),
    "delete": lambda lib, s: delete(s, 1),
    "delete_last": lambda lib, s: delete(s, -1),
    "delete_slice": lambda lib, s: delete(s, slice(0, 2)),
    "delete_step": lambda lib, s: delete(s, slice(None, None, 2)),
    "delete_all": lambda lib, s: delete(s, slice(None)),
    "delete_out": lambda lib, s: delete(s, 9),
    "pop": lambda lib, s: s.pop(1),
    "pop_last": lambda lib, s: s.pop(-1),
    "pop_slice": lambda lib, s: s.pop(slice(0, 2)),
    "pop_out": lambda lib, s: s.pop(9),
    "append": lambda lib, s: s.append(tag(lib, "new")) is s,
    "append_none": lambda lib, s: s.append(None) is s,
    "append_int": lambda lib, s: s.append(3),
    "insert_first": lambda lib, s: s.insert(0, tag(lib, "new")) in (s, None),
    "insert_middle": lambda lib, s: s.insert(2, tag(lib, "new")) in (s, None),
    "insert_end": lambda lib, s: s.insert(4, tag(lib, "new")) in (s, None),
    "extend": lambda lib, s: s.extend(tags(lib, "xy")) is s,
    "extend_container": lambda lib, s: s.extend(lib.nn.ModuleList(tags(lib, "xy"))) is s,
    "extend_int": lambda lib, s: s.extend(3),
    "extend_ints": lambda lib, s: s.extend([3]),
}


@parameterized.expand(cases(SEQUENCE))
def test_both_sequences(_, change):
    for kind in ("Sequential", "ModuleList"):

        def script(lib, kind=kind):
            modules = tags(lib, "abcd")
            container = getattr(lib.nn, kind)(*([modules] if kind == "ModuleList" else modules))
            try:
                result = change(lib, container)
            except Exception as error:
                result = type(error).__name__, str(error)
            return result, left(container)

        if kind == "Sequential" and _ == "extend_int":
            raises(lambda lib: lib.nn.Sequential().extend(3))
        else:
            same(script)


SEQUENTIAL = {
    "add": lambda lib, s: s + lib.nn.Sequential(tag(lib, "new")),
    "add_list": lambda lib, s: s + [tag(lib, "new")],
    "add_int": lambda lib, s: s + 3,
    "iadd": lambda lib, s: s.__iadd__(lib.nn.Sequential(tag(lib, "new"))),
    "iadd_list": lambda lib, s: s.__iadd__([tag(lib, "new")]),
    "mul": lambda lib, s: s * 2,
    "mul_once": lambda lib, s: s * 1,
    "rmul": lambda lib, s: 3 * s,
    "imul": lambda lib, s: s.__imul__(3),
    "mul_zero": lambda lib, s: s * 0,
    "mul_negative": lambda lib, s: s * -1,
    "mul_float": lambda lib, s: s * 1.5,
    "imul_zero": lambda lib, s: s.__imul__(0),
    "imul_text": lambda lib, s: s.__imul__("a"),
    "insert_last": lambda lib, s: s.insert(-1, tag(lib, "new")),
    "insert_lowest": lambda lib, s: s.insert(-3, tag(lib, "new")),
    "insert_out": lambda lib, s: s.insert(4, tag(lib, "new")),
    "insert_out_below": lambda lib, s: s.insert(-4, tag(lib, "new")),
    "insert_int": lambda lib, s: s.insert(0, 3),
    "forward": lambda lib, s: s(lib.ones(1)),
    "forward_nothing": lambda lib, s: s(),
    "forward_two": lambda lib, s: s(1, 2),
}


@parameterized.expand(cases(SEQUENTIAL))
def test_sequential(_, change):
    def script(lib):
        container = lib.nn.Sequential(*tags(lib, "abc"))
        try:
            result = change(lib, container)
        except Exception as error:
            result = type(error).__name__, str(error)
        return result, left(container)

    same(script)


@parameterized.expand(
    cases(
        {
            "nothing": lambda lib: lib.nn.Sequential(),
            "none": lambda lib: lib.nn.Sequential(None),
            "ordered": lambda lib: lib.nn.Sequential(
                OrderedDict(one=tag(lib, "a"), two=tag(lib, "b"))
            ),
            "dict": lambda lib: lib.nn.Sequential({"one": tag(lib, "a")}),
            "ordered_and_more": lambda lib: lib.nn.Sequential(OrderedDict(), tag(lib, "a")),
            "list": lambda lib: lib.nn.Sequential([tag(lib, "a")]),
            "bad_name": lambda lib: lib.nn.Sequential(OrderedDict([("a.b", tag(lib, "a"))])),
            "same_twice": lambda lib: lib.nn.Sequential(*[tag(lib, "a")] * 2).state_dict(),
            "list_nothing": lambda lib: lib.nn.ModuleList(),
            "list_empty": lambda lib: lib.nn.ModuleList([]),
            "list_none": lambda lib: lib.nn.ModuleList([None, None]),
            "list_generator": lambda lib: lib.nn.ModuleList(t for t in tags(lib, "ab")),
            "list_module": lambda lib: lib.nn.ModuleList(tag(lib, "a")),
            "list_call": lambda lib: lib.nn.ModuleList()(3),
            "dict_nothing": lambda lib: lib.nn.ModuleDict(),
            "dict_pairs": lambda lib: lib.nn.ModuleDict([("b", tag(lib, "b")), ["a", None]]),
            "dict_none": lambda lib: lib.nn.ModuleDict({"a": None}),
            "dict_int": lambda lib: lib.nn.ModuleDict({"a": 3}),
            "dict_bad_name": lambda lib: lib.nn.ModuleDict({"keys": tag(lib, "a")}),
            "dict_call": lambda lib: lib.nn.ModuleDict()(3),
            "runs": lambda lib: lib.nn.ModuleList(tags(lib, "aabbbca")),
            "nested_runs": lambda lib: lib.nn.ModuleList(
                [lib.nn.Sequential(*tags(lib, "ab")) for _ in range(3)]
            ),
        }
    )
)
def test_construction(_, make):
    same(make)


def test_named_sequential_keeps_names_until_renumbered():
    def script(lib):
        s = lib.nn.Sequential(
            OrderedDict(one=tag(lib, "a"), two=tag(lib, "b"), three=tag(lib, "c"))
        )
        seen = [repr(s[1:]), repr(s[0]), s.two is s[1]]
        assign(s, 1, tag(lib, "new"))
        seen.append(repr(s))
        s.append(tag(lib, "d"))
        seen.append(repr(s))
        del s[0]
        seen.append(repr(s))
        return seen

    same(script)


def test_container_edits_that_break_pytorchs():
    """PyTorch leaves broken containers after these; here they are list's."""
    m = tlc.nn.ModuleList(tags(tlc, "abc"))
    m.insert(-1, tag(tlc, "new"))
    assert [child.extra_repr() for child in m] == ["a", "b", "new", "c"]
    s = tlc.nn.Sequential(*tags(tlc, "ab"))
    s.extend(s)
    assert [child.extra_repr() for child in s] == ["a", "b", "a", "b"]


MODULE_DICT = {
    "item": lambda lib, d: d["a"],
    "item_missing": lambda lib, d: d["z"],
    "set": lambda lib, d: assign(d, "new", tag(lib, "new")),
    "set_again": lambda lib, d: assign(d, "b", tag(lib, "new")),
    "set_int": lambda lib, d: assign(d, "a", 3),
    "set_int_key": lambda lib, d: assign(d, 3, tag(lib, "new")),
    "set_taken": lambda lib, d: assign(d, "keys", tag(lib, "new")),
    "set_dot": lambda lib, d: assign(d, "a.b", tag(lib, "new")),
    "delete": lambda lib, d: delete(d, "a"),
    "delete_missing": lambda lib, d: delete(d, "z"),
    "pop": lambda lib, d: d.pop("b"),
    "pop_missing": lambda lib, d: d.pop("z"),
    "contains": lambda lib, d: ["a" in d, "z" in d],
    "iterate": lambda lib, d: [list(d), list(d.keys()), list(d.values()), list(d.items())],
    "clear": lambda lib, d: d.clear(),
    "update": lambda lib, d: d.update({"z": tag(lib, "z"), "y": tag(lib, "y")}),
    "update_pairs": lambda lib, d: d.update([("z", tag(lib, "z")), ["y", tag(lib, "y")]]),
    "update_modules": lambda lib, d: d.update(lib.nn.ModuleDict({"z": tag(lib, "z")})),
    "update_number": lambda lib, d: d.update(3),
    "update_numbers": lambda lib, d: d.update([3]),
    "update_singles": lambda lib, d: d.update([("a",)]),
}


@parameterized.expand(cases(MODULE_DICT))
def test_module_dict(_, change):
    def script(lib):
        b, a = tags(lib, "ba")
        container = lib.nn.ModuleDict({"b": b, "a": a})
        try:
            result = change(lib, container)
        except Exception as error:
            result = type(error).__name__, str(error)
        return result, left(container)

    same(script)


PARAMETER_LIST = {
    "parameters": lambda lib, p: list(p.named_parameters()),
    "iterate": lambda lib, p: list(p),
    "item": lambda lib, p: [p[0], p[-1]],
    "item_out": lambda lib, p: p[9],
    "slice": lambda lib, p: p[1:3],
    "set": lambda lib, p: assign(p, 0, lib.zeros(1)),
    "set_last": lambda lib, p: assign(p, -1, lib.nn.Parameter(lib.zeros(1))),
    "set_out": lambda lib, p: assign(p, 9, 3),
    "set_number_over_parameter": lambda lib, p: assign(p, 0, 3),
    "append": lambda lib, p: p.append(lib.zeros(1)) is p,
    "append_number": lambda lib, p: p.append(4) is p,
    "extend": lambda lib, p: p.extend([5, lib.ones(1)]) is p,
    "extend_list": lambda lib, p: p.extend(lib.nn.ParameterList([lib.ones(1)])) is p,
    "extend_number": lambda lib, p: p.extend(3),
    "extend_tensor": lambda lib, p: p.extend(lib.ones(3)),
    "iadd": lambda lib, p: p.__iadd__([1]) is p,
    "call": lambda lib, p: p(3),
    "double": lambda lib, p: p.double(),
    "nested": lambda lib, p: lib.nn.ParameterList([lib.nn.ParameterList([lib.ones(1)]), p]),
    "nothing": lambda lib, p: lib.nn.ParameterList(),
    "integers": lambda lib, p: lib.nn.ParameterList([lib.ones(1, dtype=lib.int64)]),
}


@parameterized.expand(cases(PARAMETER_LIST))
def test_parameter_list(name, change):
    def script(lib):
        container = lib.nn.ParameterList(
            [
                lib.nn.Parameter(lib.ones(2, 3)),
                lib.ones(2),
                3,
                lib.nn.Parameter(lib.ones(1, dtype=lib.float64)),
                "text",
            ]
        )
        try:
            result = change(lib, container)
        except Exception as error:
            result = type(error).__name__, str(error)
        return result, left(container)

    same(script)


PARAMETER_DICT = {
    "parameters": lambda lib, p: list(p.named_parameters()),
    "iterate": lambda lib, p: [list(p), list(p.keys()), list(p.values()), list(p.items())],
    "reversed": lambda lib, p: list(reversed(p)),
    "item": lambda lib, p: [p["b"], p["n"], p.b],
    "item_missing": lambda lib, p: p["z"],
    "item_int": lambda lib, p: p[3],
    "set": lambda lib, p: assign(p, "new", lib.ones(1)),
    "set_again": lambda lib, p: assign(p, "b", lib.ones(1)),
    "contains": lambda lib, p: ["b" in p, "z" in p],
    "delete": lambda lib, p: delete(p, "b"),
    "delete_missing": lambda lib, p: delete(p, "z"),
    "pop": lambda lib, p: p.pop("b"),
    "popitem": lambda lib, p: p.popitem(),
    "get": lambda lib, p: [p.get("b"), p.get("z"), p.get("z", 4)],
    "setdefault": lambda lib, p: [p.setdefault("b", 3), p.setdefault("new", lib.ones(1))],
    "setdefault_none": lambda lib, p: p.setdefault("new"),
    "clear": lambda lib, p: p.clear(),
    "copy": lambda lib, p: [p.copy(), p.copy()["b"] is p["b"]],
    "fromkeys": lambda lib, p: p.fromkeys(["b", "a"], 3),
    "or": lambda lib, p: p | lib.nn.ParameterDict({"z": lib.ones(1)}),
    "or_dict": lambda lib, p: p | {"z": lib.ones(1), "b": lib.zeros(1)},
    "ror_dict": lambda lib, p: {"z": lib.ones(1), "b": lib.zeros(1)} | p,
    "ior": lambda lib, p: p.__ior__({"z": lib.ones(1), "b": lib.zeros(1)}) is p,
    "update": lambda lib, p: p.update({"z": lib.ones(1), "y": lib.ones(1)}),
    "update_ordered": lambda lib, p: p.update(OrderedDict(z=lib.ones(1), y=lib.ones(1))),
    "update_pairs": lambda lib, p: p.update([("z", lib.ones(1)), ("y", 3)]),
    "update_parameters": lambda lib, p: p.update(lib.nn.ParameterDict({"z": lib.ones(1)})),
    "update_number": lambda lib, p: p.update(3),
    "update_numbers": lambda lib, p: p.update([3]),
    "update_singles": lambda lib, p: p.update([(1,)]),
    "call": lambda lib, p: p(3),
    "double": lambda lib, p: p.double(),
    "nested": lambda lib, p: lib.nn.ParameterDict({"x": p}),
    "one": lambda lib, p: lib.nn.ParameterDict({"x": lib.ones(1)}),
}


@parameterized.expand(cases(PARAMETER_DICT))
def test_parameter_dict(name, change):
    def script(lib):
        container = lib.nn.ParameterDict(
            {"b": lib.ones(2), "a": lib.nn.Parameter(lib.ones(2, 3)), "n": 3}
        )
        try:
            result = change(lib, container)
        except Exception as error:
            result = type(error).__name__, str(error)
        return result, left(container)

    same(script)


def test_parameter_dict_refuses_other_keys_unharmed():
    raises(lambda lib: assign(lib.nn.ParameterDict(), 3, lib.ones(1)))
    raises(lambda lib: assign(lib.nn.ParameterDict(), "keys", lib.ones(1)))
    raises(lambda lib: assign(lib.nn.ParameterDict(), "a.b", lib.ones(1)))
    p = tlc.nn.ParameterDict({"a": tlc.ones(1)})
    for key in (3, "keys", "a.b"):
        try:
            p[key] = tlc.ones(1)
        except (KeyError, TypeError):
            continue
    assert list(p) == ["a"]  # PyTorch remembers the bad key, and fails from then on
