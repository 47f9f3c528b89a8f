"""``python -m tests.bench.observed``: what a profiler costs, ours and torch's.

On the CPU: microseconds that an event adds, over the cases of the group `overhead`. With
``--device cuda``: how much longer training steps take on the device while they are profiled.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "2")

import torch  # noqa: E402
import torch.profiler  # noqa: E402

import tensorflow_lite_clone as tlc  # noqa: E402
from tests.bench import overhead  # noqa: E402


def main() -> None:
    """Print a table for the device."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.observed", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    if options.device == "cuda":
        steps(options.rounds)
    else:
        events(options.rounds)


def per_call(call: Callable[[], Any], count: int) -> float:
    """Microseconds of one call."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e6


def cost(lib: Any, call: Callable[[], Any], rounds: int) -> tuple[float, float, int]:
    """Microseconds of a call without and with a profile, interleaved; and its events."""
    activities = [lib.profiler.ProfilerActivity.CPU]
    with lib.profiler.profile(activities=activities) as found:
        call()
    events = len(found.events())
    count = max(200, int(5e4 / per_call(call, 50)))
    without, within = [], []
    for _ in range(rounds):
        without.append(per_call(call, count))
        with lib.profiler.profile(activities=activities):
            within.append(per_call(call, count))
    return statistics.median(without), statistics.median(within), events


def events(rounds: int) -> None:
    """What an event adds on the CPU."""
    print(f"CPU, medians of {rounds} rounds, microseconds; torch {torch.__version__}")
    print(f"{'case':32}{'off':>8}{'on':>8}{'events':>8}{'each':>7}{'torch each':>12}")
    for ours, theirs in zip(overhead.cases(tlc), overhead.cases(torch), strict=True):
        off, on, count = cost(tlc, ours[1], rounds)
        other_off, other_on, other = cost(torch, theirs[1], max(3, rounds // 3))
        each = (other_on - other_off) / max(other, 1)
        print(
            f"{ours[0]:32}{off:8.2f}{on:8.2f}{count:8d}{(on - off) / count:7.2f}{each:12.2f}",
            flush=True,
        )


def steps(rounds: int) -> None:
    """How much longer steps take on the GPU."""
    print(f"{torch.cuda.get_device_name()}, medians of {rounds} rounds, ms a step")
    print(f"{'step':36}{'options':26}{'off':>9}{'on':>9}{'more':>8}")
    variants: dict[str, dict[str, bool]] = {
        "": {},
        "with_kernels": {"with_kernels": True},
        "shapes, flops, memory": {
            "record_shapes": True, "with_flops": True, "profile_memory": True,
        },
    }  # fmt: skip
    for name, step in training_steps().items():
        for label, options in variants.items():
            without, within = [], []
            for _ in range(rounds):
                without.append(milliseconds(step))
                with tlc.profiler.profile(**options):  # type: ignore[arg-type]
                    within.append(milliseconds(step))
            off, on = statistics.median(without), statistics.median(within)
            print(f"{name:36}{label:26}{off:9.3f}{on:9.3f}{100 * (on / off - 1):7.1f}%", flush=True)


def milliseconds(step: Callable[[], Any], count: int = 10) -> float:
    """The device's time for a step, between events."""
    begin, end = [tlc.cuda.Event(enable_timing=True) for _ in range(2)]
    tlc.cuda.synchronize()
    begin.record()
    for _ in range(count):
        step()
    end.record()
    tlc.cuda.synchronize()
    return begin.elapsed_time(end) / count


def training_steps() -> dict[str, Callable[[], None]]:
    """Steps that keep the GPU busy, and one that keeps it waiting for the host."""
    from tensorflow_lite_clone.vision.models import resnet18

    def step_of(model: Any, x: Any, classes: int) -> Callable[[], None]:
        model = model.cuda()
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        y = tlc.randint(0, classes, (len(x),), device="cuda")

        def step() -> None:
            optimizer.zero_grad()
            tlc.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

        for _ in range(3):
            step()
        return step

    small = tlc.nn.Sequential(
        tlc.nn.Conv2d(1, 16, 3), tlc.nn.ReLU(), tlc.nn.Flatten(), tlc.nn.Linear(16 * 26 * 26, 10)
    )
    big = tlc.randn(128, 3, 224, 224, device="cuda")
    digits = tlc.randn(128, 1, 28, 28, device="cuda")
    eager = step_of(resnet18(num_classes=1000), big, 1000)
    compiled = tlc.compile(step_of(resnet18(num_classes=1000), big, 1000))
    for _ in range(3):
        compiled()
    return {
        "ResNet-18, 128 x 224 x 224": eager,
        "ResNet-18, captured": compiled,
        "small CNN, 128 x 28 x 28 (host-bound)": step_of(small, digits, 10),
    }


if __name__ == "__main__":
    main()
