"""The measurements, by mode and profile; each gives what the JSON file holds."""

import argparse
import time
from typing import Any

import tensorflow_lite_clone as torch
from examples.resnet20_profile.placement import first_convolutions_on
from examples.resnet20_profile.timing import captured, microseconds

nn = torch.nn
MODES = ("cpu", "cuda", "first-conv-cuda", "cuda-graph")


def surroundings() -> dict[str, Any]:
    """What the figures depend on beside the program."""
    found = torch.utils.collect_env.get_env_info()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": found.cpu_info,
        "threads": found.num_threads,
        "gpu": torch.cuda.get_device_name() if found.is_cuda_available else None,
        "python": found.python_version.split()[0],
        "libraries": {name: found.libraries[name] for name in ("numpy", "cupy")},
        "version": found.version,
    }


def placed(model: nn.Module, x: torch.Tensor, mode: str) -> tuple[nn.Module, torch.Tensor]:
    """Model and input where the mode has them."""
    if mode == "cpu":
        return model, x
    if mode == "first-conv-cuda":
        first_convolutions_on(model, "cuda", home="cpu")
        return model, x
    return model.to("cuda"), x.to("cuda")


def times(model: nn.Module, x: torch.Tensor, options: argparse.Namespace) -> dict[str, Any]:
    """Single inferences as a whole, unwatched, and their layers."""
    device = "cpu" if options.mode == "cpu" else "cuda"
    whole = microseconds(lambda: model(x), options.trials, device, options.mode)
    report = torch.profiler.layers(model, x, trials=options.trials)
    return {"whole_us": whole, "layers": report}


def graph_times(model: nn.Module, x: torch.Tensor, trials: int) -> dict[str, Any]:
    """Single inferences as replays of one CUDA graph, and called from Python for comparison."""
    eager = microseconds(lambda: model(x), trials, "cuda", "cuda")
    graph, y = captured(model, x)
    whole = microseconds(graph.replay, trials, "cuda", "cuda-graph")
    difference = (model(x) - y).abs().max().item()
    return {"whole_us": whole, "eager_us": eager, "largest_difference": difference}
