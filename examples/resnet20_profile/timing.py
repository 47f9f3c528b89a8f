"""How long one inference takes, as a whole."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorflow_lite_clone as torch
from examples.cifar.train import progress

nn = torch.nn
WARMUP = 20


def microseconds(run: Callable[[], Any], trials: int, device: str, name: str) -> dict[str, float]:
    """Mean, median and the first and last tenth of single runs.

    The device is waited for at the end of each, as whoever wants an answer does.
    """
    wait = torch.cuda.synchronize if device == "cuda" else torch.cpu.synchronize
    for _ in range(WARMUP):
        run()
    wait()
    taken = []
    for _ in progress(range(trials), name):
        begin = time.perf_counter()
        run()
        wait()
        taken.append((time.perf_counter() - begin) * 1e6)
    tenths = statistics.quantiles(taken, n=10, method="inclusive") if trials > 1 else taken * 9
    return {
        "mean": statistics.fmean(taken),
        "median": statistics.median(taken),
        "p10": tenths[0],
        "p90": tenths[-1],
    }


def captured(model: nn.Module, x: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    """One inference as a CUDA graph, and the tensor that each replay writes."""
    model(x)  # compiles the kernels
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    return graph, y
