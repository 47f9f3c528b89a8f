"""The table for a CPU: its rows over both libraries, its timing and its page."""

from __future__ import annotations

import argparse
import json
import mmap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc

pytest.importorskip("matplotlib", reason="pictures need Matplotlib")

from tests.bench import cpu_page, cpu_table, language, report, resident, tensorgrad, timing  # noqa: E402
from tests.bench.case import together  # noqa: E402
from tests.bench.cpu_kernels import PARTS  # noqa: E402
from tests.bench.cpu_rows import ROWS, chosen, table  # noqa: E402
from tests.bench.ratios import complete, means, ratios  # noqa: E402
from tests.bench.steps import training  # noqa: E402
from tests.bench.stored import joined  # noqa: E402

LIBRARIES = [tlc, torch]
CHEAP = (
    "overhead-10", "matmul-256", "linear-784", "conv-a", "mha-64", "embedding", "adam", "sgd",
    "tg-conv-16", "tg-mha-64", "tg-softmax-64", "chains-gated",
)  # fmt: skip


def row(title: str, group: str, times: dict[str, float], **more: Any) -> dict[str, Any]:
    ratio = {name: time / times["torch eager"] for name, time in times.items() if name[0] == "o"}
    plain = {"peaks": {}, "wholes": {}, "failures": {}, "published": None, "ratios": ratio}
    return {"key": title, "title": title, "group": group, "times": times, **plain, **more}


FOUND = {
    "cpu": "a CPU, 2 cores",
    "threads": 2,
    "date": "2026-11-23",
    "rounds": 5,
    "versions": {"numpy": "2.4", "torch": "2.13"},
    "rows": [
        row("exp forward", "ops-forward", {"ours eager": 250.0, "torch eager": 1000.0}),
        row("sum forward", "ops-forward", {"ours eager": 9.0, "torch eager": 2.25}),
        row(
            "Softmax forward", "tensorgrad-forward", {"ours eager": 6.0, "torch eager": 4.0},
            published=17.1162,
        ),
        row(
            "a step", "steps", {"ours eager": 90.0, "ours compiled": 60.0, "torch eager": 120.0},
            failures={"torch.compile": "RuntimeError: no\nmore"},
        ),
        row(
            "a step", "memory", {}, key="memory-step", ratios={"ours eager": 0.5},
            peaks={"ours eager": 3 << 20, "torch eager": 6 << 20},
            wholes={"ours eager": 90 << 20, "torch eager": 400 << 20},
        ),
    ],
}  # fmt: skip


def test_the_page_says_what_was_found() -> None:
    lines = cpu_page.page(FOUND, "pictures").splitlines()
    assert lines[0].endswith("beside PyTorch: a CPU, 2 cores")
    for line in (
        "Measured on 2026-11-23: numpy 2.4, torch 2.13.",
        "| ops-forward | ours eager | 1.00 | 1 of 2 | 4.00 sum forward |",
        "| work | ours eager | torch eager | ours eager / torch |",
        "| exp forward | 250 | 1000 | 0.25 |",
        "| sum forward | 9.00 | 2.25 | 4.00 |",
        "| work | ours eager | torch eager | ours eager / torch | tensorgrad / torch |",
        "| Softmax forward | 6.00 | 4.00 | 1.50 | 17.1 |",
        "| a step | 90.0 | 60.0 | 120 | 0.75 | 0.50 |",
        "| a step | 3.0 (90) | 6.0 (400) | 0.50 |",
        "* a step, torch.compile: RuntimeError: no",
    ):
        assert line in lines, line


def test_the_same_figures_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        file, folder, page = (tmp_path / name / each for each in ("json", "pictures", "page"))
        file.write_text(json.dumps(FOUND))
        command = ["report", str(file), "--pictures", str(folder), "--page", str(page)]
        monkeypatch.setattr("sys.argv", command)
        report.main()
        files = [page, folder / "functions.svg", folder / "steps.svg"]
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]
    functions, steps = (picture.decode() for picture in written[0][1:])
    assert "Softmax" in functions and "a step" not in functions
    assert "a step, memory" in steps and "ours compiled" in steps


def test_ratios_are_of_rounds_and_their_means_of_groups() -> None:
    times = {"ours eager": [1.0, 8.0, 3.0], "torch eager": [2.0, 4.0, 4.0], "torch.compile": [1.0]}
    assert ratios(times) == {"ours eager": 0.75}
    assert ratios({"ours eager": [1.0]}) == {}
    apart = row("exp", "ops", {"ours eager": 3.0, "ours compiled": 4.0, "torch eager": 2.0})
    apart["ratios"] = {"ours compiled": 1.9}
    complete(apart)
    assert apart["ratios"] == {"ours eager": 1.5, "ours compiled": 1.9}
    found = means(FOUND["rows"])
    assert found["ops-forward", "ours eager"] == pytest.approx(1)
    assert found["steps", "ours compiled"] == pytest.approx(0.5)


def test_tables_with_and_without_an_accelerator_are_joined() -> None:
    plain = {**FOUND, "rows": FOUND["rows"][:1]}
    times = {"ours numba eager": 100.0, "torch eager": 900.0}
    with_it = {**plain, "versions": {"numba": "0.68"}, "rows": [row("exp forward", "", times)]}
    (found,) = joined([plain, with_it])["rows"]
    assert found["ratios"] == {"ours eager": 0.25, "ours numba eager": pytest.approx(1 / 9)}
    assert found["group"] == "ops-forward"
    with pytest.raises(ValueError, match="different machines"):
        joined([plain, {**plain, "threads": 1}])


def test_rows_by_name_and_group() -> None:
    rows = table(tlc)
    assert list(chosen(rows, ["softmax"], [])) == [f"softmax-{part}" for part in PARTS]
    assert {row.group for row in chosen(rows, [], ["ops"]).values()} == {
        f"ops-{part}" for part in PARTS
    }
    assert list(chosen(rows, ["gpt-mini", "mlp-b32"], ["steps"])) == ["mlp-b32", "gpt-mini"]
    assert chosen(rows, [], []) == rows and rows.keys() > ROWS.keys()
    groups = [row.group for row in rows.values()]
    assert groups == sorted(groups, key=groups.index)  # those of a group follow each other
    for names in (["soft"], []), ([], ["op"]):
        with pytest.raises(ValueError, match="no row or group"):
            chosen(rows, *names)


@pytest.mark.parametrize("name", CHEAP)
def test_rows_run_over_both_libraries(name: str) -> None:
    for each in chosen(table(tlc), [name], []).values():
        shapes = []
        for lib in LIBRARIES:
            function, arguments = each.work(lib)
            result = function(*arguments)
            results = result if isinstance(result, tuple) else [result]
            shapes.append([tuple(y.shape) for y in results if y is not None])
        assert shapes[0] == shapes[1]


@pytest.mark.parametrize("lib", LIBRARIES)
def test_together_gives_all_gradients(lib: Any) -> None:
    linear = lib.nn.Linear(3, 2)
    x = lib.rand(4, 3)
    forward, both = together(lib, linear, x, parameters=linear.parameters())
    assert not forward().requires_grad and x.grad is None
    of_x, of_weight, of_bias = both()
    assert (of_x.shape, of_weight.shape, of_bias.shape) == (x.shape, (2, 3), (2,))
    assert [tuple(g.shape) for g in both()] == [(4, 3), (2, 3), (2,)]  # again, from a new graph


@pytest.mark.parametrize("name", ["lstm", "gpt"])
def test_language_models_are_the_same_in_both(name: str) -> None:
    ours, theirs = (language.model(lib, name) for lib in LIBRARIES)
    state = {key: tlc.from_numpy(value.numpy()) for key, value in theirs.state_dict().items()}
    ours.load_state_dict(state)
    words = np.arange(24).reshape(2, 12) * 7 % language.WORDS
    mine = ours(tlc.from_numpy(words)).detach().numpy()
    others = theirs(torch.from_numpy(words)).detach().numpy()
    assert mine.shape == (24, language.WORDS)
    np.testing.assert_allclose(mine, others, rtol=1e-4, atol=1e-5)


def test_a_step_of_words_learns() -> None:
    step, batch = training(tlc, "gpt", 1, device="cpu")
    losses = [step(*batch).item() for _ in range(4)]
    assert losses[-1] < losses[0] - 0.1


def test_published_ratios_are_of_rows() -> None:
    assert {key.rpartition("-")[0] for key in tensorgrad.ROWS} == tensorgrad.PUBLISHED.keys()
    assert tensorgrad.published("tg-softmax-512-forward") == 21.2956
    both = tensorgrad.published("tg-conv-16-forward+backward")
    assert both == pytest.approx((0.27 + 1.4) / (0.27 / 5.28848 + 1.4 / 9.82634))
    assert tensorgrad.published("softmax-forward") is None


def test_a_turn_begins_when_threads_rest() -> None:
    until = time.perf_counter() + 0.08

    def spin() -> None:
        while time.perf_counter() < until:
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    timing.settle()
    assert time.perf_counter() >= until
    thread.join()


def test_calls_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(timing, "settle", lambda: done.append("rest"))

    def call() -> None:
        done.append("call")
        time.sleep(0.02 if len(done) == 5 else 0)  # one call is disturbed

    assert timing.undisturbed(call, 8) < 0.01
    assert done == ["rest", *["call"] * 9]
    done.clear()
    timing.undisturbed(call, 1)
    assert done == ["rest", "call"]


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory as Linux counts it")
def test_memory_of_calls() -> None:
    size = 32 << 20

    def call() -> None:
        pages = mmap.mmap(-1, size)  # of the kernel: malloc may have resident ones to spare
        np.frombuffer(pages, np.uint8)[:] = 1

    grown, whole = resident.growth(call)
    assert 0.9 * size < grown < 2 * size and whole > grown  # the kernel counts by many pages


def test_a_table_of_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no(lib: Any) -> Callable[[], Any]:
        raise RuntimeError("no")

    monkeypatch.setattr(timing, "settle", timing.nothing)
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
    lost = ROWS["adam"]._replace(work=no)
    monkeypatch.setattr(cpu_table, "table", lambda lib: {"lost": lost, **tensorgrad.ROWS})
    options = argparse.Namespace(
        against="torch", only=["lost", "tg-softmax-64"], groups=[], contenders=[], compile=None,
        rounds=1, out=tmp_path / "table.json",
    )  # fmt: skip
    cpu_table.run(options)
    printed = capsys.readouterr().out
    assert "RuntimeError: no" in printed and "geometric mean" in printed
    found = json.loads(options.out.read_text())
    lost_row, forward, both = found["rows"]
    assert len(lost_row["failures"]) == 2 and not lost_row["ratios"]
    assert forward["published"] == 9.71885 and len(both["ratios"]) == 1
    assert cpu_page.page(found, "pictures").count("Softmax 128x64 forward+backward") == 2
