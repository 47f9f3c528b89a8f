"""Optimizer steps, clipping and loss scaling by kernels, beside their generic forms."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone import optim
from tests.kernels.gpu import ALL, as_good, needs_gpu, on_device, run_override

pytestmark = needs_gpu

#: Empty and zero-dim tensors, tails, several blocks, and more tensors than a launch can name.
SHAPES = [(3, 5), (), (4096,), (4097,), (70001,), (0, 3), (17, 300), (1,), *[(7,)] * 110]


def options(name: str, **changed: Any) -> dict[str, Any]:
    """What an optimizer's step takes by keyword."""
    record = getattr(optim, name)._record
    return {**{key: record.fields[key] for key in record.taken}, **changed}


DECAY: Any = {"eps": 1e-3, "weight_decay": 0.1}
SGD = options("SGD", lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.1)
ADAM = options("Adam", lr=0.01, **DECAY)
RMSPROP = options("RMSprop", alpha=0.9, **DECAY)
ADAGRAD = options("Adagrad", lr=0.1, lr_decay=0.1, maximize=True, **DECAY)
ADADELTA = options("Adadelta", lr=0.5, **DECAY)
ADAMAX = options("Adamax", lr=0.01, **DECAY)
RADAM = options("RAdam", lr=0.01, **DECAY)
NADAM = options("NAdam", lr=0.01, products=0.4, **DECAY)
RPROP = options("Rprop", step_sizes=(0.05, 0.3))
ASGD = {"lambd": 0.01, "weight_decay": 0.1, "maximize": False, "etas": 0.05, "mus": 0.25}
DECOUPLED = {"decoupled_weight_decay": True, "maximize": True}
ADAM_LISTS, SGD_LISTS = ("x", "x", "x", "+"), ("x", "x", "x")

STEPS: list[Any] = [
    ("sgd_step", ("x", "x", None), {**SGD, "momentum": 0, "dampening": 0, "weight_decay": 0}),
    ("sgd_step", SGD_LISTS, {**SGD, "first": "all"}),
    ("sgd_step", SGD_LISTS, {**SGD, "first": "some"}),
    ("sgd_step", SGD_LISTS, {**SGD, "dampening": 0, "nesterov": True, "maximize": True}),
    ("adam_step", (*ADAM_LISTS, None), {**ADAM, "steps": 1}),
    ("adam_step", (*ADAM_LISTS, "+"), {**ADAM, "steps": 1000, "amsgrad": True}),
    ("adam_step", (*ADAM_LISTS, None), {**ADAM, "steps": 10, **DECOUPLED}),
    ("rmsprop_step", ("x", "x", "+", None, None), RMSPROP),
    ("rmsprop_step", ("x", "x", "2", None, "+"), {**RMSPROP, "centered": True}),
    ("rmsprop_step", ("x", "x", "2", "x", "+"), {**RMSPROP, "centered": True, "momentum": 0.9}),
    ("rmsprop_step", ("x", "x", "+", "x", None), {**RMSPROP, "momentum": 0.9, "maximize": True}),
    ("adagrad_step", ("x", "x", "+"), {**ADAGRAD, "steps": 3}),
    ("adadelta_step", ("x", "x", "+", "+"), ADADELTA),
    ("adadelta_step", ("x", "x", "+", "+"), {**ADADELTA, "weight_decay": 0.0, "maximize": True}),
    ("adamax_step", ADAM_LISTS, {**ADAMAX, "steps": 1}),
    ("adamax_step", ADAM_LISTS, {**ADAMAX, "steps": 100, "maximize": True}),
    ("nadam_step", ADAM_LISTS, {**NADAM, "steps": 2}),
    ("nadam_step", ADAM_LISTS, {**NADAM, "steps": 500, **DECOUPLED}),
    ("radam_step", ADAM_LISTS, {**RADAM, "steps": 1}),
    ("radam_step", ADAM_LISTS, {**RADAM, "steps": 5}),
    ("radam_step", ADAM_LISTS, {**RADAM, "steps": 6}),
    ("radam_step", ADAM_LISTS, {**RADAM, "steps": 2000, **DECOUPLED}),
    ("radam_step", ADAM_LISTS, {**RADAM, "steps": 30, "betas": (0.8, 0.9)}),
    ("rprop_step", ADAM_LISTS, RPROP),
    ("rprop_step", ADAM_LISTS, {**RPROP, "maximize": True}),
    ("asgd_step", SGD_LISTS, ASGD),
    ("asgd_step", SGD_LISTS, {**ASGD, "mus": 1.0, "maximize": True}),
]


def lists_of(kinds: Any, shapes: Any = SHAPES) -> list[list]:
    """Host arrays: any numbers (x), positive ones (+), ones above two (2); None: an empty list."""
    rng = np.random.default_rng(0)
    made = []
    for kind in kinds:
        values = [] if kind is None else [np.asarray(rng.standard_normal(s)) for s in shapes]
        if kind in ("+", "2"):
            values = [np.abs(x) * 0.3 + (2 if kind == "2" else 0.01) for x in values]
        made.append(values)
    return made


def on_gpu(name: str) -> Any:
    """The generic form of a composite over CUDA arrays, as the backend runs it."""
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch.op import TABLE

    backend: Any = backends.load("cuda:0")
    body: Any = TABLE[name]
    return backend.adapted(body, partial(body, backend.F))


def of_dtype(dtype: str) -> Any:
    from tensorflow_lite_clone.backends.cupy.native import NATIVE

    return next(native for kind, native in NATIVE.items() if kind.name == dtype)


def cell(value: float) -> Any:
    import cupy

    return cupy.full((), value, np.float32)


def host(x: Any) -> np.ndarray:
    array = x.get() if hasattr(x, "get") else np.asarray(x)
    return array.astype(np.float64)


def run(case: int, dtype: str, layout: str = "contiguous") -> None:
    """Assert that the override serves the step and is as good as the generic form."""
    import cupy

    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch.op import TABLE
    from tests.kernels.gpu import Laid

    name, kinds, options = STEPS[case]
    generic: Any = TABLE[name]
    parameters = dict(options)
    count = len(SHAPES)
    if name == "sgd_step":
        which = parameters.pop("first", "none")
        parameters["first"] = [which == "all" or (which == "some" and i % 3 == 0)
                               for i in range(count)]  # fmt: skip
    on_host, there = dict(parameters), dict(parameters)
    for each in ("steps", "products", "etas", "mus"):
        if isinstance(parameters.get(each), (int, float)):
            number = float(np.float32(parameters[each]))
            on_host[each] = [number] * count
            there[each] = [cell(number) for _ in range(count)]
    lists = [[on_device(Laid(x, layout), dtype) for x in xs] for xs in lists_of(kinds)]
    plain_lists = [[x.copy() for x in xs] for xs in lists]
    exact = [[host(x) for x in xs] for xs in lists]
    true = generic(backends.load("cpu").F, *exact, **on_host)
    plain = on_gpu(name)(*plain_lists, **there)
    assert run_override(name, lists, there) is None
    cupy.cuda.Device().synchronize()
    for before, after in zip(plain_lists[1], lists[1], strict=True):
        np.testing.assert_array_equal(host(before), host(after), "a gradient was written")
    written = [xs for i, xs in enumerate(lists) if i != 1]
    for k, (mine, p, t) in enumerate(zip(written, plain, true, strict=True)):
        for i, x in enumerate(mine):
            if x.size:
                rounded = p[i].astype(of_dtype(dtype))
                where = f"{name} {dtype}, list {k}, tensor {i}"
                as_good(where, x, host(x), host(rounded), host(t[i]), 8.0)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("case", range(len(STEPS)))
def test_step(case: int, dtype: str) -> None:
    run(case, dtype)


@pytest.mark.parametrize("stopped", [False, True])
def test_numbers_of_tensors(stopped: bool) -> None:
    """The products of NAdam's momenta and the rates of averaged SGD, of many tensors."""
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch.op import TABLE

    rng = np.random.default_rng(0)
    steps = [float(step) for step in rng.integers(1, 3000, 700)]
    schedule = {"beta1": 0.9, "momentum_decay": 4e-3}
    rates = {"lr": 0.01, "lambd": 1e-2, "alpha": 0.75, "t0": 1000.0}
    for name, lists, options in (("nadam_products", 1, schedule), ("asgd_rates", 2, rates)):
        start = [rng.random(700).astype(np.float32).tolist() for _ in range(lists)]
        generic: Any = TABLE[name]
        true = generic(backends.load("cpu").F, *start, steps=steps, **options)
        cells = [[cell(x) for x in numbers] for numbers in start]
        there = {**options, "steps": [cell(step) for step in steps], "found_inf": cell(stopped)}
        assert run_override(name, cells, there) is None
        for mine, expected in zip(cells, start if stopped else true, strict=True):
            np.testing.assert_allclose([float(x) for x in mine], expected, rtol=1e-6)


@pytest.mark.parametrize("layout", ["offset", "contiguous"])
@pytest.mark.parametrize("case", [2, 5, 9, 11, 12, 20])
def test_step_without_packs(case: int, layout: str) -> None:
    run(case, "float32", layout)
    run(case, "bfloat16", layout)


def sgd(params: list, grads: list, **options: Any) -> Any:
    numbers = {**SGD, "momentum": 0, "weight_decay": 0, "first": [], **options}
    return run_override("sgd_step", [params, grads, []], numbers)


def test_layouts() -> None:
    import cupy

    w = cupy.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)
    for g in (cupy.ones((4, 2, 3), np.float32), cupy.broadcast_to(cell(2), (4, 2, 3))):
        expected = w.get() - 0.1 * g.get()
        assert sgd([w], [g]) is None
        np.testing.assert_allclose(w.get(), expected, rtol=1e-6)
    assert sgd([w[::2]], [g[::2]]) is NotImplemented
    assert sgd([w], [g.astype(np.float64)]) is NotImplemented
    assert sgd([w.astype(np.int32)], [g.astype(np.int32)]) is NotImplemented


def test_dtypes_of_different_parameters() -> None:
    import cupy

    params = [cupy.ones(9, dtype) for dtype in (np.float32, np.float64, np.float32, np.float16)]
    assert sgd(params, [cupy.ones_like(p) for p in params], lr=0.5) is None
    for p in params:
        assert (p.get() == 0.5).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_from_the_device(dtype: str) -> None:
    import cupy

    from tensorflow_lite_clone.core.dynamic_scalar import DynamicScalar

    results = []
    numbers = [DynamicScalar(lambda: 0.1, cell(0.1)), DynamicScalar(lambda: 0.1, cell(0.3)),
               cell(0.3), 0.3]  # fmt: skip
    for rate in numbers:
        p, g = cupy.arange(9, dtype=dtype), cupy.full(9, 2, dtype)
        sgd([p], [g], lr=rate)
        results.append(p.get())
    tolerance = 1e-6
    np.testing.assert_allclose(results[0], np.arange(9) - 0.2, 1e-15 if dtype == "float64"
                               else tolerance, tolerance * (dtype == "float32"))  # fmt: skip
    for result in results[1:3]:
        np.testing.assert_allclose(result, results[3], tolerance, tolerance)
    assert numbers[0].consumed


@pytest.mark.parametrize("case", [1, 5, 10, 11, 12])
def test_found_inf(case: int) -> None:
    name, kinds, parameters = STEPS[case]
    parameters = {**parameters, "found_inf": cell(1)}
    if name == "sgd_step":
        parameters["first"] = [False] * 2
    if "steps" in parameters:
        parameters["steps"] = [cell(3), cell(3)]
    lists = [[on_device(x, "float32") for x in xs] for xs in lists_of(kinds, [(5,), (6000,)])]
    before = [[host(x) for x in xs] for xs in lists]
    assert run_override(name, lists, parameters) is None
    for olds, news in zip(before, lists, strict=True):
        for old, new in zip(olds, news, strict=True):
            np.testing.assert_array_equal(old, host(new))
    parameters["found_inf"] = cell(0)
    assert run_override(name, lists, parameters) is None
    assert (host(lists[0][1]) != before[0][1]).any()


def test_count_steps() -> None:
    steps = [cell(i) for i in range(1000)]
    assert run_override("count_steps", [steps], {}) is None
    assert run_override("count_steps", [steps], {"found_inf": cell(1)}) is None
    assert [float(step) for step in steps] == [i + 1.0 for i in range(1000)]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("order", [1.0, 2.0, math.inf])
@pytest.mark.parametrize("layout", ["contiguous", "offset", "transposed"])
def test_clip_to_norm(order: float, dtype: str, layout: str) -> None:
    from tensorflow_lite_clone import backends
    from tests.kernels.gpu import Laid

    shapes = [(9, 5), (1, 1), (1, 40001), (0, 4), *[(7, 1)] * 200]
    (values,) = lists_of("x", shapes)
    values = [x / 50 for x in values]
    cpu = backends.load("cpu").F
    full = [on_device(Laid(x, layout), dtype) for x in values if x.size]
    exact = [host(x) for x in full]
    true, plain = cpu.grad_norm(exact, order=order), on_gpu("grad_norm")(full, order=order)
    mine = run_override("grad_norm", [full], {"order": order})
    assert (mine.shape, mine.dtype) == ((), of_dtype(dtype))
    as_good("norm", mine, host(mine), host(plain.astype(mine.dtype)), host(true), 8.0)
    copies = [x.copy() for x in full]
    for most in (1e6, 0.5):
        (scaled,) = cpu.clip_to_norm(exact, [host(mine)], max_norm=most)
        (plain_scaled,) = on_gpu("clip_to_norm")(copies, [mine], max_norm=most)
        assert run_override("clip_to_norm", [full, [mine]], {"max_norm": most}) is None
        for x, p, t in zip(full, plain_scaled, scaled, strict=True):
            as_good(f"clipped to {most}", x, host(x), host(p.astype(x.dtype)), t, 8.0)
    assert run_override("grad_norm", [full], {"order": 3.0}) is NotImplemented
    sliced = [[full[0][:, ::2]], [mine]]
    assert run_override("clip_to_norm", sliced, {"max_norm": 0.5}) is NotImplemented


def test_norms_of_nan() -> None:
    import cupy

    for order in (1.0, 2.0, math.inf):
        x = [cupy.asarray([1, math.nan, 3], np.float32), cupy.ones(70000, np.float32)]
        total = run_override("grad_norm", [x], {"order": order})
        assert np.isnan(total.get())
        run_override("clip_to_norm", [x, [total]], {"max_norm": 1.0})
        assert np.isnan(x[1].get()).all()
    x = [cupy.asarray([1, math.inf], np.float32)]
    assert np.isinf(run_override("grad_norm", [x], {"order": 2.0}).get())


@pytest.mark.parametrize("dtype", ALL)
def test_clamp_zero_and_copy(dtype: str) -> None:
    (values,) = lists_of("x")
    values[2][3:6] = math.nan, math.inf, -math.inf
    tensors = [on_device(x, dtype) for x in values]
    before = [host(x) for x in tensors]
    bound = float(np.asarray(0.375).astype(of_dtype(dtype)))
    assert run_override("clamp_each", [tensors], {"low": -bound, "high": bound}) is None
    for old, new in zip(before, tensors, strict=True):
        np.testing.assert_array_equal(host(new), np.clip(old, -bound, bound))
    assert run_override("zero_each", [tensors], {}) is None
    for new in tensors:
        assert not host(new).any()
    assert run_override("zero_each", [[tensors[2][::2]]], {}) is NotImplemented
    sources = [on_device(x, dtype) for x in values]
    assert run_override("copy_each", [tensors, sources], {}) is None
    for source, new in zip(sources, tensors, strict=True):
        np.testing.assert_array_equal(host(new), host(source))


@pytest.mark.parametrize("dtype", ALL)
def test_unscale(dtype: str) -> None:
    (values,) = lists_of("x")
    for bad in (None, math.inf, -math.inf, math.nan):
        if bad is not None:
            values[4][69999] = bad
        tensors = [on_device(x, dtype) for x in values]
        before = [host(x) for x in tensors]
        found = cell(0)
        assert run_override("amp_unscale", [tensors, [found]], {"inv_scale": cell(0.25)}) is None
        assert float(found) == (bad is not None)
        for old, new in zip(before, tensors, strict=True):
            unit = 2.0**-24 if dtype == "float16" else 0.0  # halves may become subnormal
            np.testing.assert_allclose(host(new), old * 0.25, 0, unit)


@pytest.mark.parametrize(
    ("scale", "good", "found", "expected"),
    [
        (8.0, 3, 0, (8.0, 4)),
        (8.0, 4, 0, (16.0, 0)),
        (8.0, 4, 1, (4.0, 0)),
        (3e38, 4, 0, (float(np.float32(3e38)), 0)),
    ],
)
def test_update_scale(scale: float, good: int, found: int, expected: Any) -> None:
    import cupy

    s, n = cell(scale), cupy.full((), good, np.int32)
    numbers = {"growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 5}
    parameters = {"found_inf": cell(found), **numbers}
    assert run_override("amp_update_scale", [[s], [n]], parameters) is None
    assert (float(s), int(n)) == expected


def test_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 parameters take one launch; so do their step counts."""
    import tensorflow_lite_clone as tlc
    from tensorflow_lite_clone.backends.cupy.kernel import Instance

    params = [tlc.nn.Parameter(tlc.randn(30, i + 1, device="cuda")) for i in range(60)]
    optimizer = tlc.optim.Adam(params)
    seen: list[str] = []
    launch = Instance.__call__

    def counted(self: Instance, *args: Any, **options: Any) -> None:
        seen.append(self.kernel.name)
        launch(self, *args, **options)

    for _ in range(2):
        for param in params:
            param.grad = tlc.ones_like(param)
        monkeypatch.setattr(Instance, "__call__", counted)
        seen.clear()
        optimizer.step()
        assert seen == ["count_steps", "adam_step"]
        tlc.nn.utils.clip_grad_norm_(params, 1.0)
        assert seen[2:] == ["grad_norm_partial", "grad_norm_total", "clip_to_norm"]
        monkeypatch.undo()
    versions = {param._version for param in params}
    assert versions == {2}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"momentum": 0.9}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("RMSprop", {"momentum": 0.5, "centered": True}),
        ("Adagrad", {"lr_decay": 0.1}),
    ],
)
def test_a_captured_step(name: str, options: dict) -> None:
    """Replays go on counting, and read the rate from its cell."""
    import cupy

    import tensorflow_lite_clone as tlc
    from tensorflow_lite_clone.core import dynamic_scalar

    class Recorder(dynamic_scalar.Recorder):
        def __init__(self) -> None:
            self.numbers: list[dynamic_scalar.DynamicScalar] = []
            self.cells = [cell(0) for _ in range(16)]

        def number(self, read: Any) -> dynamic_scalar.DynamicScalar:
            self.numbers.append(dynamic_scalar.DynamicScalar(read, self.cells[len(self.numbers)]))
            return self.numbers[-1]

    def fresh() -> tuple[list, Any]:
        tlc.manual_seed(0)
        params = [tlc.nn.Parameter(tlc.randn(n, device="cuda")) for n in (5, 4096, 10001)]
        for param in params:
            param.grad = tlc.cos(param.detach())
        return params, getattr(tlc.optim, name)(params, lr=0.1, **options)

    eager, expected = fresh()
    for rate in (0.1, 0.1, 0.1, 0.02):
        expected.param_groups[0]["lr"] = rate
        expected.step()
    params, optimizer = fresh()
    optimizer.step()
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    recorder = dynamic_scalar.recorder = Recorder()
    try:
        with stream:
            stream.begin_capture(cupy.cuda.runtime.streamCaptureModeRelaxed)
            optimizer.step()
            graph = stream.end_capture()
    finally:
        dynamic_scalar.recorder = None
    assert any([number == 0.1 and number.consumed for number in recorder.numbers])
    for rate in (0.1, 0.1, 0.02):
        optimizer.param_groups[0]["lr"] = rate
        for number, place in zip(recorder.numbers, recorder.cells):
            place.fill(number.read())
        cupy.cuda.Device().synchronize()
        with stream:
            graph.launch()
        stream.synchronize()
    for mine, other in zip(params, eager, strict=True):
        np.testing.assert_allclose(
            mine.detach().cpu().numpy(), other.detach().cpu().numpy(), 1e-5, 1e-6
        )
    state = optimizer.state_dict()["state"][0]
    assert "step" not in state or state["step"].item() == 4
