"""Where one inference of ResNet-20 spends its time and its memory.

    python -m examples.resnet20_profile --mode cpu --profile time --output runs/cpu_time.csv

The ending of --output does not matter: beside `cpu_time.csv`, with a line for each layer, it writes
`cpu_time.json` with everything and `cpu_time.png`, a chart of the layers; of memory also
`..._timeline.png`.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import tensorflow_lite_clone as torch
from examples.cifar.train import positive
from examples.resnet20_profile import study
from examples.resnet20_profile.subject import UNREADABLE, network, picture

MOST_LINES = 15  # of source, that are printed


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        prog="python -m examples.resnet20_profile",
    )
    options.add_argument("--mode", choices=study.MODES, default="cpu")
    options.add_argument("--profile", choices=("time", "memory"), default="time")
    options.add_argument("--trials", type=positive, default=10000, help="runs that are averaged")
    options.add_argument("--weights", type=Path, help=".npz or .pth; default: untrained ones")
    options.add_argument("--data", type=Path, help="folder with CIFAR-10; default: random numbers")
    options.add_argument("--output", type=Path, help="default: runs/resnet20/MODE_PROFILE")
    return options


def main() -> None:
    command = parser()
    options = command.parse_args()
    mode = options.mode
    if mode == "cuda-graph" and options.profile == "memory":
        command.error("--mode cuda-graph has times only: the graph is one thing, without layers")
    if mode != "cpu" and not torch.cuda.is_available():
        command.error(f"--mode {mode} needs a GPU, and there is none, or CuPy is not installed")
    try:
        model, about = network(options.weights)
    except UNREADABLE as error:
        command.error(f"{options.weights} does not hold weights of ResNet-20: {error}")
    try:
        x, about["input"] = picture(options.data)
    except (FileNotFoundError, RuntimeError) as error:
        command.error(str(error))
    about["answer"] = model(x).argmax(1).item()
    about |= {"mode": mode, "profile": options.profile, "trials": options.trials}
    stem = options.output or Path("runs/resnet20") / f"{mode}_{options.profile}"
    stem = stem.with_suffix("")
    stem.parent.mkdir(parents=True, exist_ok=True)
    model, x = study.placed(model, x, mode)
    if mode == "cuda-graph":
        found = study.graph_times(model, x, options.trials)
        print_whole(mode, found["whole"])
        print_whole("cuda", found["eager"])
        print(f"the graph is {found['gain']:.2f} times as fast")
    elif options.profile == "time":
        report, found = study.times(model, x, mode, options.trials)
        report.print()
        print_whole(mode, found["whole"])
        write_layers(report, stem, "time", found)
    else:
        report, events, found = study.memory(model, x)
        report.print()
        print_lines(found["lines"])
        write_layers(report, stem, "memory", found)
        draw(torch.profiler.memory_timeline, events, stem.with_name(f"{stem.name}_timeline.png"))
    path = stem.with_suffix(".json")
    path.write_text(json.dumps(about | {"machine": study.surroundings()} | found, indent=1) + "\n")
    print(f"written: {path} and what is beside it")


def print_whole(mode: str, whole: dict[str, float]) -> None:
    print(
        f"{mode}: one inference takes {whole['median']:.1f} us (median), {whole['mean']:.1f} "
        f"(mean), {whole['p10']:.1f} to {whole['p90']:.1f} (the middle eight tenths)"
    )


def print_lines(lines: list[dict[str, Any]]) -> None:
    """What source lines took, the first of them."""
    print(f"{'taken':>12} {'at the peak':>12}  device  line")
    for line in lines[:MOST_LINES]:
        taken, peak = line["allocated"], line["live_at_peak"]
        print(f"{taken:12,} {peak:12,}  {line['device']:6}  {line['where']}")


def write_layers(
    report: torch.profiler.LayerReport, stem: Path, what: str, found: dict[str, Any]
) -> None:
    """CSV and chart of the layers, which also go into what was `found`."""
    found["layers"] = report.as_dict()
    report.to_csv(stem.with_suffix(".csv"))
    draw(report.plot, stem.with_suffix(".png"), what)


def draw(function: Any, *arguments: Any) -> None:
    """Make a chart where matplotlib is installed, and say so where it is not."""
    try:
        function(*arguments)
    except ImportError as error:
        print(f"no chart: {error}")


if __name__ == "__main__":
    main()
