"""What happens beside a graph: side effects, breaks, limits, and everything that reads values."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone._dynamo as dynamo
from tensorflow_lite_clone import nn
from tensorflow_lite_clone._dynamo.testing import CompileCounter, CompileCounterWithBackend


def counted(function: Any, **options: Any) -> tuple[Any, CompileCounter]:
    counter = CompileCounter()
    return tlc.compile(function, backend=counter, **options), counter


# ---- calls that were seen before


def test_a_graph_is_compiled_once_and_the_function_runs_at_every_call() -> None:
    seen: list[Any] = []

    def f(x: tlc.Tensor) -> tlc.Tensor:
        seen.append(x.shape[0])
        y = x * 2
        seen.append(y)
        return y + 1

    compiled, counter = counted(f)
    for number in range(3):
        assert compiled(tlc.full((2,), number)).tolist() == [2 * number + 1] * 2
    assert (counter.frame_count, counter.op_count) == (1, 2)
    assert [each if isinstance(each, int) else each.tolist() for each in seen[2:]] == [
        2, [2.0, 2.0], 2, [4.0, 4.0],
    ]  # fmt: skip
    assert all(type(each) in (int, tlc.Tensor) for each in seen)


CHANGES: dict[str, tuple[Any, int]] = {
    "shape": (lambda: tlc.ones(3), 2),
    "dtype": (lambda: tlc.ones(2, dtype=tlc.float64), 2),
    "strides": (lambda: tlc.ones(4)[::2], 2),
    "requires_grad": (lambda: tlc.ones(2, requires_grad=True), 2),
    "parameter": (lambda: nn.Parameter(tlc.ones(2)), 2),
    "values": (lambda: tlc.zeros(2), 1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_makes_a_new_graph(change: str) -> None:
    other, graphs = CHANGES[change]
    compiled, counter = counted(lambda x: x + 1)
    for x in (tlc.ones(2), other(), tlc.ones(2), other()):
        assert tlc.equal(compiled(x), x + 1)
    assert counter.frame_count == graphs


@pytest.mark.parametrize("numbers", [(1, 1.0, True), (0.0, -0.0), (1, 2)])
def test_numbers_are_constants_of_graphs(numbers: tuple) -> None:
    compiled, counter = counted(lambda x, n: (x * n, x.dtype))
    for number in (*numbers, *numbers):
        result, _ = compiled(tlc.ones(2), number)
        expected = tlc.ones(2) * number
        assert result.dtype == expected.dtype and str(result) == str(expected)
    assert counter.frame_count == len(numbers)


def test_the_limit_of_graphs(caplog: pytest.LogCaptureFixture) -> None:
    compiled, counter = counted(lambda x, n: (x + n).sin())
    with dynamo.config.patch(cache_size_limit=3), caplog.at_level(logging.WARNING):
        for number in range(6):
            assert tlc.equal(compiled(tlc.ones(2), number), (tlc.ones(2) + number).sin())
    assert counter.frame_count == 3
    assert "recompile_limit reached: 3 graphs" in caplog.text
    strict, _ = counted(lambda x, n: x + n, fullgraph=True, recompile_limit=1)
    strict(tlc.ones(2), 0)
    with pytest.raises(dynamo.exc.FailOnRecompileLimitHit, match="fullgraph=True"):
        strict(tlc.ones(2), 1)


def test_stances() -> None:
    compiled, counter = counted(lambda x: x + 1)
    with tlc.compiler.set_stance("force_eager"):
        compiled(tlc.ones(2))
    assert counter.frame_count == 0
    compiled(tlc.ones(2))
    with tlc.compiler.set_stance("eager_on_recompile"):
        assert compiled(tlc.ones(3)).tolist() == [2.0] * 3
    with tlc.compiler.set_stance("fail_on_recompile"):
        compiled(tlc.ones(2))
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            compiled(tlc.ones(4))
    assert counter.frame_count == 1
    compiled(tlc.ones(3))
    tlc.compiler.reset()
    compiled(tlc.ones(2))
    assert counter.frame_count == 3


# ---- what needs values


READS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: (x * 2).sum().item(),
    "bool": lambda x: 1 if (x * 2).sum() > 0 else 2,
    "float": lambda x: float((x * 2).sum()),
    "int": lambda x: int((x * 2).sum()),
    "index": lambda x: list(range(9))[(x * 2).sum().int()],
    "tolist": lambda x: (x * 2).tolist(),
    "numpy": lambda x: (x * 2).numpy().sum(),
    "asarray": lambda x: np.asarray(x * 2).sum(),
    "str": lambda x: f"{x * 2} {(x * 2).sum():.2f}",
    "contains": lambda x: 2.0 in x * 2,
    "equal": lambda x: tlc.equal(x * 2, x + x),
    "nonzero": lambda x: (x * 2).nonzero().tolist(),
    "mask": lambda x: (x * 2)[x > 0].shape[0],
    "unique": lambda x: tlc.unique(x * 2).shape,
    "deepcopy": lambda x: copy.deepcopy(x * 2).sum().item(),
    "data_ptr": lambda x: (x * 2).data_ptr() != 0,
    "vmap": lambda x: tlc.func.vmap(lambda row: row.sum())(x * 2 + x).sum().item(),
    "sparse": lambda x: tlc.sparse.mm((x * 2).diag().to_sparse(), x.diag()).sum().item(),
}


@pytest.mark.parametrize("name", READS)
def test_values_are_there_when_they_are_read(name: str) -> None:
    read, x = READS[name], tlc.tensor([1.0, 2.0])
    compiled = tlc.compile(lambda x: (read(x), x.exp()), backend="eager")
    for _ in range(2):
        found, exponential = compiled(x)
        assert found == read(x) and tlc.equal(exponential, x.exp())
    strict = tlc.compile(read, backend="eager", fullgraph=True)
    with pytest.raises(dynamo.exc.Unsupported, match=r"test_recording.py.*\n.*lambda x"):
        strict(x)


def test_questions_that_need_no_values() -> None:
    def f(x: tlc.Tensor) -> Any:
        y = x.reshape(3, 2).double()
        facts = (y.shape, y.size(0), y.dim(), y.ndim, len(y), y.numel(), y.dtype, y.device)
        more = y.is_contiguous(), y.stride(), y.requires_grad, y.is_leaf, y.is_floating_point()
        kept = tuple(y.shape)
        y.unsqueeze_(0)
        return y, facts, more, kept, y.shape, tlc.result_type(y, 1), y.grad_fn is None

    x = tlc.ones(6, requires_grad=True)
    compiled, counter = counted(f)
    for _ in range(2):
        assert compiled(x)[1:] == f(x)[1:]
    assert counter.frame_count == 1  # the last question ends it


def test_a_tensor_that_is_written_into_waits() -> None:
    model = nn.Linear(2, 2)
    optimizer = tlc.optim.SGD(model.parameters(), lr=1.0)

    def f() -> None:
        with tlc.no_grad():
            for parameter in model.parameters():
                parameter.grad.mul_(0.5)
        optimizer.step()

    before = model.weight.detach().clone()
    compiled = tlc.compile(f, backend="eager")
    for _ in range(2):
        for parameter in model.parameters():
            parameter.grad = tlc.ones_like(parameter)
        compiled()
    assert tlc.equal(model.weight, before - 1)
    assert type(model.weight) is nn.Parameter and type(model.weight.grad) is tlc.Tensor


def test_random_numbers_are_drawn_in_order() -> None:
    def f(x: tlc.Tensor) -> list[Any]:
        first = tlc.nn.functional.dropout(x)
        tlc.manual_seed(3)
        second = tlc.rand(4)
        state = tlc.get_rng_state()
        third = tlc.rand(4)
        tlc.set_rng_state(state)
        return [first, second, third, tlc.rand(4)]

    compiled = tlc.compile(f, backend="eager")
    for _ in range(2):
        found = []
        for call in (f, compiled):
            tlc.manual_seed(1)
            found.append([each.tolist() for each in call(tlc.ones(8))])
        assert found[0] == found[1]
        assert found[1][2] == found[1][3]


def test_an_exception_leaves_what_was_written() -> None:
    def f(x: tlc.Tensor, fails: bool) -> tlc.Tensor:
        x.add_(1)
        if fails:
            raise ValueError("as asked")
        return x

    compiled, x = tlc.compile(f, backend="eager"), tlc.zeros(1)
    for fails in (True, False, True):
        if fails:
            with pytest.raises(ValueError, match="as asked"):
                compiled(x, fails)
        else:
            assert compiled(x, fails) is x
    assert x.tolist() == [3.0] and type(x) is tlc.Tensor


def test_defaults_that_are_switched_inside() -> None:
    def f() -> Any:
        tlc.set_default_dtype(tlc.float64)
        wide = tlc.zeros(2) + 0.5
        tlc.set_default_dtype(tlc.float32)
        with tlc.device("meta"):
            shape = tlc.ones(3)
        return wide, shape, tlc.ones(1)

    compiled = tlc.compile(f, backend="eager")
    for _ in range(2):
        wide, shape, one = compiled()
        assert (wide.tolist(), wide.dtype) == ([0.5, 0.5], tlc.float64)
        assert shape.is_meta and one.is_cpu and one.dtype == tlc.float32


def test_threads() -> None:
    compiled, found = tlc.compile(lambda x: (x * 2).sin(), backend="eager"), {}

    def run(number: int) -> None:
        found[number] = compiled(tlc.full((3,), float(number)))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in found.items():
        assert tlc.equal(result, tlc.full((3,), 2.0 * number).sin())


def test_transforms_around_and_inside() -> None:
    compiled = tlc.compile(lambda x: (x**2).sum(), backend="eager")
    assert tlc.func.grad(compiled)(tlc.ones(2)).tolist() == [2.0, 2.0]
    assert tlc.func.vmap(compiled)(tlc.ones(2, 3)).tolist() == [3.0, 3.0]


# ---- parts that are no graph, or one call of it


def test_parts_that_are_disabled() -> None:
    @tlc.compiler.disable(reason="for a test")
    def inner(x: tlc.Tensor) -> tlc.Tensor:
        assert not tlc.compiler.is_compiling()
        return x * 2

    def f(x: tlc.Tensor) -> tlc.Tensor:
        assert tlc.compiler.is_compiling()
        dynamo.graph_break()
        return inner(x + 1) + 1

    compiled, counter = counted(f)
    assert compiled(tlc.ones(1)).tolist() == [5.0]
    assert (counter.frame_count, counter.op_count) == (2, 2)
    strict, _ = counted(lambda x: inner(x), fullgraph=True)
    with pytest.raises(dynamo.exc.Unsupported, match="torch.compiler.disable.*for a test"):
        strict(tlc.ones(1))
    named, _ = counted(lambda x: dynamo.graph_break("here") or x, fullgraph=True)
    with pytest.raises(dynamo.exc.Unsupported, match="graph_break.*here"):
        named(tlc.ones(1))


def test_functions_that_are_one_call() -> None:
    class Square(tlc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 3 * ctx.saved_tensors[0] * grad

    @tlc.compiler.allow_in_graph
    def opaque(x: Any) -> Any:
        return [x.sin().cos(), x]

    graphs = dynamo.testing.EagerAndRecordGraphs()
    compiled = tlc.compile(lambda x: opaque(Square.apply(x))[0], backend=graphs, fullgraph=True)
    x = tlc.ones(2, requires_grad=True)
    result = compiled(x)
    result.sum().backward()
    assert tlc.allclose(result, tlc.ones(2).sin().cos())
    assert tlc.allclose(x.grad, -3 * tlc.ones(2).sin().sin() * tlc.ones(2).cos())
    names = [node.name for node in graphs.graphs[0].graph.nodes if node.op == "call_function"]
    assert names == ["autograd_function_apply", "opaque", "getitem"]


def test_a_compiled_function_inside_of_another_is_part_of_its_graph() -> None:
    inner, unused = counted(lambda x: x * 2)
    compiled, counter = counted(lambda x: inner(x + 1))
    assert compiled(tlc.ones(1)).tolist() == [4.0]
    assert (counter.frame_count, counter.op_count, unused.frame_count) == (1, 2, 0)


# ---- backends


def test_backends_by_name_and_their_options() -> None:
    given: list[Any] = []

    @dynamo.register_backend(name="noted", tags=("debug",))
    def backend(module: Any, inputs: list[Any], **options: Any) -> Any:
        given.append((len(inputs), options))
        return module.forward

    try:
        tlc.compile(lambda x: x + 1, backend="noted", options={"a": 1})(tlc.ones(1))
        tlc.compile(lambda x: x + 1, backend=backend, mode="default")(tlc.ones(1))
        assert given == [(1, {"options": {"a": 1}}), (1, {"mode": "default"})]
        assert dynamo.lookup_backend("noted") is backend and dynamo.lookup_backend(abs) is abs
        assert "noted" in dynamo.list_backends(()) and "noted" not in dynamo.list_backends()
        with pytest.raises(AssertionError, match="duplicate name: noted"):
            dynamo.register_backend(backend, name="noted")
    finally:
        tlc.compiler.dynamo.registry._backends.pop("noted")
    with pytest.raises(dynamo.exc.InvalidBackend, match="'noted'"):
        dynamo.lookup_backend("noted")


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor", "cudagraphs"])
def test_named_backends_compile_graphs(backend: str) -> None:
    counter = CompileCounterWithBackend(backend)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    compiled, x = tlc.compile(model, backend=counter), tlc.randn(2, 3)
    for _ in range(4):
        model.zero_grad()
        result = compiled(x)
        result.sum().backward()
        found = result.tolist(), model[0].weight.grad.tolist()
        model.zero_grad()
        expected = model(x)
        expected.sum().backward()
        assert found == (expected.tolist(), model[0].weight.grad.tolist())
    assert counter.frame_count == 1


def test_a_backend_that_fails() -> None:
    def backend(module: Any, inputs: Any) -> Any:
        raise ValueError("no such thing")

    def f(x: tlc.Tensor) -> tlc.Tensor:
        return x.add_(1) * 2

    x = tlc.zeros(1)
    with pytest.raises(dynamo.exc.BackendCompilerFailed, match="'backend' raised:\nValueError: no"):
        tlc.compile(f, backend=backend)(x)
    assert type(x) is tlc.Tensor and x.tolist() == [0.0]
    with dynamo.config.patch(suppress_errors=True):
        assert tlc.compile(f, backend=backend)(x).tolist() == [2.0]
    with pytest.raises(dynamo.exc.BackendCompilerFailed, match="a callable, but got NoneType"):
        tlc.compile(f, backend=lambda module, inputs: None)(x)


def test_counters() -> None:
    dynamo.utils.counters.clear()

    def f(x: tlc.Tensor) -> Any:
        return x.sin() if x.sum() > 0 else x

    tlc.compile(f, backend="eager")(tlc.ones(1))
    assert dynamo.utils.counters["stats"] == {"calls_captured": 3, "unique_graphs": 2}
    assert dynamo.utils.counters["graph_break"] == {"Data-dependent branching": 1}


def test_explain() -> None:
    def f(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
        x = a / (tlc.abs(a) + 1)
        print("between")
        if b.sum() < 0:
            b = b * -1
        return x * b

    told = dynamo.explain(f)(tlc.ones(3), -tlc.ones(3))
    assert (told.graph_count, told.graph_break_count, told.op_count) == (3, 2, 6)
    first, second = told.break_reasons
    assert "print" in first.reason and first.user_stack[-1].line == 'print("between")'
    assert second.reason == "Data-dependent branching" and second.graph_break
    assert [len(ops) for ops in told.ops_per_graph] == [3, 1, 2]
    assert told.graphs[0].code.count("torch.abs") == 1
    assert "TENSOR_MATCH" in {guard.create_fn for guard in told.out_guards}
    lines = str(told).splitlines()
    assert lines[:4] == ["Graph Count: 3", "Graph Break Count: 2", "Op Count: 6", "Break Reasons:"]
    assert "TorchDynamo compilation metrics" in told.compile_times


def test_optimize() -> None:
    counter = CompileCounter()
    assert dynamo.optimize(counter)(lambda x: x + 1)(tlc.ones(1)).tolist() == [2.0]
    assert dynamo.optimize(counter, disable=True)(abs) is abs
    with pytest.raises(dynamo.exc.Unsupported):
        dynamo.optimize_assert(counter)(lambda x: x.item())(tlc.ones(1))
    assert counter.frame_count == 1


def test_other_methods_of_a_module_are_compiled_alike() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(tlc.tensor(3.0))

        def twice(self, x: tlc.Tensor) -> tlc.Tensor:
            return x * self.scale * 2

    compiled, counter = counted(Net())
    twice = compiled.dynamo_ctx(compiled._orig_mod.twice)
    assert twice(tlc.ones(1)).tolist() == [6] and counter.frame_count == 1
