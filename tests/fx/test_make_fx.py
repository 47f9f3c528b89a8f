"""Functions traced into aten's operations by `make_fx`, compared with PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.fx.against_torch import expect_same, module, outcome, values
from tests.fx.networks import NETWORKS


def _make_fx(lib: Any) -> Any:
    return module(lib, "fx.experimental.proxy_tensor").make_fx


def _grad(lib: Any, loss: Any) -> Any:
    """The gradient of a function's result with respect to its first argument, by backward."""

    def gradient(x, *others):
        x = x.detach().requires_grad_()
        return lib.autograd.grad(loss(x, *others), x)[0]

    return gradient


def _created(lib: Any) -> Any:
    def created(x):
        total = lib.ones(2, dtype=lib.float32) + lib.full((2,), 3.0) + lib.linspace(0, 1, 2)
        total = total + x.new_zeros(2) + x.new_full((2,), 1.0) + lib.full_like(x, 2) + lib.eye(2)
        total = total + lib.zeros(()) + lib.scalar_tensor(2) + lib.ones_like(x) + lib.rand(2)
        total = total + lib.randn_like(x) + lib.tensor([1.0, 2.0]) + lib.empty(2)
        whole = lib.arange(2) + lib.arange(1, 3) + lib.arange(0, 4, step=2) + lib.randperm(2)
        whole = whole + lib.zeros_like(x, dtype=lib.int64) + lib.randint(0, 3, (2,))
        return total, whole + lib.randint(3, size=(2,)), lib.tril_indices(2, 2)

    return created


def _in_place(lib: Any) -> Any:
    def written(x):
        y = x.clone()
        y.add_(1).mul_(x)
        y[:, 1:].copy_(x[:, :2])
        return y

    return written


def _random_writes(lib: Any) -> Any:
    return lambda x: x.clone().uniform_(0.0, 2.0).normal_() + lib.bernoulli(x.sigmoid())


#: Programs whose graphs have the very nodes of PyTorch's: (function of the library, shapes).
SAME = {
    "pointwise": (lambda t: lambda x: (x.sin() + 1) * x.exp() / 2 - x.relu().tanh(), [(2, 3)]),
    "results": (lambda t: lambda x: {"a": [x, x + 1], "b": None, "c": (3, x)}, [(2,)]),
    "items": (lambda t: lambda x: (x.max(1), t.split(x, 1)), [(2, 3)]),
    "views": (lambda t: lambda x: x[0, 1:].view(2).expand(3, 2).t().unsqueeze(0), [(2, 3)]),
    "joined": (lambda t: lambda x: (t.cat([x, x], 1), t.stack([x, x]).repeat(1, 2, 1)), [(2, 3)]),
    "reductions": (lambda t: lambda x: x.sum() + x.mean(1) + x.amax(0, keepdim=True), [(3, 3)]),
    "dtypes": (lambda t: lambda x: x.double().to(t.int32).float(), [(2,)]),
    "products": (lambda t: lambda x, y: x @ y + t.nn.functional.linear(x, y.t()), [(2, 3), (3, 2)]),
    "creations": (_created, [(2,)]),
    "in place": (_in_place, [(2, 3)]),
    "random writes": (_random_writes, [(2,)]),
    "number": (lambda t: lambda x: t.tensor(2.5).item() * x, [(2,)]),
    "gradient": (lambda t: _grad(t, lambda x: (x * x).sum()), [(2,)]),
    "gradient of a layer": (
        lambda t: _grad(t, lambda x, w: (x.sin() @ w).sigmoid().sum()), [(2, 3), (3, 2)]
    ),
    "gradient in place": (lambda t: _grad(t, lambda x: (x * 2).mul_(x).sum()), [(3,)]),
}  # fmt: skip


def _lines(graph: Any) -> list[str]:
    """The calls of a graph; values that are detached for a later backward are PyTorch's alone."""
    found = []
    for node in graph.graph.nodes:
        target = str(node.target).replace("tensorflow_lite_clone", "torch")
        if "detach" not in target:
            found.append(f"{node.op} {target} {_shown(node.args)} {_shown(node.kwargs)}")
    return found


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return str({key: _shown(each) for key, each in value.items()})
    if hasattr(value, "op"):
        while "detach" in str(value.target):
            value = value.args[0]
        return f"%{value.name.partition('_')[0]}"
    return str(value)


@pytest.mark.parametrize("name", SAME)
def test_graphs(name: str) -> None:
    make, shapes = SAME[name]

    def program(lib: Any) -> Any:
        graph = _make_fx(lib)(make(lib))(*[lib.ones(shape) for shape in shapes])
        return _lines(graph)

    expect_same(program)


def test_code() -> None:
    def program(lib: Any) -> Any:
        net = lib.nn.Linear(3, 2)
        buffer = lib.ones(2)

        def f(tree, y):
            return net(tree["x"][0]) * buffer + tree["y"], y

        graph = _make_fx(lib)(f)({"x": [lib.ones(2, 3)], "y": lib.ones(2)}, 3)
        names = sorted([*dict(graph.named_parameters()), *dict(graph.named_buffers())])
        again = _make_fx(lib)(graph)({"x": [lib.ones(2, 3)], "y": lib.ones(2)}, 3)
        return graph.code, names, _lines(again), graph.__class__.__name__

    expect_same(program)


def test_values_are_noted() -> None:
    def program(lib: Any) -> Any:
        graph = _make_fx(lib)(lambda x: x.t().max(1))(lib.ones(2, 3))
        return [
            (
                node.name,
                getattr(node.meta.get("tensor_meta"), "stride", None),
                str(node.meta.get("val")),
            )
            for node in graph.graph.nodes
        ]

    expect_same(program)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str) -> None:
    net, inputs = NETWORKS[name](tlc)
    graph = _make_fx(tlc)(net)(*inputs)
    others = [x * 0.5 + 1 for x in inputs]
    assert values(graph(*others)) == values(net(*others))
    assert not [node for node in graph.graph.nodes if node.op == "call_module"]


def _step(lib: Any, x: Any, w: Any) -> Any:
    w = w.detach().clone().requires_grad_()
    optimizer = lib.optim.SGD([w], 0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        ((x @ w) ** 2).mean().backward()
        optimizer.step()
    return w.detach()


F = tlc.nn.functional
_LAYERS = {
    "lstm": tlc.nn.LSTM(3, 4, 2, bidirectional=True),
    "gru": tlc.nn.GRU(3, 4),
    "attention": tlc.nn.MultiheadAttention(4, 2),
    "encoder": tlc.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
}


def _of_parameters(name: str) -> Any:
    layer = _LAYERS[name]

    def gradients(x):
        y = layer(x, x, x) if name == "attention" else layer(x)
        y = y[0] if isinstance(y, tuple) else y
        return tlc.autograd.grad(y.pow(2).sum(), list(layer.parameters()))

    return gradients


def _views(x: Any) -> Any:
    total = x[1:, ::2].pow(2).sum() + x[0].sum() * x[-1].prod() + x.T[None, 1:].exp().sum()
    total = total + x.unfold(0, 2, 1).pow(2).sum() + x.diagonal().prod() + x[..., 1].pow(3).sum()
    return total + x.chunk(2)[1].prod() + x.as_strided((2, 2), (1, 2)).prod()


def _written(x: Any) -> Any:
    y = (x * 2).mul_(x)
    y[0].add_(1)
    return y.exp_().sum()


def _chosen(x: Any) -> Any:
    total = x.max(1)[0] + x.amin(1) + x.sort(1)[0][:, 0] + x.topk(1)[0][:, 0]
    return (total + tlc.where(x > 0, x**2, x**3).sum(1)).sum()


#: Gradients whose graphs must hold for other inputs: nothing may have become a constant.
GRADIENTS = {
    "views": (_views, [(4, 3)]),
    "in place": (_written, [(4, 3)]),
    "chosen": (_chosen, [(4, 3)]),
    "norms": (lambda x, w: F.layer_norm(x, (3,), w, w).pow(3).sum(), [(4, 3), (3,)]),
    "batch norm": (
        lambda x, w: F.batch_norm(x, None, None, w, w, True).pow(3).sum(), [(4, 3), (3,)]
    ),
    "group norm": (lambda x, w: F.group_norm(x, 1, w, w).pow(3).sum(), [(2, 3, 4), (3,)]),
    "linear": (lambda w, x: F.linear(x.transpose(0, 1), w).pow(2).sum(), [(5, 3), (2, 4, 3)]),
    "products": (lambda y, x: (x @ y).pow(2).sum(), [(5, 3, 2), (2, 1, 4, 3)]),
    "convolution": (
        lambda w, x: F.conv2d(x, w, padding=1).pow(2).sum(), [(4, 3, 3, 3), (1, 3, 5, 5)]
    ),
    "pools": (
        lambda x: F.max_pool2d(x, 2).pow(3).sum() + F.adaptive_max_pool2d(x, 3).pow(3).sum(),
        [(1, 2, 6, 6)],
    ),
    "resampled": (lambda x: F.interpolate(x, size=7, mode="bilinear").pow(2).sum(), [(1, 2, 4, 4)]),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True).pow(3).sum(),
        [(1, 2, 5, 4)],
    ),
    "losses": (
        lambda x, y: F.huber_loss(x, y) + F.mse_loss(x, y) + F.cross_entropy(x, y.softmax(1)),
        [(4, 3), (4, 3)],
    ),
    "linalg": (lambda x: tlc.linalg.inv(x @ x.T + tlc.eye(4)).sum() + x.norm(), [(4, 3)]),
}  # fmt: skip


def _expect_to_hold(function: Any, shapes: list[tuple]) -> None:
    tlc.manual_seed(0)
    graph = _make_fx(tlc)(function)(*[tlc.randn(shape) for shape in shapes])
    others = [tlc.randn(shape) for shape in shapes]
    for got, wanted in zip(_tensors(graph(*others)), _tensors(function(*others)), strict=True):
        assert got.allclose(wanted, atol=1e-5)


def _tensors(result: Any) -> Any:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("way", ["backward", "func"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_hold_for_other_inputs(name: str, way: str) -> None:
    loss, shapes = GRADIENTS[name]
    _expect_to_hold(_grad(tlc, loss) if way == "backward" else tlc.func.grad(loss), shapes)


@pytest.mark.parametrize("name", _LAYERS)
def test_gradients_of_layers_hold_for_other_inputs(name: str) -> None:
    shape = (2, 5, 4) if name in ("attention", "encoder") else (5, 2, 3)
    _expect_to_hold(_of_parameters(name), [shape])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tlc.func.grad(lambda x: tlc.func.grad(lambda x: (x**3).sum())(x).sum())(x),
        lambda x: tlc.func.jvp(tlc.sin, (x,), (tlc.ones_like(x),)),
        lambda x: tlc.func.vjp(tlc.sin, x)[1](tlc.ones_like(x)),
        lambda x: _step(tlc, x, tlc.ones(3, 2)),
    ],
    ids=["second order", "jvp", "vjp", "steps"],
)
def test_transforms_hold_for_other_inputs(function: Any) -> None:
    _expect_to_hold(function, [(4, 3)])


def test_indices_and_targets_are_inputs() -> None:
    def f(x, i, j):
        loss = tlc.func.grad(lambda x: F.cross_entropy(x, i))(x)
        y = x.clone()
        y[i, j] = 0.0
        y[x > 1] = 5.0
        return loss + x[i, j].sum() + F.embedding(j, x) + x.index_add(0, i, x) + y

    first = tlc.tensor([0, 1, 2, 0]), tlc.tensor([1, 2, 0, 0])
    second = tlc.tensor([2, 2, 1, 1]), tlc.tensor([3, 0, 2, 1][::-1]) % 3
    x = tlc.randn(4, 3)
    graph = _make_fx(tlc)(f)(x, *first)
    assert graph(x * 2, *second).allclose(f(x * 2, *second))


def test_decompositions() -> None:
    def program(lib: Any) -> Any:
        def silu(x):
            return x * lib.sigmoid(x)

        table = {lib.ops.aten.silu.default: silu}
        f = lib.nn.functional.silu
        return _lines(_make_fx(lib)(lambda x: f(x + 1), table)(lib.ones(2)))

    expect_same(program)


@pytest.mark.parametrize("mode", ["real", "fake", "other"])
def test_tracing_modes(mode: str) -> None:
    def program(lib: Any) -> Any:
        return _lines(_make_fx(lib)(lambda x: x.sin(), tracing_mode=mode)(lib.ones(2)))

    expect_same(program)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 1 if x.sum() > 0 else x,
        lambda x: x * x.sum().item(),
        lambda x: x[: int(x.sum())],
        lambda x, y: x,
    ],
    ids=["branch", "item", "int", "arguments"],
)
def test_what_cannot_be_traced(function: Any) -> None:
    def program(lib: Any) -> Any:
        return _make_fx(lib)(function)(lib.ones(2))

    assert outcome(program, torch) == "RuntimeError"
    expect_same(program)


def test_modes_that_trace() -> None:
    proxy_tensor = module(tlc, "fx.experimental.proxy_tensor")
    found = []

    def f(x):
        found.append(proxy_tensor.get_proxy_mode())
        with proxy_tensor.disable_proxy_modes_tracing():
            found.append(proxy_tensor.get_proxy_mode())
            constant = tlc.ones(2) + 1
        return x * constant

    graph = _make_fx(tlc)(f)(tlc.ones(2))
    assert isinstance(found[0], proxy_tensor.ProxyTorchDispatchMode) and found[1] is None
    assert [str(n.target) for n in graph.graph.nodes if n.op == "call_function"] == [
        "aten.mul.Tensor"
    ]
    assert proxy_tensor.get_proxy_mode() is None


def test_isolated_graph() -> None:
    def program(lib: Any) -> Any:
        proxy_tensor = module(lib, "fx.experimental.proxy_tensor")
        args, kwargs = (lib.ones(2),), {"y": lib.ones(2)}
        return _lines(proxy_tensor.get_isolated_graphmodule(lambda x, y: x.sin() + y, args, kwargs))

    expect_same(program)


def test_graphs_are_decomposed_by_an_interpreter() -> None:
    proxy_tensor = module(tlc, "fx.experimental.proxy_tensor")
    traced = tlc.fx.symbolic_trace(lambda x: F.silu(x) + 1)
    graph = tlc.fx.Graph()
    table = {tlc.ops.aten.silu.default: lambda x: x * tlc.sigmoid(x)}
    proxy_tensor.DecompositionInterpreter(traced, graph, table).run(tlc.ones(2))
    called = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    assert called == ["aten.sigmoid.default", "aten.mul.Tensor", "aten.add.Tensor"]
    x = tlc.randn(3)
    assert tlc.fx.GraphModule(traced, graph)(x).allclose(F.silu(x) + 1)
