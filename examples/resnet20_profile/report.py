"""A Markdown page from the JSON files of the study.

    python -m examples.resnet20_profile.report runs/resnet20 --output runs/resnet20.md

The charts that lie beside the JSON files are copied into a folder beside the page, which is named
after it.
"""

import argparse
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from examples.resnet20_profile.study import MODES

MOST_LINES = 10  # of source
Found = dict[str, dict[str, Any]]  # by mode


def read(folder: Path) -> tuple[Found, Found]:
    """What was found about time and about memory, by mode; other JSON files are passed over."""
    times: Found = {}
    memory: Found = {}
    for path in sorted(folder.glob("*.json")):
        try:
            found = json.loads(path.read_text())
        except ValueError as error:
            raise SystemExit(f"{path} is no JSON: {error}") from None
        if isinstance(found, dict) and found.get("mode") in MODES and "profile" in found:
            found["chart"] = path.with_suffix(".png")
            kind = times if found["profile"] == "time" else memory
            kind[found["mode"]] = found
    return in_order(times), in_order(memory)


def in_order(found: Found) -> Found:
    return {mode: found[mode] for mode in MODES if mode in found}


# -- words ----------------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[str]], words: int = 1) -> str:
    """A Markdown table; the first columns hold words, the others numbers."""
    head = list(head)
    line = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, line, *rows)) + "\n"


def us(value: float) -> str:
    """Microseconds with three digits, or all those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def kib(value: int) -> str:
    return f"{value / 1024:,.1f}"


def layer_name(row: dict[str, Any]) -> str:
    """A layer's name, also if copies were put around it."""
    return row["name"].removesuffix(".there")


def kind_of(row: dict[str, Any]) -> str:
    return "between modules" if row["role"] == "own" else row["type"]


# -- sections -------------------------------------------------------------------------------------


def circumstances(found: list[dict[str, Any]]) -> str:
    """Machines, weights and input, each once."""
    lines = []
    for one in found:
        machine = one["machine"]
        where = f"{machine['cpu']}, threads: {machine['threads']}"
        if machine["gpu"]:
            where += f", {machine['gpu']}"
        libraries = f"Python {machine['python']}, NumPy {machine['numpy']}"
        if machine["cupy"]:
            libraries += f", CuPy {machine['cupy']}"
        weights = one["weights"]
        if "test_accuracy" in one:
            weights += f" ({one['test_accuracy']:.2%} of the test pictures)"
        lines.append(
            f"* {machine['date']}: {where}; {libraries}. Weights: {weights}. "
            f"Input: {one['input']}; answer: class {one['answer']}."
        )
    return "\n".join(dict.fromkeys(lines)) + "\n"


def whole_times(times: Found) -> str:
    """One inference in each mode."""
    rows = []
    for mode, found in times.items():
        whole = found["whole"]
        figures = [us(whole[key]) for key in ("median", "mean", "p10", "p90")]
        rows.append([f"`{mode}`", *figures, f"{found['trials']:,}"])
    text = table(("mode", "median, us", "mean", "10 %", "90 %", "trials"), rows)
    if "cuda-graph" in times:
        graph = times["cuda-graph"]
        text += (
            f"\nThe graph is {graph['gain']:.2f} times as fast as the same inference called from "
            f"Python beside it ({us(graph['eager']['median'])} us); the answers differ by at most "
            f"{graph['largest_difference']:.2g}.\n"
        )
    return text


def columns(times: Found) -> dict[str, tuple[Found, str]]:
    """Titles of times of layers: whose report, and which field of a row."""
    found = {}
    for mode, one in times.items():
        if "layers" in one:
            found[f"`{mode}`, host"] = one, "forward_host"
            if any(row["forward_device"] for row in one["layers"]["rows"]):
                found[f"`{mode}`, GPU"] = one, "forward_device"
    return found


def times_by_kind(times: Found) -> str:
    """Sums over layers of a type, with their share."""
    sums: dict[str, dict[str, float]] = {}
    shown = columns(times)
    for title, (one, field) in shown.items():
        for row in one["layers"]["rows"]:
            of_kind = sums.setdefault(kind_of(row), {})
            taken = row[field]["median"] if row[field] else 0.0
            of_kind[title] = of_kind.get(title, 0.0) + taken
    totals = {title: sum(of_kind.get(title, 0.0) for of_kind in sums.values()) for title in shown}
    rows = [
        [kind, *(share(of_kind.get(title, 0.0), totals[title]) for title in shown)]
        for kind, of_kind in sums.items()
    ]
    rows.append(["**all**", *(us(totals[title]) for title in shown)])
    # what watching adds shows here; a GPU's time is not comparable
    whole = [
        us(one["whole"]["median"]) if "host" in title else "" for title, (one, _) in shown.items()
    ]
    rows.append(["the whole, unwatched", *whole])
    return table(("layers", *shown), rows)


def share(part: float, whole: float) -> str:
    return f"{us(part)} ({part / whole:.0%})" if part else ""


def times_by_layer(times: Found) -> str:
    """Every layer's median time in every mode."""
    shown = columns(times)
    cells: dict[str, dict[str, str]] = {}
    for one, _ in reversed(shown.values()):  # that with the most rows decides the order
        for row in one["layers"]["rows"]:
            cells.setdefault(layer_name(row), {})["type"] = kind_of(row)
    for title, (one, field) in shown.items():
        for row in one["layers"]["rows"]:
            if row[field]:
                cells[layer_name(row)][title] = us(row[field]["median"])
    rows = [
        [f"`{name}`", of_layer["type"], *(of_layer.get(title, "") for title in shown)]
        for name, of_layer in cells.items()
    ]
    return table(("layer", "type", *shown), rows, words=2)


def copies(times: Found) -> str:
    """The copies between devices in one inference of the mixed model."""
    mixed = times["first-conv-cuda"]["layers"]
    copying = [row for row in mixed["rows"] if row["copies"]]
    taken = [row["forward_host"]["median"] for row in copying]
    rows = [
        [f"`{row['name']}`", str(row["copies"]), kib(row["copied"]), us(time)]
        for row, time in zip(copying, taken, strict=True)
    ]
    total = mixed["total"]
    rows.append(["**all**", str(total["copies"]), kib(total["copied"]), us(sum(taken))])
    return table(("layer", "copies", "KiB", "host, us"), rows)


def memory_sums(memory: Found) -> str:
    """What is in use before one inference and at most, by device."""
    rows = []
    for mode, found in memory.items():
        total = found["layers"]["total"]
        for device, peak in found["peaks"].items():
            figures = (peak["before"], peak["peak"], total["memory"], 4 * total["parameters"])
            rows.append([f"`{mode}`", device, *map(kib, figures)])
    head = ("mode", "device", "before, KiB", "at most", "given by layers", "parameters")
    text = table(head, rows, words=2)
    for mode, found in memory.items():
        if found["pool"]:
            text += (
                f"\nIn mode `{mode}` the GPU's pool had {kib(found['pool']['allocated'])} KiB in "
                f"use at most, and {kib(found['pool']['reserved'])} KiB reserved.\n"
            )
    return text


def memory_by_layer(found: dict[str, Any]) -> str:
    rows = [
        [f"`{layer_name(row)}`", kind_of(row), kib(row["memory"]), kib(4 * row["parameters"])]
        for row in found["layers"]["rows"]
        if row["memory"] or row["parameters"]
    ]
    return table(("layer", "type", "gives, KiB", "parameters, KiB"), rows, words=2)


def memory_by_line(found: dict[str, Any]) -> str:
    rows = [
        [f"`{line['where']}`", line["device"], kib(line["allocated"]), kib(line["live_at_peak"])]
        for line in found["lines"][:MOST_LINES]
    ]
    return table(("line", "device", "takes, KiB", "at the peak"), rows, words=2)


def charts(found: Found, folder: Path, name: str) -> str:
    """Links to the charts, which are copied into `folder`."""
    text = ""
    for mode, one in found.items():
        chart = one["chart"]
        for path in (chart, chart.with_name(f"{chart.stem}_timeline.png")):
            if path.exists():
                folder.mkdir(parents=True, exist_ok=True)
                if path.resolve() != (folder / path.name).resolve():
                    shutil.copyfile(path, folder / path.name)
                what = "over time" if path is not chart else "by layer"
                text += f"* [`{mode}`, {name} {what}]({folder.name}/{path.name})\n"
    return text


def page(times: Found, memory: Found, folder: Path) -> str:
    """The whole page, which lies beside `folder`, where the charts go."""
    readme = os.path.relpath(Path(__file__).with_name("README.md"), folder.parent)
    parts = [
        "# ResNet-20 at batch 1: where time and memory go\n",
        f"Made by `examples/resnet20_profile`; its [README]({readme}) says how the figures are "
        "measured and what they mean.\n",
        circumstances([*times.values(), *memory.values()]),
    ]
    if times:
        parts += ["## One inference\n", whole_times(times)]
    if columns(times):
        remark = "Medians of all trials, in microseconds.\n"
        parts += ["## Time by type of layer\n", remark, times_by_kind(times)]
        parts += ["## Time by layer\n", charts(times, folder, "time"), remark]
        parts += [times_by_layer(times)]
    if "first-conv-cuda" in times:
        parts += ["## Copies of the mixed model, in one inference\n", copies(times)]
    if memory:
        parts += ["## Memory\n", memory_sums(memory), charts(memory, folder, "memory")]
        for mode, found in memory.items():
            parts += [f"### Memory by line, `{mode}`\n", memory_by_line(found)]
        mode, found = next(iter(memory.items()))
        parts += [f"### Memory by layer, `{mode}`\n", memory_by_layer(found)]
    return "\n".join(part for part in parts if part)


def main() -> None:
    command = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        prog="python -m examples.resnet20_profile.report",
    )
    command.add_argument("folder", type=Path, help="holds the JSON files of the study")
    command.add_argument("--output", type=Path, default=Path("runs/resnet20.md"))
    options = command.parse_args()
    times, memory = read(options.folder)
    if not times and not memory:
        command.error(f"{options.folder} holds no JSON file of the study")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = page(times, memory, options.output.with_suffix(""))
    options.output.write_text(text)
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
