"""The smaller tools: swapping, benchmarks, reports of the environment, selective checkpoints."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import weakref

import pytest
import torch
import torch.utils.benchmark as their_benchmark
import torch.utils.checkpoint as their_checkpoint
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.benchmark as our_benchmark
import tensorflow_lite_clone.utils.checkpoint as our_checkpoint
from tensorflow_lite_clone.utils import collect_env
from tests.tools.markdown import ROOT

LIBRARIES = (tlc, torch)
BENCHMARKS = (our_benchmark, their_benchmark)


def both(call, libraries=LIBRARIES):
    def outcome(lib):
        try:
            return call(lib)
        except Exception as error:
            return type(error), str(error)

    mine, other = map(outcome, libraries)
    assert mine == other
    return mine


# -- swapping -----------------------------------------------------------------------------------


def test_swapping():
    def swap(lib):
        a, b = lib.nn.Parameter(lib.ones(2)), lib.zeros(3, dtype=lib.float64)
        a.grad, b.note = lib.ones(2), "b"
        lib.utils.swap_tensors(a, b)
        c = b * 2
        c.sum().backward()
        return [
            (type(t).__name__, t.tolist(), t.requires_grad, str(t.dtype), hasattr(t, "note"))
            for t in (a, b)
        ], (a.grad, b.grad.tolist(), c.grad_fn.next_functions[0][0].variable is b)

    _, (_, grad, followed) = both(swap)
    assert grad == [3, 3] and followed


def test_swapping_results():
    def swap(lib):
        x = lib.ones(2, requires_grad=True)
        y, z = x * 2, lib.zeros(3)
        lib.utils.swap_tensors(y, z)
        z.sum().backward()
        return y.tolist(), z.tolist(), y.grad_fn is None, x.grad.tolist()

    both(swap)


def test_swapping_is_refused():
    def swap(lib):
        a, b = lib.ones(2), lib.ones(2)
        keys = weakref.WeakKeyDictionary({b: 1})
        try:
            lib.utils.swap_tensors(a, b)
        finally:
            assert len(keys) == 1

    kind, _ = both(swap)
    assert kind is RuntimeError


def test_set_module():
    def move(lib):
        def f():
            pass

        lib.utils.set_module(f, "elsewhere")
        assert f.__module__ == "elsewhere"
        lib.utils.set_module(f, 3)

    assert both(move)[0] is TypeError
    assert both(lambda lib: lib.utils.deterministic.fill_uninitialized_memory) is True


def test_hooks_live_where_torchs_do():
    handle = tlc.nn.Linear(1, 1).register_forward_hook(lambda *_: None)
    assert isinstance(handle, tlc.utils.hooks.RemovableHandle)


# -- checkpoints --------------------------------------------------------------------------------


def test_selective_checkpoints_change_no_number():
    def run(lib):
        checkpoints = lib.utils.checkpoint
        contexts = functools.partial(
            checkpoints.create_selective_checkpoint_contexts,
            lambda ctx, op, *args, **kwargs: checkpoints.CheckpointPolicy.PREFER_RECOMPUTE,
        )
        x = lib.arange(4.0).reshape(2, 2).requires_grad_()
        y = checkpoints.checkpoint(
            lambda x: (x @ x).sum(), x, use_reentrant=False, context_fn=contexts
        )
        y.backward()
        return y.item(), x.grad.tolist()

    both(run)
    both(lambda lib: lib.utils.checkpoint.create_selective_checkpoint_contexts(3))
    both(lambda lib: [(p.name, p.value) for p in lib.utils.checkpoint.CheckpointPolicy])
    both(
        lambda lib: vars(lib.utils.checkpoint.SelectiveCheckpointContext(is_recompute=True)),
    )


def test_detached_inputs():
    def detach(lib):
        x = lib.ones(2, requires_grad=True) * 2
        a, b, c = lib.utils.checkpoint.detach_variable((x, lib.ones(1), 3))
        return a.is_leaf, a.requires_grad, b.requires_grad, c

    both(detach)
    both(lambda lib: lib.utils.checkpoint.detach_variable(3))
    for module in (our_checkpoint, their_checkpoint):
        with pytest.warns(UserWarning, match="None of the inputs"):
            module.check_backward_validity([1])
    tlc.utils.checkpoint.check_backward_validity([tlc.ones(1, requires_grad=True)])


def test_states_of_devices():
    both(lambda lib: lib.utils.checkpoint.get_device_states(lib.ones(2), 3))
    both(lambda lib: lib.utils.checkpoint.set_device_states([], []))


@pytest.mark.cuda
def test_states_of_gpus():
    x = tlc.ones(2, device="cuda")
    devices, states = our_checkpoint.get_device_states(x, 3)
    drawn = tlc.rand(3, device="cuda")
    our_checkpoint.set_device_states(devices, states)
    assert devices == [x.get_device()]
    assert tlc.rand(3, device="cuda").tolist() == drawn.tolist()
    assert len(collect_env.get_env_info().nvidia_gpu_models) == tlc.cuda.device_count()


# -- benchmarks ---------------------------------------------------------------------------------

TASKS = {
    "plain": {"stmt": "x + 1", "setup": "pass"},
    "named": {"stmt": "x", "setup": "x = 1", "label": "L", "sub_label": "S", "description": "D"},
    "long": {"stmt": "x\ny", "setup": "a\nb", "num_threads": 2},
}
TIMES = {
    "one": [1e-3],
    "two": [1e-5, 1.1e-5],
    "many": [1.0, 1.01, 1.02, 1.03, 1.04],
    "spread": [1e-5, 1.1e-5, 1.2e-5, 1.3e-5, 3e-5],
    "wild": [1.0, 2.0, 3.0, 4.0],
}


def measured(lib, task, times, number=10):
    return lib.Measurement(number, [t * number for t in times], lib.TaskSpec(**TASKS[task]))


@parameterized.expand([(task, times) for task in TASKS for times in TIMES])
def test_measurements(task, times):
    def read(lib):
        m = measured(lib, task, TIMES[times])
        text = [line for line in repr(m).splitlines()[1:] if line]  # the first has the address
        numbers = [round(x, 12) for x in (m.median, m.mean, m.iqr)]
        facts = m.significant_figures, m.has_warnings, m.meets_confidence(0.5)
        return text, numbers, facts, (m.title, m.env, m.as_row_name, m.num_threads, m.setup)

    both(read, BENCHMARKS)


def test_tables():
    def tables(lib):
        def one(time, sub, column, threads=1, label="L", env=None):
            task = lib.TaskSpec(
                "s", "", label=label, sub_label=sub, description=column, num_threads=threads,
                env=env,
            )  # fmt: skip
            return lib.Measurement(1, [time, time * 1.01, time * 1.02], task)

        results = [
            one(1e-5, "first", "a"), one(2.22e-3, "second", "a"), one(1.05e-5, "first", "bb"),
            one(3e-5, "first", "a", 4), one(1.0, "other", "a", 1, "M"),
        ]  # fmt: skip
        table = lib.Compare(results[:3])
        table.extend_results(results[3:])
        seen = [str(table)]
        table.trim_significant_figures()
        seen.append(str(table))
        return seen

    both(tables, BENCHMARKS)
    both(lambda lib: lib.Compare([3]), BENCHMARKS)


def test_colors_and_warnings(capsys):
    slow, fast = (
        measured(our_benchmark, "plain", [2.5] * 3),
        measured(our_benchmark, "named", [1.0]),
    )
    spread = measured(our_benchmark, "plain", TIMES["wild"])
    table = our_benchmark.Compare([slow])
    table.colorize()
    table.print()
    assert "\033[92m\033[1m" in capsys.readouterr().out
    table = our_benchmark.Compare([spread, fast])
    table.highlight_warnings()
    assert "(! 60%) 2.5" in str(table)


def test_units():
    for t in (3e-9, 4e-6, 5e-3, 6, 1e3):
        both(lambda lib: lib.unit_to_english(lib.select_unit(t)[0]), BENCHMARKS)  # noqa: B023
    for x, n in ((123.456, 2), (0.00123, 1), (-9.96, 2)):
        both(lambda lib: round(lib.trim_sigfig(x, n), 6), BENCHMARKS)  # noqa: B023
    both(lambda lib: lib.ordered_unique([3, 1, 3]), BENCHMARKS)


def test_timers():
    calls = []
    timer = our_benchmark.Timer(
        " x.append(1) ", "x.clear()", globals={"x": calls}, label="L", num_threads=1
    )
    before = tlc.get_num_threads()
    m = timer.timeit(100)
    assert (len(m.times), m.number_per_run, len(calls)) == (1, 100, 100)
    told = []
    m = timer.blocked_autorange(lambda number, taken: told.append((number, taken)), 0.02)
    assert [taken for _, taken in told] == m.raw_times
    assert sum(m.raw_times) >= 0.02
    m = timer.adaptive_autorange(1.0, min_run_time=0.01, max_run_time=0.2)
    assert sum(m.raw_times) >= 0.01
    assert tlc.get_num_threads() == before
    for name in ("timeit", "blocked_autorange", "adaptive_autorange", "__init__"):
        mine, other = (
            [
                (p.name, p.kind)
                for p in inspect.signature(getattr(lib.Timer, name)).parameters.values()
            ]
            for lib in BENCHMARKS
        )
        assert mine == other
    with pytest.raises(ValueError, match="Python only"):
        our_benchmark.Timer("1;", language="c++")


# -- the environment ----------------------------------------------------------------------------


def test_environment():
    found = collect_env.get_env_info()
    assert found.version == tlc.version.release
    assert found.is_cuda_available == tlc.cuda.is_available()
    assert found.libraries["numpy"].count(".") >= 1
    assert f"torch=={found.torch_version}" in (ROOT / "pyproject.toml").read_text()
    text = collect_env.get_pretty_env_info()
    assert f"tensorflow_lite_clone version: {tlc.__version__}" in text
    assert f"numpy: {found.libraries['numpy']}" in text


def test_environment_as_a_program():
    command = [sys.executable, "-m", "tensorflow_lite_clone.utils.collect_env"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.startswith("Collecting environment information...\ntensorflow_lite_clone")
    assert done.stderr == ""


def test_running_commands():
    import torch.utils.collect_env as theirs

    for command in ("echo hi; echo no >&2; exit 3", ["echo", "a"]):
        assert collect_env.run(command)[0:2] == theirs.run(command)[0:2]
