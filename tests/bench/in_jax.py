"""``python -m tests.bench.in_jax ROW...``: rows of the table under JAX, in a process of its own.

Everything is jitted and waited for. A step gets its state back in the same memory, as an optimizer
in place does. Backward is the faster of two: the pull-back of ``jax.vjp`` from what its forward
kept, and all gradients from the inputs. ``--out FILE`` keeps the figures for
``python -m tests.bench.report TABLE FILE``; rows that it has already are not measured again. A row
that fails ends the program, as the device may be lost for it: it is to be started once more.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from tests.bench import cuda_kernels as of  # noqa: E402
from tests.bench import jax_models as models  # noqa: E402
from tests.bench.stored import Table, keep, today  # noqa: E402

Call = Callable[[], Any]
STEPS = {"mlp": 32, "cnn": 128, "vit": 128, "resnet20": 128, "resnet18": 512, "resnet18-bf16": 512}
BUDGET = 0.02  # seconds of a round
SEEDS = itertools.count()


def normal(*shape: int) -> Any:
    """Numbers that no other array has."""
    return jax.random.normal(jax.random.key(next(SEEDS)), shape)


def step(name: str) -> Call:
    run, state, batch = models.training(name, STEPS[name])

    def call() -> Any:
        nonlocal state
        state, loss = run(state, *batch)
        return state, loss

    return call


def convolution(channels: int, size: int) -> tuple[Callable, tuple]:
    return models.conv, (normal(128, size, size, channels), normal(3, 3, channels, channels))


def attention(half: bool) -> tuple[Callable, tuple]:
    batch, heads, length, width = of.HEADS
    q, k, v = (normal(batch, length, heads, width) for _ in range(3))
    if half:
        q, k, v = (x.astype(jnp.bfloat16) for x in (q, k, v))

    def attend(q: Any, k: Any, v: Any) -> Any:
        implementation = "cudnn" if half and jax.default_backend() == "gpu" else "xla"
        with jax.default_matmul_precision("default" if half else "highest"):
            return jax.nn.dot_product_attention(
                q, k, v, is_causal=True, implementation=implementation
            )

    return attend, (q, k, v)


def function(name: str) -> tuple[Callable, tuple]:
    """A function, and the inputs for which its (first) result has gradients."""
    if name.startswith("conv"):
        channels = int(name.removeprefix("conv"))
        return convolution(channels, 2048 // channels)
    if name.startswith("attention"):
        return attention(name.endswith("bf16"))
    if name == "softmax":
        return jax.nn.softmax, (normal(*of.ROWS_OF_SCORES),)
    if name == "layer-norm":
        width = of.TOKENS[1]
        return (
            lambda x, w, b: models.layer_norm(x, {"w": w, "b": b}),
            (normal(*of.TOKENS), normal(width), normal(width)),
        )
    if name == "batch-norm":
        n, c, h, w = of.STAGE
        running = {"mean": jnp.zeros(c), "var": jnp.ones(c)}
        return (
            lambda x, w, b: models.batch_norm(x, {"w": w, "b": b}, running),
            (normal(n, h, w, c), normal(c), normal(c)),
        )
    if name == "cross-entropy":
        labels = jax.random.randint(jax.random.key(0), of.WORDS[:1], 0, of.WORDS[1])
        return lambda x: models.cross_entropy(x, labels), (normal(*of.WORDS),)
    if name == "max-pool":
        n, c, h, w = of.STEM
        return lambda x: models.max_pool(x, 3, 2, 1), (normal(n, h, w, c),)
    raise KeyError(name)


def backward(run: Callable, inputs: tuple) -> list[Call]:
    """Gradients of a function's first result: from what the forward kept, and from the inputs."""

    def result(*inputs: Any) -> Any:
        return jax.tree.leaves(run(*inputs))[0]

    y, pull = jax.jit(partial(jax.vjp, result))(*inputs)
    g = normal(*y.shape).astype(y.dtype)
    kept = jax.jit(lambda pull, g: pull(g))
    anew = jax.jit(lambda g, *inputs: jax.vjp(result, *inputs)[1](g))
    return [lambda: kept(pull, g), lambda: anew(g, *inputs)]


def made(key: str) -> list[Call]:
    """Callables of which the fastest counts for a row; KeyError for one that is not here."""
    if key in STEPS:
        return [step(key)]
    name, _, part = key.rpartition("-")
    run, inputs = function(name)
    if part == "backward":
        return backward(run, inputs)
    forward = jax.jit(run)
    return [lambda: forward(*inputs)]


def seconds(call: Call, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        result = call()
    jax.block_until_ready(result)
    return (time.perf_counter() - begin) / count


def median(call: Call, rounds: int) -> float:
    """Microseconds of a call."""
    for _ in range(3):
        jax.block_until_ready(call())
    count = max(1, int(BUDGET / seconds(call, 3)))
    return statistics.median(seconds(call, count) for _ in range(rounds)) * 1e6


def measured(key: str, rounds: int) -> dict[str, Any]:
    """A row of a table, with its time or why it has none."""
    row: dict[str, Any] = {"key": key, "times": {}, "failures": {}}
    try:
        row["times"]["JAX"] = round(min(median(call, rounds) for call in made(key)), 1)
    except KeyError:
        pass  # the row is not here
    except Exception as error:
        row["failures"]["JAX"] = f"{type(error).__name__}: {error}"[:300]
    return row


def main() -> None:
    """Measure the rows one after another."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.in_jax", description=__doc__)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="JSON file for what was found")
    options = parser.parse_args()
    table: Table = {
        "gpu": jax.devices()[0].device_kind,
        "date": today(),
        "rounds": options.rounds,
        "versions": {"JAX": jax.__version__},
        "rows": [],
    }
    if options.out is not None and options.out.exists():
        table = json.loads(options.out.read_text())
    done = {row["key"] for row in table["rows"]}
    for key in options.rows:
        if key in done:
            continue
        begin = time.perf_counter()
        row = measured(key, options.rounds)
        print(key, *row["times"].values(), *row["failures"].values(), end="  ")
        print(f"({time.perf_counter() - begin:.1f} s)", flush=True)
        table["rows"].append(row)
        keep(table, options.out)
        if row["failures"]:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
