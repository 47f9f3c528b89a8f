"""Passes over graphs, compared with PyTorch's."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.fx.against_torch import expect_same, module, outcome, values
from tests.fx.networks import NETWORKS

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.*:DeprecationWarning")  # in an import
over_networks = pytest.mark.parametrize("name", NETWORKS)


def _traced(lib: Any, name: str) -> tuple[Any, Any, tuple]:
    net, inputs = NETWORKS[name](lib)
    return lib.fx.symbolic_trace(net), net, inputs


def _shown(meta: Any) -> Any:
    """What is noted of tensors, in terms of Python."""
    if hasattr(meta, "memory_format"):
        tensor = (tuple(meta.shape), str(meta.dtype), meta.requires_grad, tuple(meta.stride))
        return (*tensor, str(meta.memory_format), meta.is_quantized, meta.qparams)
    if isinstance(meta, dict):
        return {key: _shown(each) for key, each in meta.items()}
    return [_shown(each) for each in meta] if isinstance(meta, list | tuple) else str(meta)


# -- shapes ----------------------------------------------------------------------------------------


@over_networks
def test_shape_prop(name: str) -> None:
    def program(lib: Any) -> Any:
        traced, _, inputs = _traced(lib, name)
        result = module(lib, "fx.passes.shape_prop").ShapeProp(traced).propagate(*inputs)
        noted = [
            (node.name, _shown(node.meta.get("tensor_meta")), node.meta["type"].__name__)
            for node in traced.graph.nodes
        ]
        return noted, values(result)

    expect_same(program)


def test_shape_prop_of_layouts() -> None:
    def program(lib: Any) -> Any:
        traced = lib.fx.symbolic_trace(lambda x: (x.contiguous(), x.transpose(0, 1), x[:, ::2]))
        x = lib.ones(2, 3, 4, 5).to(memory_format=lib.channels_last)
        module(lib, "fx.passes.shape_prop").ShapeProp(traced).propagate(x)
        return [_shown(node.meta.get("tensor_meta")) for node in traced.graph.nodes]

    expect_same(program)


def test_shape_prop_names_the_node_that_fails(capsys: Any) -> None:
    traced = tlc.fx.symbolic_trace(lambda x, y: x @ y)
    prop = module(tlc, "fx.passes.shape_prop").ShapeProp(traced)
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%matmul"):
        prop.propagate(tlc.ones(2, 3), tlc.ones(2, 3))


@over_networks
def test_fake_tensor_prop(name: str) -> None:
    def program(lib: Any) -> Any:
        traced, _, inputs = _traced(lib, name)
        mode = module(lib, "_subclasses.fake_tensor").FakeTensorMode(allow_non_fake_inputs=True)
        prop = module(lib, "fx.passes.fake_tensor_prop").FakeTensorProp(traced, mode)
        prop.propagate(*inputs)
        return [(node.name, _described(node.meta.get("val"))) for node in traced.graph.nodes]

    expect_same(program)


def _described(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_described(each) for each in value]
    if isinstance(value, dict):
        return {key: _described(each) for key, each in value.items()}
    if not hasattr(value, "dtype"):
        return value
    return type(value).__name__, tuple(value.shape), str(value.dtype), str(value.device)


def test_sizes_of_nodes() -> None:
    def program(lib: Any) -> Any:
        traced, _, inputs = _traced(lib, "mlp")
        sizes = module(lib, "fx.passes.graph_manipulation")
        sizes.get_size_of_all_nodes(traced, inputs)
        return [tuple(n.size_bytes) for n in traced.graph.nodes if n.op != "output"]

    expect_same(program)


# -- splitting -------------------------------------------------------------------------------------


def _code(split: Any) -> Any:
    """The code of a module and of those it calls."""
    inner = {name: _code(each) for name, each in split.named_children() if hasattr(each, "graph")}
    return split.code, inner


@pytest.mark.parametrize("count", [1, 2, 3])
@over_networks
def test_split_module(name: str, count: int) -> None:
    def program(lib: Any) -> Any:
        traced, net, inputs = _traced(lib, name)
        calls = [n for n in traced.graph.nodes if n.op.startswith("call")]
        part = {node: i * count // len(calls) for i, node in enumerate(calls)}
        names: dict[str, str] = {}
        split_module = module(lib, "fx.passes.split_module").split_module
        split = split_module(traced, net, part.__getitem__, names)
        assert values(split(*inputs)) == values(net(*inputs))
        return _code(split), names, split.meta["partition_names"], sorted(split.state_dict())

    expect_same(program)


@pytest.mark.parametrize(
    "options",
    [
        {"keep_original_order": True},
        {"keep_original_node_name": True},
        {"keep_original_input_name": False},
        {"partition_affix": "pp"},
        {"tuple_return": True},
    ],
    ids=lambda options: next(iter(options)),
)
@over_networks
def test_split_module_options(name: str, options: dict[str, Any]) -> None:
    def program(lib: Any) -> Any:
        traced, net, inputs = _traced(lib, name)
        calls = [n for n in traced.graph.nodes if n.op.startswith("call")]
        part = {node: "ba"[i * 2 // len(calls)] for i, node in enumerate(calls)}
        split_module = module(lib, "fx.passes.split_module").split_module
        split = split_module(traced, net, part.__getitem__, **options)
        return _code(split), values(split(*inputs))

    expect_same(program)


def test_split_module_in_a_circle() -> None:
    def program(lib: Any) -> Any:
        traced = lib.fx.symbolic_trace(lambda x: x.sin().cos().tan())
        numbers = {"sin": 0, "cos": 1, "tan": 0}
        split_module = module(lib, "fx.passes.split_module").split_module
        return split_module(traced, None, lambda node: numbers[node.name])

    assert outcome(program, torch) == "RuntimeError"
    expect_same(program)


@pytest.mark.parametrize("return_tuple", [False, True])
@over_networks
def test_split_by_tags(name: str, return_tuple: bool) -> None:
    def program(lib: Any) -> Any:
        traced, net, inputs = _traced(lib, name)
        calls = [n for n in traced.graph.nodes if n.op.startswith("call")]
        for number, node in enumerate(calls):
            node.tag = ["first", "second"][number * 2 // len(calls)]
        split, names = module(lib, "fx.passes.split_utils").split_by_tags(
            traced, ["first", "second"], return_fqn_mapping=True, return_tuple=return_tuple
        )
        assert values(split(*inputs)) == values(net(*inputs))
        return _code(split), names

    expect_same(program)


@pytest.mark.parametrize("tags", [{"sin": "a"}, {"sin": "b", "cos": "a"}])
def test_split_by_tags_refuses(tags: dict[str, str]) -> None:
    def program(lib: Any) -> Any:
        traced = lib.fx.symbolic_trace(lambda x: x.sin().cos())
        for node in traced.graph.nodes:
            if node.name in tags:
                node.tag = tags[node.name]
        return module(lib, "fx.passes.split_utils").split_by_tags(traced, ["a", "b"])

    assert outcome(program, torch) == "AssertionError"
    expect_same(program)


# -- partitions ------------------------------------------------------------------------------------


def _supports(lib: Any, kinds: str) -> Any:
    support = module(lib, "fx.passes.operator_support")
    return support.create_op_support(
        lambda modules, node: (
            node.op in ("call_function", "call_method", "call_module")
            and any(kind in str(node.target) for kind in kinds.split())
        )
    )


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    "kinds", ["sin add", "cos add mul", "sin cos", "sin", "tan add", "getitem"]
)
def test_partitions(kinds: str, single: bool) -> None:
    def program(lib: Any) -> Any:
        def f(x, y):
            a = lib.sin(x) + lib.cos(y)
            b = lib.sin(a) * lib.cos(a)
            c, d = lib.split(b, 1)
            return lib.tan(c + d) + lib.sin(lib.tan(a)[0]), lib.sin(lib.sin(b) + 1)

        traced = lib.fx.symbolic_trace(f)
        before = lib.fx.symbolic_trace(f)
        partitioner = module(lib, "fx.passes.infra.partitioner").CapabilityBasedPartitioner(
            traced, _supports(lib, kinds), allows_single_node_partition=single
        )
        partitions = partitioner.propose_partitions()
        names = [[str(node) for node in partition.nodes] for partition in partitions]
        fused = partitioner.fuse_partitions(partitions)
        x, y = lib.linspace(0, 1, 6).reshape(2, 3), lib.ones(2, 3)
        assert values(fused(x, y)) == values(before(x, y))
        return names, _code(fused)

    expect_same(program)


@over_networks
def test_partitions_of_networks(name: str) -> None:
    def program(lib: Any) -> Any:
        traced, net, inputs = _traced(lib, name)
        partitioner = module(lib, "fx.passes.infra.partitioner").CapabilityBasedPartitioner(
            traced, _supports(lib, "relu bn conv linear norm qkv add truediv transpose sum max"),
            allows_single_node_partition=True,
        )  # fmt: skip
        fused = partitioner.partition_and_fuse()
        assert values(fused(*inputs)) == values(net(*inputs))
        return _code(fused)

    expect_same(program)


def test_operator_support() -> None:
    def program(lib: Any) -> Any:
        support = module(lib, "fx.passes.operator_support")
        traced, _, inputs = _traced(lib, "mlp")
        module(lib, "fx.passes.shape_prop").ShapeProp(traced).propagate(*inputs)
        modules = dict(traced.named_modules())
        floats, doubles = [lib.float32], [lib.float64]
        linear = f"{lib.nn.Linear.__module__}.Linear"
        relu = f"{lib.nn.ReLU.__module__}.ReLU"
        by_type = support.OperatorSupport({linear: ((floats,), {}), relu: ((doubles,), {})})
        no_names = support.OpSupports.decline_if_node_in_names({"_0"})
        no_floats = support.OpSupports.decline_if_input_dtype(lib.float32)
        supports = [
            by_type, no_names, no_floats, support.OperatorSupport({relu: None}),
            support.chain(by_type, no_names), support.any_chain(by_type, no_floats),
        ]  # fmt: skip
        nodes = [node for node in traced.graph.nodes if node.op == "call_module"]
        return [[each.is_node_supported(modules, node) for node in nodes] for each in supports]

    expect_same(program)


def test_orders() -> None:
    def program(lib: Any) -> Any:
        tools = module(lib, "fx.passes.tools_common")
        codes = []
        for sort in (tools.legalize_graph, tools.stable_topological_sort):
            traced = lib.fx.symbolic_trace(lambda x, y: (x.sin() + y.cos(), y.tan()))
            nodes = {node.name: node for node in traced.graph.nodes}
            nodes["add"].append(nodes["sin"])
            nodes["add"].append(nodes["cos"])
            codes.append(sort(traced).code)
        return codes

    expect_same(program)


def test_targets_by_name() -> None:
    def program(lib: Any) -> Any:
        traced, _, _ = _traced(lib, "attention")
        tools = module(lib, "fx.passes.tools_common")
        modules = dict(traced.named_modules())
        calls = [node for node in traced.graph.nodes if node.op.startswith("call")]
        names = [tools.get_node_target(modules, node) for node in calls]
        return [name.replace(lib.__name__, "torch") for name in names]

    expect_same(program)


# -- passes ----------------------------------------------------------------------------------------


def _replacing(lib: Any, old: Any, new: Any) -> Any:
    result = module(lib, "fx.passes.infra.pass_base").PassResult

    def replace(graph_module):
        modified = False
        for node in graph_module.graph.nodes:
            if node.target is old:
                node.target, modified = new, True
        return result(graph_module, modified)

    return replace


def test_pass_manager() -> None:
    def program(lib: Any) -> Any:
        manager = module(lib, "fx.passes.infra.pass_manager")
        to_mul = _replacing(lib, operator.add, operator.mul)
        to_sub = _replacing(lib, operator.mul, operator.sub)
        seen = []
        found = []
        for constraints in ([], [manager.this_before_that_pass_constraint(to_mul, to_sub)]):
            passes = manager.PassManager(
                [to_sub, to_mul], constraints, steps=3, run_checks_after_each_pass=True
            )
            passes.add_checks(lambda checked: seen.append(checked.code))
            result = passes(lib.fx.symbolic_trace(lambda x: x + 1))
            found.append((result.graph_module.code, result.modified, len(seen)))
        return found

    expect_same(program)


def test_passes_in_a_circle() -> None:
    def program(lib: Any) -> Any:
        manager = module(lib, "fx.passes.infra.pass_manager")
        one, two = _replacing(lib, 1, 2), _replacing(lib, 2, 1)
        constrain = manager.this_before_that_pass_constraint
        return manager.PassManager([one, two], [constrain(one, two), constrain(two, one)])(None)

    assert outcome(program, torch) == "RuntimeError"
    expect_same(program)


def test_a_pass_that_fails_is_named() -> None:
    manager = module(tlc, "fx.passes.infra.pass_manager")

    def nothing(graph_module):
        return None

    passes = manager.PassManager([manager.pass_result_wrapper(nothing), nothing])
    with pytest.raises(Exception, match=r"running the 'nothing' pass after .*: \['nothing'\]"):
        passes(tlc.fx.symbolic_trace(lambda x: x))
    with pytest.raises(TypeError, match="only take in one variable"):
        passes.add_checks(lambda a, b: None)


def test_older_pass_manager() -> None:
    def program(lib: Any) -> Any:
        passes = module(lib, "fx.passes.pass_manager")

        def append(values):
            values.append(len(values))

        def double(values):
            return values * 2

        looped = passes.loop_pass(double, n_iter=2)
        grown = passes.loop_pass(double, predicate=lambda values: len(values) < 20)
        appended = passes.inplace_wrapper(passes.log_hook(append))
        constraint = passes.these_before_those_pass_constraint(append, double)
        manager = passes.PassManager([appended, looped, grown], [constraint])
        first = manager([5])
        manager.remove_pass(["append"])
        manager.add_pass(appended)
        try:
            return first, manager([5])
        except RuntimeError:
            return first, "RuntimeError"

    assert outcome(program, torch)[1] == "RuntimeError"
    expect_same(program)


def test_equal_calls_are_done_once() -> None:
    def program(lib: Any) -> Any:
        def f(x):
            a, b = lib.sin(x) + 1, lib.sin(x) + 1
            return a * b + lib.cat([a, b], dim=0) + lib.cat([b, a], dim=0) + (x + 1) + (x + 1)

        cse = module(lib, "fx.passes.dialect.common.cse_pass")
        result = cse.CSEPass()(lib.fx.symbolic_trace(f))
        again = cse.CSEPass()(result.graph_module)
        return result.graph_module.code, result.modified, again.modified

    expect_same(program)


def test_items_of_annotated_sequences() -> None:
    def program(lib: Any) -> Any:
        found = []
        for kind in (list[int], tuple[int, str], tuple[float, ...], None, lib.Tensor):
            traced = lib.fx.symbolic_trace(lambda x: x[1])
            next(iter(traced.graph.nodes)).type = kind
            module(lib, "fx.passes.annotate_getitem_nodes").annotate_getitem_nodes(traced.graph)
            found.append(str([n.type for n in traced.graph.nodes if n.name == "getitem"]))
        return found

    expect_same(program)


def test_attributes_for_lowering() -> None:
    def program(lib: Any) -> Any:
        fetch = module(lib, "fx.passes.param_fetch")
        net = lib.nn.Sequential(lib.nn.Conv2d(1, 2, 3), lib.nn.BatchNorm2d(2), lib.nn.ReLU())
        traced = lib.fx.symbolic_trace(net)
        fetch.lift_lowering_attrs_to_nodes(traced)
        return [
            {name: values(value) for name, value in node.attrs_for_lowering.items()}
            for node in traced.graph.nodes
            if node.op == "call_module"
        ]

    expect_same(program)


def test_targets_are_replaced() -> None:
    def program(lib: Any) -> Any:
        traced = lib.fx.symbolic_trace(lambda x: lib.relu(x + 1).relu())
        change = module(lib, "fx.passes.graph_manipulation").replace_target_nodes_with
        change(traced, "call_function", operator.add, "call_function", operator.mul)
        change(traced, "call_method", "relu", "call_method", "sin")
        return traced.code

    expect_same(program)


# -- layers ----------------------------------------------------------------------------------------


@over_networks
def test_fuse(name: str) -> None:
    def program(lib: Any) -> Any:
        net, inputs = NETWORKS[name](lib)
        fused = module(lib, "fx.experimental.optimization").fuse(net)
        assert net.state_dict().keys() == NETWORKS[name](lib)[0].state_dict().keys()
        return fused.code, sorted(fused.state_dict()), values(fused(*inputs))

    expect_same(program)


def test_fuse_in_training_is_refused() -> None:
    def program(lib: Any) -> Any:
        net = lib.nn.Sequential(lib.nn.Conv2d(1, 1, 1), lib.nn.BatchNorm2d(1))
        return module(lib, "fx.experimental.optimization").fuse(net)

    assert isinstance(outcome(program, torch), str)
    expect_same(program)


def test_remove_dropout() -> None:
    def program(lib: Any) -> Any:
        net, inputs = NETWORKS["mlp"](lib)
        without = module(lib, "fx.experimental.optimization").remove_dropout(net.train())
        return without.code, values(without(*inputs))

    expect_same(program)


def test_extract_subgraph() -> None:
    def program(lib: Any) -> Any:
        traced, net, inputs = _traced(lib, "mlp")
        nodes = list(traced.graph.nodes)
        extract = module(lib, "fx.experimental.optimization").extract_subgraph
        part = extract(net, nodes[1:3], nodes[:1], nodes[2:3])
        return part.code, values(part(*inputs))

    expect_same(program)
