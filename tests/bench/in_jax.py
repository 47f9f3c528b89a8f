"""``python -m tests.bench.in_jax ROW...``: rows of the table under JAX, in a process of its own.

Everything is jitted. Each row is a line of JSON on the standard output: its key and the median
microseconds, or what went wrong. Backward is the jitted pull-back of ``jax.vjp``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from tests.bench import cuda_kernels as of  # noqa: E402
from tests.bench import jax_models as models  # noqa: E402

Call = Callable[[], Any]
STEPS = {"mlp": 32, "cnn": 128, "vit": 128, "resnet20": 128, "resnet18": 512, "resnet18-bf16": 512}
BUDGET = 0.02  # seconds of a round


def normal(*shape: int) -> Any:
    return jax.random.normal(jax.random.key(sum(shape)), shape)


def step(name: str) -> Call:
    run, state, batch = models.training(name, STEPS[name])

    def call() -> Any:
        nonlocal state
        state, loss = run(state, *batch)
        return loss

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
    """A function, and the inputs whose gradients are wanted."""
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
            lambda x, w, b: models.batch_norm(x, {"w": w, "b": b}, running)[0],
            (normal(n, h, w, c), normal(c), normal(c)),
        )
    if name == "cross-entropy":
        labels = jax.random.randint(jax.random.key(0), of.WORDS[:1], 0, of.WORDS[1])
        return lambda x: models.cross_entropy(x, labels), (normal(*of.WORDS),)
    if name == "max-pool":
        n, c, h, w = of.STEM
        return lambda x: models.max_pool(x, 3, 2, 1), (normal(n, h, w, c),)
    raise KeyError(name)


def made(key: str) -> Call:
    """A warm callable for a row; KeyError for one that is not here."""
    if key in STEPS:
        return step(key)
    name, _, part = key.rpartition("-")
    run, inputs = function(name)
    if part == "forward":
        forward = jax.jit(run)
        return lambda: forward(*inputs)
    y, pull = jax.vjp(run, *inputs)
    g = jnp.ones_like(y) * normal(*y.shape).astype(y.dtype)
    backward = jax.jit(lambda pull, g: pull(g))
    return lambda: backward(pull, g)


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


def main() -> None:
    """Measure the rows one after another."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.in_jax", description=__doc__)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    for key in options.rows:
        said: dict[str, Any] = {"key": key, "version": jax.__version__}
        try:
            said["us"] = round(median(made(key), options.rounds), 1)
        except KeyError:
            continue
        except Exception as error:
            said["error"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
