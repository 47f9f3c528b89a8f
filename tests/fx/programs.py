"""Programs that trace, change and run graphs, for either library; each gives what it saw."""

from __future__ import annotations

import copy
import importlib
import math
import operator
from collections import namedtuple
from dataclasses import dataclass
from types import FunctionType
from typing import Any

Pair = namedtuple("Pair", "left right")


@dataclass
class Box:
    value: Any
    size: int


def module(lib: Any, name: str) -> Any:
    return importlib.import_module(f"{lib.__name__}.{name}")


def texts(traced: Any) -> list[str]:
    """A traced module's graph and code."""
    return [str(traced.graph), traced.code]


def error(function: Any, *args: Any, **kwargs: Any) -> tuple[str, str]:
    """The type and the text of what a call raises."""
    try:
        function(*args, **kwargs)
    except Exception as raised:
        return type(raised).__name__, str(raised)
    return "", ""


def numbers(values: Any) -> Any:
    """Tensors as lists."""
    if isinstance(values, (tuple, list)):
        return [numbers(each) for each in values]
    if isinstance(values, dict):
        return {key: numbers(each) for key, each in values.items()}
    return values.tolist() if hasattr(values, "tolist") else values


def model(lib: Any) -> Any:
    """A module with parameters, a buffer and children."""
    nn = lib.nn

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(4)

        def forward(self, x, *, scale=2):
            return self.norm(x) * scale

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.weight = nn.Parameter(lib.ones(3, 4))
            self.layers = nn.Sequential(nn.ReLU(), Inner(), nn.Linear(4, 2))
            self.register_buffer("offset", lib.ones(2))
            self.constant = lib.tensor([1.0, 2.0])

        def forward(self, x, flag=None):
            x = self.linear(x + self.weight)
            y = self.layers(x) + self.offset
            return (y * self.constant).sum(dim=-1), {"all": y, "rows": y.shape[0]}

    lib.manual_seed(0)
    return Model().eval()


# ---------------------------------------------------------------------------------- what is noted


def functions_of_torch(lib: Any) -> list[str]:
    c = lib.ones(3)

    def f(x, y):
        return (
            lib.add(c, x), lib.add(x, other=y), lib.where(x > 0, c, y), lib.full((2,), x),
            lib.arange(x.size(0)), lib.zeros(x.size(0)), lib.ones_like(x), lib.cat([c, x]),
            lib.stack((x, y), dim=1), lib.multiply(x, y), lib.absolute(x), lib.clip(x, 0, 1),
            lib.concat([x, y]), lib.concatenate([x]), lib.sigmoid(x), lib.relu(x),
            lib.softmax(x, 1), lib.max_pool2d(x, 2), lib.layer_norm(x, (3,)), lib.bmm(x, y),
            lib.matmul(c, x), lib.sum(x, dim=1), lib.max(x), lib.topk(x, 2), lib.flatten(x, 1),
            lib.permute(x, (1, 0)), lib.inverse(x), lib.qr(x), lib.svd(x), lib.neg(x),
            lib.unsqueeze(x, 0), lib.tanh(x), lib.exp(x), lib.rsqrt(x), lib.outer(x, y),
        )  # fmt: skip

    return texts(lib.fx.symbolic_trace(f))


def functions_of_functional(lib: Any) -> list[str]:
    F = lib.nn.functional
    c = lib.ones(3)

    def f(x, y):
        return (
            F.relu(x), F.relu(x, inplace=True), F.gelu(x), F.gelu(x, approximate="tanh"),
            F.softmax(x, 1), F.softmax(x, dim=-1), F.log_softmax(x, dim=1), F.sigmoid(x),
            F.tanh(x), F.dropout(x, 0.3), F.dropout(x, p=0.3, training=False), F.linear(x, y),
            F.conv2d(x, y, padding=1), F.max_pool2d(x, 2), F.max_pool2d(x, 2, stride=1),
            F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1), F.interpolate(x, scale_factor=2),
            F.scaled_dot_product_attention(x, x, y), F.pad(x, (1, 1)), F.layer_norm(x, (3,)),
            F.batch_norm(x, c, c), F.group_norm(x, 2), F.normalize(x), F.one_hot(x),
            F.cross_entropy(x, y), F.mse_loss(x, y), F.l1_loss(x, y), F.embedding(x, y),
            F.relu6(x), F.hardtanh(x), F.elu(x), F.silu(x), F.mish(x), F.logsigmoid(x),
            F.threshold(x, 1, 2), F.unfold(x, 2), F.grid_sample(x, y), F.cosine_similarity(x, y),
            F.leaky_relu(x, 0.2), F.softplus(x), F.glu(x), F.prelu(x, y), F.pixel_shuffle(x, 2),
        )  # fmt: skip

    return texts(lib.fx.symbolic_trace(f))


def functions_in_python(lib: Any) -> list[str]:
    def f(x, y):
        return (
            lib.einsum("ij,jk->ik", x, y), lib.einsum("ij,jk->ik", [x, y]), lib.split(x, 2),
            lib.norm(x), lib.meshgrid(x, y), lib.meshgrid(x, y, indexing="ij"),
            lib.broadcast_tensors(x, y), lib.tensordot(x, y, 2), lib.cdist(x, y), lib.unique(x),
            lib.stft(x, 16), lib.atleast_2d(x), lib.unravel_index(x, (2, 2)),
        )  # fmt: skip

    return texts(lib.fx.symbolic_trace(f))


def functions_of_namespaces(lib: Any) -> list[str]:
    aten = lib.ops.aten

    def f(x, y):
        return (
            lib.special.expit(x), lib.special.erf(x), lib.linalg.norm(x), lib.linalg.inv(x),
            lib.fft.fft(x), lib.fft.rfft(x, dim=0), aten.add.Tensor(x, y), aten.relu(x),
            aten.mm.default(x, y), lib.nn.init.zeros_(x), lib._assert(x.size(0) == 2, "wrong"),
        )  # fmt: skip

    return texts(lib.fx.symbolic_trace(f))


def operators(lib: Any) -> list[str]:
    c = lib.ones(3)

    def f(x, y):
        return (
            -x, ~x, +x, abs(x), x**2, 2**x, x // y, x % y, x @ y, c @ x, x << 1, x & y, x | y,
            x ^ y, x == y, x != 1, x < y, x >= y, 1 - x, 1 / x, c / x, c - x, c**x, c // x, c < x,
            c + x, c * x, 3 + x, x[1:, None], x[..., 0], x[y], 3 % x, 3 // x, 3 @ x, 1 << x,
        )  # fmt: skip

    return texts(lib.fx.symbolic_trace(f))


def methods_and_attributes(lib: Any) -> list[str]:
    c = lib.ones(3)

    def f(x, y):
        a, b = x.split(2)
        x = x.to(y.device)
        return (
            x.view(-1).t(), x.size(), x.shape[0], x.T.mT, x.dtype, x.float(), x.norm(), c.add(x),
            x.masked_fill_(y > 0, 0.5), x.sum().item(), a, b, getattr(x, "ndim"),  # noqa: B009
            x.unsqueeze(0).expand(3, -1), x.permute(*[1, 0]), x.type(lib.float64),
        )  # fmt: skip

    return texts(lib.fx.symbolic_trace(f))


def a_module(lib: Any) -> list[Any]:
    made = model(lib)
    traced = lib.fx.symbolic_trace(made)
    x = lib.arange(12.0).reshape(3, 4)
    return [
        *texts(traced),
        str(traced),
        numbers(traced(x)) == numbers(made(x)),
        sorted(traced.state_dict()),
        [str(node.meta.get("nn_module_stack", {}).keys()) for node in traced.graph.nodes],
    ]


def arguments(lib: Any) -> list[str]:
    seen: list[str] = []

    def starred(x, *args, **kwargs):
        return x + args[0] + kwargs["z"]

    def annotated(x: lib.Tensor, n: int = 3, *, key: list[int] | None = None) -> lib.Tensor:
        return x * n

    def named(values):
        return Pair(values[0], [values[1], {"k": (values[2],)}])

    def passed(x):
        return lib.stack(Pair(x, x)), lib.add(x, x, alpha=2), x.sum(dim=(0, 1)), x[Box(x, 1).size]

    for function in (starred, annotated, named, passed):
        seen += texts(lib.fx.symbolic_trace(function))
    return seen


def concrete_arguments(lib: Any) -> list[Any]:
    PH = lib.fx.PH

    def branching(x, flag, y=None):
        return x if flag else (-x if y is None else y)

    def nested(x, values):
        out = x
        for each in values.values():
            out = out + each
        return {"sum": out, "rest": [x, x]}

    seen: list[Any] = []
    for given in ({"flag": True}, {"flag": False, "y": None}):
        seen += texts(lib.fx.symbolic_trace(branching, given))
    traced = lib.fx.symbolic_trace(nested, {"values": {"a": PH, "b": PH}})
    x = lib.ones(2)
    seen += [*texts(traced), numbers(traced(x, {"a": x, "b": x}))]
    interpreter = lib.fx.Interpreter(traced)
    seen += [numbers(interpreter.run(x, {"a": x, "b": x}))]
    traced = lib.fx.symbolic_trace(branching, {"flag": False, "y": None})
    return [*seen, error(traced, x, True, None)[0], numbers(traced(x, False, None))]


def refusals(lib: Any) -> list[Any]:
    def branch(x):
        return x if x.sum() > 0 else -x

    return [
        error(lib.fx.symbolic_trace, function)
        for function in (
            branch,
            lambda x: [each for each in x],  # noqa: C416
            lambda x: len(x),
            lambda x: lib.relu(*x),
            lambda x: {x: 1}[x],
            lambda x: x.apply(object()),
        )
    ] + [module(lib, "fx.proxy").TraceError.__mro__[1].__name__]


def leaves(lib: Any) -> list[Any]:
    class Whole(lib.fx.Tracer):
        def is_leaf_module(self, m, name):
            return not isinstance(m, lib.nn.Sequential) and name != "" and "norm" not in name

    class Every(lib.fx.Tracer):
        def is_leaf_module(self, m, name):
            return False

    seen = [str(Whole().trace(model(lib))), str(Every().trace(model(lib)))]
    tracer = lib.fx.Tracer(param_shapes_constant=True)
    layer = lib.nn.Linear(2, 3)

    class Shaped(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer
            self.register_buffer("b", lib.ones(3))

        def forward(self, x):
            return x.view(self.layer.weight.shape) + self.layer.weight.size()[0] + self.b

    seen.append(str(tracer.trace(Shaped())))
    buffered = lib.fx.Tracer()
    buffered.proxy_buffer_attributes = True
    return [*seen, str(buffered.trace(Shaped())), tracer.path_of_module(layer)]


def functions_of_math(lib: Any) -> list[str]:
    def f(x, n):
        return x * math.sqrt(n) + math.floor(x.shape[0] / 2)

    return texts(lib.fx.symbolic_trace(f))


def proxyable_classes(lib: Any) -> list[str]:
    class Both(metaclass=lib.fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def total(self):
            return self.left + self.right

    def f(x, y):
        return Both(x, y).total()

    return [str(lib.fx.symbolic_trace(f).graph).replace("builtins.", ""), Both(1, 2).total()]


# ------------------------------------------------------------------------------------------ graphs


def by_hand(lib: Any) -> list[Any]:
    fx = lib.fx
    graph = fx.Graph()
    x = graph.placeholder("x", lib.Tensor, 3)
    w = graph.get_attr("layer.weight")
    y = graph.call_function(lib.add, (x, w), {"alpha": 2}, type_expr=lib.Tensor)
    z = graph.call_method("relu", (y,))
    m = graph.call_module("0.layer", ([z, (y, 1)],))
    graph.output((m, {"k": z, "s": slice(None, 2)}))
    names = [[*map(str, node.all_input_nodes)] for node in graph.nodes]
    users = [[*map(str, node.users)] for node in graph.nodes]
    return [
        str(graph), graph.python_code("self").src, names, users, str(y.args), str(m.args),
        [node.op for node in reversed(graph.nodes)], len(graph.nodes), x < y, y.next is z,
        [*map(str, graph.find_nodes(op="call_function", target=lib.add))],
        str(graph.output_node().args), error(graph.erase_node, y), type(m.args[0]).__name__,
        error(m.args[0].append, 1)[0], error(y.kwargs.update, {})[0],
        error(graph.create_node, "call_function", "f")[0],
    ]  # fmt: skip


def names_of_nodes(lib: Any) -> list[str]:
    graph = lib.fx.Graph()
    for name in ("x", "x", "x_1", "x_3", "x", "sum", "max", "inf", "torch", "2d", "a.b", "if"):
        graph.create_node("placeholder", name)
    for function in (lib.add, lib.sum, lib.add, operator.add, operator.getitem, len):
        graph.call_function(function, (next(iter(graph.nodes)), 1))
    for method in ("relu_", "__len__", "someName", "relu_", "sum"):
        graph.call_method(method, (next(iter(graph.nodes)),))
    graph.call_function(lib.relu, (), name="relu_7")
    graph.call_function(lib.relu, (), name="relu_7")
    graph.call_function(lib.relu, ())
    return [node.name for node in graph.nodes] + [graph.python_code("self").src]


def edits(lib: Any) -> list[Any]:
    traced = lib.fx.symbolic_trace(lambda x, y: lib.relu(x + y) * 2)
    graph, seen = traced.graph, []
    for node in graph.nodes:
        if node.target is lib.relu:
            with graph.inserting_after(node):
                new = graph.call_function(lib.neg, node.args)
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    graph.lint()
    traced.recompile()
    seen += texts(traced)
    add = graph.find_nodes(op="call_function", target=operator.add)[0]
    with graph.inserting_before(add):
        ones = graph.call_function(lib.ones, (2,))
        unused = graph.call_function(lib.neg, (ones,))
    add.replace_input_with(add.args[1], ones)
    add.insert_arg(1, 7)
    add.update_arg(1, 8)
    add.update_kwarg("k", unused)
    seen += [str(graph), [*map(str, unused.users)], [*map(str, add.all_input_nodes)]]
    add.args, add.kwargs = (add.args[0], ones), {}
    seen += [graph.eliminate_dead_code(), str(graph), error(graph.lint)]
    ones.append(add.args[0])
    seen += [[*map(str, graph.nodes)], error(graph.lint)[0]]
    ones.prepend(add.args[0])
    add.name = "renamed"
    copied = copy.deepcopy(graph)
    return [*seen, str(copied), copied.owning_module is None, error(lib.fx.Graph().lint)]


def copies(lib: Any) -> list[Any]:
    one, two = [lib.fx.symbolic_trace(f).graph for f in (lambda x: x + 1, lambda x: lib.relu(x))]
    values: dict[Any, Any] = {}
    result = one.graph_copy(two, values)
    one.output(result)
    x = lib.fx.Proxy(two.find_nodes(op="placeholder")[0])
    with two.inserting_before(two.output_node()):
        y = lib.tanh(x * 2).sum(dim=0)
    two.output_node().args = ((y.node, two.output_node().args[0]),)
    return [str(one), [*map(str, values)], str(two), two.python_code("self").src]


def dead_code(lib: Any) -> list[Any]:
    def f(x):
        lib._assert(x.size(0) > 1, "few")
        x[0] = 1
        x.neg()
        lib.neg(x)
        operator.setitem(x, 0, 1)
        return x

    seen: list[Any] = [error(lib.fx.symbolic_trace, f)]

    def g(x):
        lib._assert(x.size(0) > 1, "few")
        x.neg()
        lib.neg(lib.neg(x))
        return x

    traced = lib.fx.symbolic_trace(g)
    with traced.graph.inserting_before(traced.graph.output_node()):
        x = next(iter(traced.graph.nodes))
        traced.graph.call_function(operator.setitem, (x, 0, 1))
    seen += [traced.graph.eliminate_dead_code(), str(traced.graph)]
    return [*seen, traced.graph.eliminate_dead_code()]


def code_generators(lib: Any) -> list[Any]:
    fx = lib.fx

    class Listed(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation, *, expanded_def=False):
            line = f"def forward(self, values: List[int]){maybe_return_annotation}:"
            return f"{line}\n    {', '.join(free_vars)} = values"

        def additional_globals(self):
            return [("List", list)]

        def process_inputs(self, *inputs):
            return inputs[0]

    traced = fx.symbolic_trace(lambda x, y: x + y)
    traced.graph.set_codegen(Listed())
    traced.recompile()
    one = lib.ones(2)
    seen = [
        traced.code,
        numbers(traced([one, one])),
        numbers(fx.Interpreter(traced).run([one, one])),
    ]
    traced = fx.symbolic_trace(lambda x, y: x + y)
    with traced.graph.on_generate_code(lambda before: lambda body: ["print(1)\n", *body]):
        seen.append(traced.recompile().src)
    return [*seen, traced.recompile().src, traced.graph.python_code("m", expanded_def=True).src]


def defined(names: dict[str, Any]) -> list[Any]:
    """The programs of a module."""
    return [
        value
        for name, value in names.items()
        if isinstance(value, FunctionType)
        and value.__module__ == names["__name__"]
        and name not in HELPERS
    ]


HELPERS = ("defined", "error", "model", "module", "numbers", "texts")
PROGRAMS = defined(globals())
