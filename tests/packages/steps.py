"""The steps of a job: each prints what it computed, as one line of JSON, or how it failed.

A job is a program for PyTorch that imports one package. It stands in ``jobs/DISTRIBUTION/`` and is
run by PyTorch and by this package; `tests.tools.packages` compares what its steps print:

    from steps import step

    @step("a linear layer, its gradient")
    def _():
        layer = torch.nn.Linear(3, 2)
        layer(torch.ones(4, 3)).sum().backward()
        return layer.weight.grad

A step returns what is to be compared: numbers, text, tensors, arrays, and lists, tuples and
mappings of these. It begins with the same seed everywhere; what a job draws outside of steps is not
seeded.
"""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

MARK = "@step "
PACKAGE = "tensorflow_lite_clone"
#: So many numbers of a tensor are compared, evenly spread over it, besides its norm.
SAMPLES = 64


def step(name: str, *arguments: Any, refused: bool = False) -> Callable[[Callable[..., Any]], None]:
    """Run the function below at once, with the arguments, and print what it returns.

    Where `refused`, it is to raise an exception, whose type and first line are compared.
    """

    def run(function: Callable[..., Any]) -> None:
        for seed in (torch.manual_seed, random.seed, np.random.seed):
            seed(0)
        line: dict[str, Any] = {"step": name}
        start = time.perf_counter()
        try:
            line["value"] = plain(function(*arguments))
            if refused:
                line["error"] = "nothing was raised"
        except Exception as error:
            # A type of this package's own counts as the one of PyTorch or Python that it extends.
            kinds = [k for k in type(error).__mro__ if k.__module__.partition(".")[0] != PACKAGE]
            text = f"{kinds[0].__name__}: {next(iter(str(error).splitlines()), '')}"
            if refused:
                line["value"] = text
            else:
                line["error"] = text
                traceback.print_exc()
        line["seconds"] = round(time.perf_counter() - start, 2)
        print("\n" + MARK + json.dumps(line), flush=True)

    return run


def python() -> list[str]:
    """How a job starts another program: by PyTorch, or by this package."""
    here = "+tlc" in torch.__version__
    return [sys.executable, *(["-m", "tensorflow_lite_clone"] if here else [])]


def plain(value: Any) -> Any:
    """A value as JSON has it; of a tensor its shape, dtype, norm, and `SAMPLES` of its numbers."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, torch.Tensor):
        value = value.detach()
        dtype = str(value.dtype).removeprefix("torch.")
        if value.layout is not torch.strided:
            value = value.to_dense()
        if value.dtype in (torch.bfloat16, torch.float16):
            value = value.float()
        return _array(value.resolve_conj().resolve_neg().cpu().numpy(), dtype)
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(np.asarray(value), str(value.dtype))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(each) for each in (sorted(value) if isinstance(value, set) else value)]
    if isinstance(value, (torch.Size, torch.dtype, torch.device)):
        return str(value)
    raise TypeError(f"a step returned {type(value).__name__}, which cannot be compared")


def _array(array: np.ndarray, dtype: str) -> dict[str, Any]:
    flat = array.reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    where = np.linspace(0, max(flat.size - 1, 0), min(flat.size, SAMPLES)).astype(int)
    found: dict[str, Any] = {"shape": list(array.shape), "dtype": dtype}
    found["numbers"] = [plain(each) for each in flat[where].tolist()]
    if flat.dtype.kind == "f":
        found["norm"] = plain(float(np.linalg.norm(flat.astype(np.float64))))
    return found
