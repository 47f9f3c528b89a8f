"""utils._pytree against PyTorch's."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple

from parameterized import parameterized

from tests.autograd.against_torch import raises, same

Point = namedtuple("Point", "x y")


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


def trees(lib):
    tree = importlib.import_module(f"{lib.__name__}.utils._pytree")
    if Pair not in tree.SUPPORTED_NODES:
        tree.register_pytree_node(
            Pair, lambda p: ([p.a, p.b], "context"), lambda values, context: Pair(*values)
        )
    return tree


TREES = [
    (1,), (None,), ((),), ((1, 2),), ([1, [2, "x"]],), ({"a": (1, 2), "b": [3]},), (Point(1, [2]),),
    (OrderedDict(b=1, a=2),), (defaultdict(list, a=1),), (deque([1, 2], 3),),
]  # fmt: skip


@parameterized.expand(TREES)
def test_flatten(tree):
    def script(lib):
        p = trees(lib)
        leaves, spec = p.tree_flatten(tree)
        counts = spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf()
        rebuilt = p.tree_unflatten(leaves, spec)
        assert type(rebuilt) is type(tree)
        drawn = p.treespec_pprint(spec), repr(spec).replace("tests.func.", "")
        return leaves, counts, rebuilt == tree, drawn, p.tree_structure(tree) == spec

    same(script)


def test_registered():
    def script(lib):
        p = trees(lib)
        doubled = p.tree_map(lambda v: v * 2, {"p": Pair(1, (2, 3))})["p"]
        return doubled.a, doubled.b, p.tree_leaves(Pair(1, Pair(2, 3)))

    same(script)


def test_a_size_is_a_tree():
    same(lambda lib: trees(lib).tree_flatten(lib.ones(2, 3).shape)[0])
    same(lambda lib: trees(lib).tree_map(lambda n: n + 1, lib.ones(2, 3).shape))


def test_functions():
    def script(lib):
        p = trees(lib)
        tree = {"a": (1, 2.0), "b": ["x"]}
        seen = []
        assert p.tree_map_(seen.append, tree) is tree
        return (
            p.tree_map(lambda a, b: (a, b), tree, {"a": (5, [6]), "b": [7]}),
            p.tree_map_only(int, lambda v: v + 1, tree),
            p.tree_map_only((int, float), lambda v: v + 1, tree),
            p.tree_map_only(lambda v: v == "x", lambda v: v * 2, tree),
            p.tree_all(bool, tree), p.tree_any(lambda v: v == 7, tree), list(p.tree_iter(tree)),
            seen, p.tree_leaves(tree, is_leaf=lambda v: isinstance(v, tuple)),
        )  # fmt: skip

    same(script)


ERRORS = [
    ("leaves", lambda p: p.tree_unflatten([1], p.tree_structure((1, 2)))),
    ("spec", lambda p: p.tree_unflatten([1], 3)),
    ("keys", lambda p: p.tree_map(lambda a, b: a, {"a": 1}, {"b": 2})),
    ("arity", lambda p: p.tree_map(lambda a, b: a, [1], [1, 2])),
    ("type", lambda p: p.tree_map(lambda a, b: a, [1], (1,))),
    ("again", lambda p: p.register_pytree_node(list, None, None)),
]


@parameterized.expand(ERRORS)
def test_error(name, f):
    raises(lambda lib: f(trees(lib)), "leaves", "Node", "registered", "Expected `treespec`")
