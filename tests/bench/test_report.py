"""The report on a few made-up figures, the choice of rows, and what is compared in turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="pictures need Matplotlib")

from tests.bench import report  # noqa: E402
from tests.bench.rows import ROWS, chosen  # noqa: E402
from tests.bench.stored import joined  # noqa: E402
from tests.bench.timing import in_turns  # noqa: E402


def row(title: str, times: dict[str, float], **more: Any) -> dict[str, Any]:
    plain = {"key": title, "goal": 40, "unit": "tf32", "spread": {}, "peaks": {}, "failures": {}}
    return {**plain, "title": title, "times": times, "flops": 8e9, "bytes": 1e8, **more}


FOUND = {
    "gpu": "NVIDIA H200",
    "date": "2026-11-23",
    "rounds": 7,
    "versions": {"torch": "2.11", "JAX": "0.11"},
    "roof": {"bytes": 4e12, "tf32": 4e14, "float32": 5e13},
    "rows": [
        row(
            "conv forward",
            {"ours captured": 50.0, "torch eager": 75.25, "torch NHWC graph": 55.0, "JAX": 260.0},
            peaks={"ours captured": 3 << 20, "torch eager": 2 << 20, "torch NHWC graph": 4 << 20},
        ),
        row("step", {"ours eager": 300.0, "ours captured": 39.4}, goal=None, flops=0),
        row("lost", {}, failures={"ours captured": "RuntimeError: no\nmore"}),
    ],
}


def test_the_page_says_what_was_found() -> None:
    lines = report.page(FOUND, "pictures").splitlines()
    assert lines[0] == "# Training steps and kernels on one NVIDIA H200"
    assert "Measured on 2026-11-23: torch 2.11, JAX 0.11." in lines
    heads, _, conv, step, lost = [line for line in lines if line.startswith("|")]
    assert heads == (
        "| work | goal | ours eager | ours captured | torch eager | torch NHWC graph | JAX | best "
        "| MiB, ours / torch |"
    )
    assert conv == "| conv forward | 40 |  | **50.0** | 75.2 | 55.0 | 260 | 0.91 | 3.0 / 4.0 |"
    assert step == "| step |  | 300 | **39.4** |  |  |  |  |  |"
    assert lost == "| lost | 40 |  |  |  |  |  |  |  |"
    assert lines[-2:] == [
        "* conv forward: 50.0 us, the goal is 40.",
        "* lost, ours captured: not measured (RuntimeError: no).",
    ]


def test_the_same_figures_give_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for name in ("first", "second"):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(FOUND))
        folder = tmp_path / name / "pictures"
        page = tmp_path / name / "page.md"
        command = ["report", str(file), "--pictures", str(folder), "--page", str(page)]
        folder.parent.mkdir()
        monkeypatch.setattr("sys.argv", command)
        report.main()
        written.append({path.name: path.read_bytes() for path in (page, *folder.iterdir())})
    assert written[0] == written[1]
    assert set(written[0]) == {"page.md", "times.svg", "roofline.svg"}
    bars, roofline = (written[0][name].decode() for name in ("times.svg", "roofline.svg"))
    assert "conv forward" in bars and "5.2" in bars  # a bar that is cut off says its length
    assert "conv forward" in roofline and "step" not in roofline  # it has no operations
    assert all(f"({folder.name}/{name})" in page.read_text() for name in list(written[0])[1:])


def test_tables_that_were_measured_apart_are_joined() -> None:
    def table(versions: dict[str, str], *rows: dict[str, Any], rounds: int = 5) -> dict[str, Any]:
        return {"gpu": "H", "rounds": rounds, "versions": versions, "rows": list(rows)}

    ours = row("a", {"ours": 1.0, "JAX": 9.0}, failures={"torch": "no"}, peaks={"ours": 4})
    apart = {"key": "a", "times": {"JAX": 2.0, "torch": 3.0}, "failures": {}}
    lost = {"key": "b", "times": {}, "failures": {"JAX": "too large"}}
    found = joined(
        [
            table({"torch": "2"}, ours, row("b", {"JAX": 5.0}), rounds=7),
            table({"JAX": "1"}, lost, apart),
        ]
    )
    assert found["versions"] == {"torch": "2", "JAX": "1"} and found["rounds"] == 5
    first, second = found["rows"]
    assert first["times"] == {"ours": 1.0, "JAX": 2.0, "torch": 3.0} and first["title"] == "a"
    assert first["failures"] == {} and first["peaks"] == {"ours": 4} and first["goal"] == 40
    assert second["times"] == {} and second["failures"] == {"JAX": "too large"}
    with pytest.raises(ValueError, match="different machines or versions"):
        joined([table({"torch": "2"}), table({"torch": "3"})])
    with pytest.raises(ValueError, match="different modes: default, max-autotune"):
        joined([{**table({}), "compile": mode} for mode in ("default", "max-autotune")])
    days = [{**table({}), "date": f"2026-11-2{day}"} for day in (3, 1, 2)]
    assert joined(days)["date"] == joined([joined(days), days[0]])["date"]
    assert joined(days)["date"] == "2026-11-21 to 2026-11-23"
    with pytest.raises(ValueError, match="no table says what a is"):
        joined([table({"JAX": "1"}, apart)])


def test_rows_by_name() -> None:
    assert list(chosen(["softmax", "mlp"], False)) == [
        "mlp", "softmax-forward", "softmax-backward", "softmax-bf16-forward",
        "softmax-bf16-backward",
    ]  # fmt: skip
    with_goal = chosen([], False)
    assert all(row.goal for row in with_goal.values()) and "copy" not in with_goal
    assert list(chosen([], True)) == list(ROWS)
    with pytest.raises(ValueError, match="no row 'soft'"):
        chosen(["soft"], False)


def test_turns_go_forwards_and_backwards() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "abc"}
    times = in_turns(calls, rounds=2, budget=0)
    assert {name: len(each) for name, each in times.items()} == {"a": 2, "b": 2, "c": 2}
    assert "".join(order[9:]) == "abccba"
