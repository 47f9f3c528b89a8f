"""The measurements; each gives a report of layers and what else the JSON file holds."""

import time
from pathlib import Path
from typing import Any

import tensorflow_lite_clone as torch
from examples.resnet20_profile.placement import first_convolutions_on
from examples.resnet20_profile.timing import captured, microseconds

nn, profiler = torch.nn, torch.profiler
ROOT = Path(__file__).parents[2]
MODES = ("cpu", "cuda", "first-conv-cuda", "cuda-graph")


def surroundings() -> dict[str, Any]:
    """What the figures depend on beside the program."""
    found = torch.utils.collect_env.get_env_info()
    return {
        "cpu": found.cpu_info,
        "threads": found.num_threads,
        "gpu": torch.cuda.get_device_name() if found.is_cuda_available else None,
        "python": found.python_version.split()[0],
        "numpy": found.libraries["numpy"],
        "cupy": found.libraries["cupy"],
        "date": time.strftime("%Y-%m-%d"),
    }


def placed(model: nn.Module, x: torch.Tensor, mode: str) -> tuple[nn.Module, torch.Tensor]:
    """Model and input where the mode has them."""
    if mode == "first-conv-cuda":
        first_convolutions_on(model, "cuda", home="cpu")
    elif mode != "cpu":
        model, x = model.to("cuda"), x.to("cuda")
    return model, x


def times(
    model: nn.Module, x: torch.Tensor, mode: str, trials: int
) -> tuple[profiler.LayerReport, dict[str, Any]]:
    """Single inferences as a whole, unwatched, and then layer by layer."""
    device = "cpu" if mode == "cpu" else "cuda"
    whole = microseconds(lambda: model(x), trials, device, mode)
    return profiler.layers(model, x, trials=trials), {"whole": whole}


def graph_times(model: nn.Module, x: torch.Tensor, trials: int) -> dict[str, Any]:
    """Single inferences as replays of one CUDA graph, and as calls from Python beside them."""
    eager = microseconds(lambda: model(x), trials, "cuda", "cuda")
    graph, y = captured(model, x)
    whole = microseconds(graph.replay, trials, "cuda", "cuda-graph")
    return {
        "whole": whole,
        "eager": eager,
        "gain": eager["median"] / whole["median"],
        "largest_difference": (model(x) - y).abs().max().item(),
    }


def memory(
    model: nn.Module, x: torch.Tensor
) -> tuple[profiler.LayerReport, list[tuple], dict[str, Any]]:
    """What one inference takes by layer; its memory events; by source line, and at most."""
    report = profiler.layers(model, x, trials=1, progress=False)
    on_gpu = any(parameter.is_cuda for parameter in model.parameters())
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    with profiler.profile(profile_memory=True) as found:
        model(x)
    events = [
        event._replace(where=event.where.removeprefix(f"{ROOT}/"))
        for event in found.memory_events()
    ]
    lines = [line._asdict() for line in profiler.memory_by_line(events)]
    peaks: dict[str, dict[str, int]] = {}
    for line in lines:
        peak = peaks.setdefault(line["device"], {"before": 0, "peak": 0})
        peak["peak"] += line["live_at_peak"]
        if line["where"] == "before the profile":
            peak["before"] += line["allocated"]
    pool = None
    if on_gpu:
        pool = {
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    return report, events, {"peaks": peaks, "pool": pool, "lines": lines}
