"""Patterns in graphs, found and replaced, compared with PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.fx.against_torch import expect_same, module, outcome


def _net(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = lib.nn.Linear(3, 3)
            self.scale = lib.nn.Parameter(lib.ones(3))

        def forward(self, x):
            return self.linear(x).relu() * self.scale + lib.relu(lib.neg(x)).clamp(0, 2)

    return lib.fx.symbolic_trace(Net())


def _sums(lib: Any) -> Any:
    class Sums(lib.nn.Module):
        def forward(self, x, w1, w2):
            m1 = lib.cat([w1, w2]).sum()
            m2 = lib.cat([w1, w2]).sum()
            return x + lib.max(m1) + lib.max(m2)

    return lib.fx.symbolic_trace(Sums())


def _traced(function: Any) -> Any:
    return lambda lib: lib.fx.symbolic_trace(lambda *args: function(lib, *args))


def _chain(lib: Any) -> Any:
    return lib.fx.symbolic_trace(lambda x: {"a": x + 1 + 1 + 1, "b": [x + 1]})


def _split(lib: Any) -> Any:
    def f(x):
        parts = lib.split(x, 1)
        return parts[0] + parts[1]

    return lib.fx.symbolic_trace(f)


def _scaled(lib: Any) -> Any:
    return lib.fx.symbolic_trace(lambda x, y: lib.add(x, y, alpha=2))


def _uses(lib: Any) -> Any:
    return lib.fx.symbolic_trace(lambda x, y: (x.relu(), y.relu(), x.relu().relu()))


def _halves(lib: Any) -> tuple[Any, Any]:
    def pattern(x):
        parts = lib.split(x, 1)
        return parts[0], parts[1]

    return pattern, lambda x: (x.sin(), x.cos())


PATTERNS = {
    "two of a kind": (_sums, lambda t: (lambda a, b: t.cat([a, b]), lambda a, b: t.stack([a, b]))),
    "longer": (
        _sums,
        lambda t: (lambda a, b: t.cat([a, b]).sum(), lambda a, b: t.stack([a, b]).sum().neg()),
    ),
    "overlapping": (_sums, lambda t: (lambda x, y: x + t.max(y), lambda x, y: x - y)),
    "of a sum": (_sums, lambda t: (lambda x, y: x + y, lambda x, y: x - y)),
    "unary": (_net, lambda t: (lambda x: t.neg(x), lambda x: x * -1)),
    "function, no method": (_net, lambda t: (lambda x: t.relu(x), lambda x: t.sigmoid(x) + 1)),
    "literals": (_net, lambda t: (lambda x: x.clamp(0, 2), lambda x: x.clamp(0, 3))),
    "literals as inputs": (
        _net, lambda t: (lambda x, a, b: x.clamp(a, b), lambda x, a, b: x.clamp(b, a))
    ),
    "other literals": (_net, lambda t: (lambda x: x.clamp(0, 1), lambda x: x.clamp(0, 3))),
    "identity as replacement": (_net, lambda t: (lambda x: t.neg(x), lambda x: x)),
    "nothing as pattern": (_net, lambda t: (lambda x: x, lambda x: t.neg(x))),
    "unused input": (_net, lambda t: (lambda x, y: x, lambda x, y: y)),
    "too many inputs": (_net, lambda t: (lambda x: t.neg(x), lambda x, y: x + y)),
    "too many results": (_net, lambda t: (lambda x: t.neg(x), lambda x: (x, x))),
    "chain": (_chain, lambda t: (lambda x: x + 1, lambda x: x - 1)),
    "two results": (_split, _halves),
    "keyword": (
        _scaled, lambda t: (lambda x, y: t.add(x, y, alpha=2), lambda x, y: t.add(y, x))
    ),
    "no keyword": (_scaled, lambda t: (lambda x, y: t.add(x, y), lambda x, y: t.add(y, x))),
    "used elsewhere": (_uses, lambda t: (lambda x: x.relu().relu(), lambda x: x.relu())),
}  # fmt: skip


@pytest.mark.parametrize("ignore_literals", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_replace_pattern(name: str, ignore_literals: bool) -> None:
    make, patterns = PATTERNS[name]

    def program(lib: Any) -> Any:
        traced = make(lib)
        rewriter = module(lib, "fx.subgraph_rewriter")
        found = rewriter.replace_pattern_with_filters(
            traced, *patterns(lib), ignore_literals=ignore_literals
        )
        return traced.code, [
            (
                str(match.anchor),
                {str(a): str(b) for a, b in match.nodes_map.items()},
                [str(node) for node in match.replacements],
            )
            for match in found
        ]

    expect_same(program)


def test_replace_pattern_returns_matches() -> None:
    traced = _net(tlc)
    [match] = tlc.fx.replace_pattern(traced, lambda x: tlc.neg(x), lambda x: -x)
    assert match.anchor.name == "neg" and len(match.nodes_map) == 2
    x = tlc.ones(2, 3)
    assert traced(x).equal(_net_with(traced, x))


def _net_with(traced: Any, x: Any) -> Any:
    linear, scale = traced.linear, traced.scale
    return linear(x).relu() * scale + tlc.relu(-x).clamp(0, 2)


@pytest.mark.parametrize("is_traced", [False, True])
def test_modules_of_a_replacement_are_copied(is_traced: bool) -> None:
    def program(lib: Any) -> Any:
        class Other(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.other = lib.nn.Linear(3, 3)

            def forward(self, x):
                return self.other(x)

        traced, other = _net(lib), Other()
        replacement = lib.fx.symbolic_trace(other) if is_traced else other
        lib.fx.replace_pattern(traced, lambda x: lib.neg(x), replacement)
        assert traced.other is not other.other
        return traced.code, sorted(name for name, _ in traced.named_parameters())

    expect_same(program)


def test_a_filter_chooses_matches() -> None:
    def program(lib: Any) -> Any:
        traced = _sums(lib)
        rewriter = module(lib, "fx.subgraph_rewriter")
        rewriter.replace_pattern_with_filters(
            traced,
            lambda x: lib.max(x),
            lambda x: lib.min(x),
            match_filters=[lambda match, graph, pattern: match.anchors[0].name != match.nodes_map],
        )
        first = traced.code
        rewriter.replace_pattern_with_filters(
            traced,
            lambda x: lib.min(x),
            lambda x: lib.max(x),
            match_filters=[
                lambda match, graph, pattern: "min_2" in map(str, match.nodes_map.values())
            ],
        )
        return first, traced.code

    expect_same(program)


def test_a_callback_makes_replacements() -> None:
    def program(lib: Any) -> Any:
        traced = _net(lib)
        rewriter = module(lib, "fx.subgraph_rewriter")

        def replaced(match, graph, pattern):
            low, high = match.nodes_map[list(pattern.nodes)[1]], 7
            return lib.fx.symbolic_trace(lambda x, a, b: x.clamp(low, high)).graph

        rewriter.replace_pattern_with_filters(
            traced, lambda x, a, b: x.clamp(a, b), replacement_callback=replaced
        )
        return traced.code

    expect_same(program)


def test_no_replacement_is_refused() -> None:
    rewriter = module(tlc, "fx.subgraph_rewriter")
    with pytest.raises(AssertionError, match="either a replacement"):
        rewriter.replace_pattern_with_filters(_net(tlc), lambda x: tlc.neg(x))


@pytest.mark.parametrize("overlapping", [False, True])
def test_matcher(overlapping: bool) -> None:
    def program(lib: Any) -> Any:
        matcher = module(lib, "fx.passes.utils.matcher_utils").SubgraphMatcher
        pattern = lib.fx.symbolic_trace(lambda x: x + 1 + 1).graph
        graph = _chain(lib).graph
        found = matcher(pattern, remove_overlapping_matches=not overlapping).match(graph)
        return [
            (
                [str(node) for node in match.nodes_map.values()],
                [str(node) for node in match.placeholder_nodes],
                [str(node) for node in match.returning_nodes],
            )
            for match in found
        ]

    assert len(outcome(program, tlc)) == 1 + overlapping
    expect_same(program)


def test_matcher_refuses_patterns() -> None:
    matcher = module(tlc, "fx.passes.utils.matcher_utils").SubgraphMatcher
    with pytest.raises(ValueError, match="empty pattern"):
        matcher(tlc.fx.Graph())

    def wasteful(x):
        tlc.neg(x)
        return x + 1

    with pytest.raises(AssertionError, match="dead code"):
        matcher(tlc.fx.symbolic_trace(wasteful).graph)


def test_a_part_that_depends_on_itself_is_no_match() -> None:
    def program(lib: Any) -> Any:
        matcher = module(lib, "fx.passes.utils.matcher_utils").SubgraphMatcher
        pattern = lib.fx.symbolic_trace(lambda x, y: (lib.relu(x), lib.neg(y))).graph
        between = lib.fx.symbolic_trace(lambda x: lib.neg(lib.relu(x).sin())).graph
        apart = lib.fx.symbolic_trace(lambda x, y: (lib.relu(x), lib.neg(y))).graph
        return [len(matcher(pattern).match(graph)) for graph in (between, apart)]

    assert outcome(program, torch) == [0, 1]
    expect_same(program)


def test_compare_graphs() -> None:
    compare = module(tlc, "fx.passes.utils").compare_graphs
    graphs = [
        tlc.fx.symbolic_trace(f).graph
        for f in (lambda x: x.sin() + 1, lambda y: y.sin() + 1, lambda x: x.cos() + 1)
    ]
    assert compare(graphs[0], graphs[1]) and not compare(graphs[0], graphs[2])
