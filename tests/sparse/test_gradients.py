"""Sparse gradients end to end: what leaves, hooks and `autograd.grad` get, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.sparse.against_torch import (
    LIBRARIES,
    described,
    device_of,
    matrix,
    outcome,
    rows,
    same,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of beta state


class Sides:
    """What programs are made of, in one library."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.F, self.place = lib, lib.nn.functional, device_of(lib)
        self.w = lib.nn.Parameter(self.dense())

    def dense(self) -> Any:
        return ((self.lib.arange(12.0) + 1) / 8).reshape(6, 2).to(self.place)

    def indices(self, *values: Any) -> Any:
        return self.lib.tensor(values, dtype=self.lib.int64, device=self.place)

    def look(self, *indices: Any, weight: Any = None, **options: Any) -> Any:
        """The rows at `indices`, by an embedding with a sparse gradient."""
        weight = self.w if weight is None else weight
        return self.F.embedding(self.indices(*indices), weight, sparse=True, **options)

    def bag(self, mode: str, offsets: Any = (0, 2, 2, 5), **options: Any) -> Any:
        flat = self.indices(5, 1, 1, 0, 5, 2)
        return self.F.embedding_bag(
            flat, self.w, self.indices(*offsets), mode=mode, sparse=True, **options
        )


def after(*losses: Callable[[Sides], Any]) -> Callable[[Any], Any]:
    """The gradient of w after a backward pass of each of `losses`."""

    def run(lib: Any) -> Any:
        s = Sides(lib)
        for loss in losses:
            loss(s).backward()
        return s.w.grad

    return run


def through(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return after(lambda s: s.look(5, 1, 1, 0, weight=change(s.w)).pow(2).sum())


def with_weights(lib: Any) -> Any:
    s = Sides(lib)
    scales = (lib.arange(6.0) + 1).to(s.place).requires_grad_()
    s.bag("sum", per_sample_weights=scales).pow(2).sum().backward()
    return s.w.grad, scales.grad


def gathered(dim: int) -> Callable[[Any], Any]:
    def run(lib: Any) -> Any:
        s = Sides(lib)
        index = s.indices([0, 1], [1, 0], [1, 1]) if dim else s.indices([5, 0], [5, 2])
        lib.gather(s.w, dim, index, sparse_grad=True).pow(2).sum().backward()
        return s.w.grad

    return run


def hooked(lib: Any) -> Any:
    s, seen = Sides(lib), []
    s.w.register_hook(lambda g: seen.append(described(g, lib)) or g * 2)
    s.w.register_post_accumulate_grad_hook(lambda p: seen.append(described(p.grad, lib)))
    s.look(5, 1, 1).pow(2).sum().backward()
    return seen, s.w.grad


def replaced(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(lib: Any) -> Any:
        s = Sides(lib)
        s.w.register_hook(hook)
        s.look(5, 1).sum().backward()
        return s.w.grad

    return run


def retained(lib: Any) -> Any:
    s = Sides(lib)
    v = s.w * 3
    v.retain_grad()
    for _ in range(2):
        (s.look(5, 1, 1, weight=v).pow(2).sum()).backward(retain_graph=True)
    return v.grad, s.w.grad


def second(lib: Any) -> Any:
    """A gradient of the gradient; in the graph the places come in the same order."""
    s = Sides(lib)
    (g,) = lib.autograd.grad(s.look(5, 1, 1).pow(3).sum(), s.w, create_graph=True)
    (twice,) = lib.autograd.grad(g.to_dense().pow(2).sum(), s.w)
    return g, g.requires_grad, twice


def coalesced(lib: Any) -> Any:
    s = Sides(lib)
    (g,) = lib.autograd.grad(s.look(5, 1, 1).pow(3).sum(), s.w, create_graph=True)
    return lib.autograd.grad(g.coalesce().values().pow(2).sum(), s.w)


def kept_in_the_graph(lib: Any) -> Any:
    s = Sides(lib)
    for loss in (s.look(5, 1), s.look(1, 2), s.w):
        loss.pow(2).sum().backward(create_graph=True)
    return s.w.grad


def returned(lib: Any) -> Any:
    """A gradient that a function of the program makes, and one that begins the pass."""

    class Rows(lib.autograd.Function):
        @staticmethod
        def forward(ctx, w, index):
            ctx.save_for_backward(index)
            ctx.size = w.shape
            return w[index]

        @staticmethod
        def backward(ctx, g):
            (index,) = ctx.saved_tensors
            return lib.sparse_coo_tensor(index[None], g, ctx.size), None

    s = Sides(lib)
    Rows.apply(s.w, s.indices(4, 4, 1)).pow(2).sum().backward()
    found, s.w.grad = s.w.grad, None
    (s.w * 3).backward(rows(lib, [5, 1]))
    return found, s.w.grad


def assigned(lib: Any) -> Any:
    s = Sides(lib)
    s.w.grad = rows(lib, [5, 1])
    s.look(1).sum().backward()
    return s.w.grad


def misassigned(lib: Any) -> Any:
    Sides(lib).w.grad = lib.sparse_coo_tensor([[1]], [[1.0, 2.0]], (5, 2)).to(device_of(lib))


def the_same_object(lib: Any) -> Any:
    """Later gradients are added to the one that is there; a dense one replaces a sparse one."""
    s = Sides(lib)
    s.look(5, 1).sum().backward()
    first = s.w.grad
    s.look(1).sum().backward()
    kept = s.w.grad is first
    s.w.sum().backward()
    dense = s.w.grad
    s.look(2).sum().backward()
    return kept, dense is first, s.w.grad is dense, s.w.grad


def anomalous(lib: Any) -> Any:
    s = Sides(lib)
    with lib.autograd.set_detect_anomaly(True):
        s.look(5, 1).pow(2).sum().backward()
    return s.w.grad


def zeroed(lib: Any) -> Any:
    s = Sides(lib)
    s.look(5, 1).sum().backward()
    lib.optim.SGD([s.w], lr=0.1).zero_grad(set_to_none=False)
    return s.w.grad


def clipped(call: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def run(lib: Any) -> Any:
        s = Sides(lib)
        s.look(5, 1).sum().backward()
        call(lib.nn.utils, s.w)
        return s.w.grad

    return run


def modules(lib: Any) -> Any:
    lib.manual_seed(0)
    table = lib.nn.Embedding(5, 2, padding_idx=1, sparse=True)
    bag = lib.nn.EmbeddingBag(5, 2, mode="sum", sparse=True, include_last_offset=True)
    table, bag = table.to(device_of(lib)), bag.to(device_of(lib))
    s = Sides(lib)
    y = bag(s.indices(3, 3, 0), s.indices(0, 2, 3)) * table(s.indices(1, 4))
    y.pow(2).sum().backward()
    return table.weight.grad, bag.weight.grad, repr(table), repr(bag)


def of_a_sparse_leaf(lib: Any) -> Any:
    a = lib.sparse_coo_tensor([[2, 0, 2], [1, 3, 1]], [1.0, 2.0, 3.0], (3, 6))
    a = a.to(device_of(lib)).requires_grad_()
    x = Sides(lib).dense()
    (g,) = lib.autograd.grad(lib.sparse.mm(a, x).pow(2).sum(), a)
    lib.sparse.mm(a, x).pow(2).sum().backward()
    return g, a.grad


def in_another_dtype(lib: Any) -> Any:
    s, table = Sides(lib), lib.nn.Embedding(6, 2, sparse=True).to(device_of(lib))
    table(s.indices(5, 1, 1)).sum().backward()
    return table.double().weight.grad, table.weight.grad.dtype is lib.float64


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "expanded": after(lambda s: s.look(5, 1, 1).sum()),
    "of any shape": after(lambda s: s.look([5, 1], [1, 0]).pow(2).sum()),
    "no index": after(lambda s: s.look().sum()),
    "one index": after(lambda s: s.look(3).pow(2).sum()),
    "int32": after(
        lambda s: s.F.embedding(s.indices(4, 1).int(), s.w, sparse=True).pow(2).sum()
    ),
    "padding": after(lambda s: s.look(5, 1, 1, 0, padding_idx=1).pow(2).sum()),
    "negative padding": after(lambda s: s.look(5, 1, 1, 0, padding_idx=-1).pow(2).sum()),
    "by frequency": after(lambda s: s.look(5, 1, scale_grad_by_freq=True).sum()),
    "max_norm": after(lambda s: s.look(5, 1, 1, max_norm=1.0).pow(2).sum()),
    "two passes": after(
        lambda s: s.look(5, 1, 1).sum(), lambda s: s.look(4, 5).sum(), lambda s: s.look(1).sum()
    ),
    "two passes, merged": after(
        lambda s: s.look(5, 1, 1).pow(2).sum(), lambda s: s.look(4, 5, 1).pow(2).sum()
    ),
    "two uses": after(lambda s: s.look(5, 1, 1).sum() + s.look(4, 5).sum() * 2),
    "two uses, merged": after(
        lambda s: s.look(5, 1, 1).pow(2).sum() + s.look(4, 5).pow(3).sum()
    ),
    "three uses": after(
        lambda s: s.look(5).pow(2).sum() + s.look(4, 5).pow(3).sum() + s.look(1, 0).sum()
    ),
    "and dense": after(lambda s: s.look(5, 1, 1).sum() + s.w.pow(2).sum()),
    "dense and": after(lambda s: s.w.pow(2).sum() + s.look(5, 1, 1).sum()),
    "then dense": after(lambda s: s.look(5, 1, 1).sum(), lambda s: s.w.pow(2).sum()),
    "after dense": after(lambda s: s.w.pow(2).sum(), lambda s: s.look(5, 1, 1).sum()),
    "through a product": through(lambda w: w * 2),
    "through a product with itself": through(lambda w: w * w),
    "through a sum": through(lambda w: w + 1),
    "through a sum with itself": through(lambda w: w + w),
    "through a quotient": through(lambda w: w / 3),
    "through neg": through(lambda w: -w),
    "through clone": through(lambda w: w.clone()),
    "through exp": through(lambda w: w.exp()),
    "bag, sum": after(lambda s: s.bag("sum").pow(2).sum()),
    "bag, mean": after(lambda s: s.bag("mean").pow(2).sum()),
    "bag, max": after(lambda s: s.bag("max").pow(2).sum()),
    "bag, padding": after(lambda s: s.bag("mean", padding_idx=1).pow(2).sum()),
    "bag, last offset": after(
        lambda s: s.bag("sum", (0, 2, 2, 6), include_last_offset=True).pow(2).sum()
    ),
    "bag, by frequency": after(lambda s: s.bag("sum", scale_grad_by_freq=True).sum()),
    "bag, max by frequency": after(lambda s: s.bag("max", scale_grad_by_freq=True).sum()),
    "bag, weights": with_weights,
    "bag, rows": after(
        lambda s: s.F.embedding_bag(s.indices([5, 1], [1, 0]), s.w, sparse=True).pow(2).sum()
    ),
    "gather": gathered(0),
    "gather along rows": gathered(1),
    "hooks": hooked,
    "a hook that replaces": replaced(lambda g: g.coalesce()),
    "a hook that makes it dense": replaced(lambda g: g.to_dense()),
    "retain_grad": retained,
    "create_graph": second,
    "create_graph, coalesced": coalesced,
    "create_graph, accumulated": kept_in_the_graph,
    "grad": lambda lib: (lambda s: lib.autograd.grad(s.look(5, 1).pow(2).sum(), s.w))(Sides(lib)),
    "of a function": returned,
    "assigned": assigned,
    "misassigned": misassigned,
    "the same object": the_same_object,
    "anomaly detection": anomalous,
    "zero_grad": zeroed,
    "clip_grad_norm_": clipped(lambda utils, w: utils.clip_grad_norm_([w], 0.5)),
    "clip_grad_value_": clipped(lambda utils, w: utils.clip_grad_value_([w], 0.5)),
    "modules": modules,
    "of a sparse leaf": of_a_sparse_leaf,
    "in another dtype": in_another_dtype,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str) -> None:
    mine, reference = (outcome(lib, PROGRAMS[name]) for lib in LIBRARIES)
    same(mine, reference, 2e-6)


DENSE_HERE = {
    "view": lambda w: w.view(6, 2),
    "slice": lambda w: w[:],
    "tanh": lambda w: w.tanh(),
    "double": lambda w: w.double(),
    "repeat": lambda w: w.repeat(2, 1),
}


@pytest.mark.parametrize("name", DENSE_HERE)
def test_gradients_without_a_sparse_form_are_dense(name: str) -> None:
    """The gradient is the dense one's all the same."""
    assert outcome(torch, through(DENSE_HERE[name])) is RuntimeError
    s = Sides(tlc)
    s.look(5, 1, 1, 0, weight=DENSE_HERE[name](s.w)).pow(2).sum().backward()
    reference = Sides(torch)
    index = reference.indices(5, 1, 1, 0)
    weight = DENSE_HERE[name](reference.w)
    torch.nn.functional.embedding(index, weight).pow(2).sum().backward()
    assert s.w.grad is not None and reference.w.grad is not None
    same(s.w.grad.to_dense().tolist(), reference.w.grad.tolist())


def test_vmap_gives_dense_gradients() -> None:
    s = Sides(tlc)

    def loss(w: Any, index: Any) -> Any:
        return tlc.nn.functional.embedding(index, w, sparse=True).pow(2).sum()

    per_sample = tlc.func.vmap(tlc.func.grad(loss), (None, 0))(s.dense(), s.indices([5, 1], [1, 0]))
    assert not per_sample.is_sparse and per_sample.shape == (2, 6, 2)
    assert per_sample[1][:2].tolist() == (s.dense()[:2] * 2).tolist()


def step_of_row_wise_adagrad(lib: Any, w: Any, sums: Any) -> None:
    """As recommenders write it: one sum per row, from what PyTorch's sparse gradient shows."""
    g = w.grad.coalesce()
    indices, values = g._indices(), g._values()
    sums.index_add_(0, indices[0], values.pow(2).mean(1))
    scale = sums[indices[0]].sqrt().add_(1e-10).unsqueeze(1)
    with lib.no_grad():
        w.add_(g.new(indices, values / scale, g.size()), alpha=-0.1)


def test_a_recommender_trains_as_in_pytorch() -> None:
    losses: list[list[float]] = []
    for lib in LIBRARIES:
        lib.manual_seed(0)
        s = Sides(lib)
        users, items = (
            lib.nn.Embedding(7, 4, sparse=True),
            lib.nn.EmbeddingBag(9, 4, mode="sum", sparse=True),
        )
        users, items = users.to(s.place), items.to(s.place)
        sums = [lib.zeros(7).to(s.place), lib.zeros(9).to(s.place)]
        seen = []
        for step in range(6):
            user = s.indices(step % 7, 3, 3)
            bags = items(s.indices(1, 1, step, 8, 2), s.indices(0, 2, 3))
            users.zero_grad(), items.zero_grad()
            loss = ((users(user) * bags).sum(1) - 1).pow(2).mean()
            loss.backward()
            for module, total in zip((users, items), sums, strict=True):
                assert module.weight.grad.is_sparse
                step_of_row_wise_adagrad(lib, module.weight, total)
            seen.append(loss.item())
        losses.append(seen)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.skipif(DEVICE != "cpu", reason="captures on the CPU are of the CPU's backend")
@pytest.mark.parametrize("whole", [True, False], ids=["step", "forward"])
def test_compiled_functions_run_eagerly(whole: bool, caplog: Any) -> None:
    """How many elements a sparse gradient has is the host's to see: it is not captured."""
    found = []
    for compiled in (False, True):
        s = Sides(tlc)
        optimizer = tlc.optim.SGD([s.w], lr=0.1)

        def forward(index: Any, s: Sides = s) -> Any:
            return tlc.nn.functional.embedding(index, s.w, sparse=True).pow(2).sum()

        inner = tlc.compile(forward) if compiled and not whole else forward

        def step(index: Any, inner: Any = inner, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = inner(index)
            loss.backward()
            optimizer.step()
            return loss

        run = tlc.compile(step) if compiled and whole else step
        found.append([run(s.indices(k % 6, 1, 1)).item() for k in range(5)])
        assert s.w.grad is not None and s.w.grad.is_sparse
    assert found[0] == found[1]
    assert "sparse gradient" in caplog.text


def by_a_function_of_the_user(lib: Any) -> Any:
    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, sparse: Any, dense: Any) -> Any:
            ctx.sparse = sparse
            return lib.sparse.mm(sparse, dense)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None, lib.sparse.mm(ctx.sparse.t(), g)

    s = Sides(lib)
    Product.apply(matrix(lib, [[2, 0, 2], [3, 1, 3]]), s.w[:4]).square().sum().backward()
    return s.w.grad


def test_a_function_of_the_user_takes_a_sparse_constant() -> None:
    mine, other = (described(by_a_function_of_the_user(lib), lib) for lib in LIBRARIES)
    assert mine == other
