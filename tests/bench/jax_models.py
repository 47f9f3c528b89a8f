"""The networks of the table in plain JAX, as training steps: the same arithmetic as `steps`.

Parameters are trees of arrays, pictures (N, height, width, channels). Convolutions have XLA's
default precision, TF32 on a GPU, matrix products in float32 its highest, as PyTorch's defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Tree = Any
EXACT = lax.Precision.HIGHEST
MOMENTUM, DECAY = 0.9, 5e-4  # of SGD
BETA1, BETA2, EPSILON, ADAMW_DECAY = 0.9, 0.999, 1e-8, 0.01


def weights(key: Any, shape: tuple[int, ...], fan_in: int) -> Any:
    return jax.random.normal(key, shape) / math.sqrt(fan_in)


def convolution_weights(key: Any, inputs: int, outputs: int, size: int) -> Any:
    return weights(key, (size, size, inputs, outputs), inputs * size * size)


def linear_weights(key: Any, inputs: int, outputs: int) -> Tree:
    return {"w": weights(key, (inputs, outputs), inputs), "b": jnp.zeros(outputs)}


def conv(x: Any, w: Any, stride: int = 1, padding: int = 1) -> Any:
    return lax.conv_general_dilated(
        x, w.astype(x.dtype), (stride, stride), [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip


def linear(x: Any, p: Tree) -> Any:
    return jnp.dot(x, p["w"].astype(x.dtype), precision=EXACT) + p["b"].astype(x.dtype)


def dropout(key: Any, x: Any, share: float) -> Any:
    kept = jax.random.bernoulli(key, 1 - share, x.shape)
    return jnp.where(kept, x / (1 - share), 0)


def max_pool(x: Any, size: int, stride: int, padding: int = 0) -> Any:
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, around)


def layer_norm(x: Any, p: Tree) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * p["w"] + p["b"]


def batch_norm(x: Any, p: Tree, running: Tree) -> tuple[Any, Tree]:
    """The normalised pictures and the new running statistics; sums are float32."""
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    var = ((wide - mean) ** 2).mean((0, 1, 2))
    count = x.size // x.shape[-1]
    y = (wide - mean) * (lax.rsqrt(var + 1e-5) * p["w"]) + p["b"]
    new = {
        "mean": 0.9 * running["mean"] + 0.1 * lax.stop_gradient(mean),
        "var": 0.9 * running["var"] + 0.1 * lax.stop_gradient(var) * count / (count - 1),
    }
    return y.astype(x.dtype), new


def cross_entropy(scores: Any, labels: Any) -> Any:
    logs = jax.nn.log_softmax(scores.astype(jnp.float32))
    return -jnp.take_along_axis(logs, labels[:, None], 1).mean()


# -- networks: (parameters, running statistics), and a function of them, a key and pictures --------


def mlp(key: Any) -> tuple[Tree, Tree]:
    sizes = (784, 256, 128, 10)
    keys = jax.random.split(key, 3)
    return [linear_weights(k, a, b) for k, a, b in zip(keys, sizes, sizes[1:], strict=False)], ()


def run_mlp(p: Tree, running: Tree, key: Any, x: Any) -> tuple[Any, Tree]:
    x = x.reshape(len(x), -1)
    for layer in p[:-1]:
        x = jax.nn.relu(linear(x, layer))
    return linear(x, p[-1]), running


def cnn(key: Any) -> tuple[Tree, Tree]:
    a, b, c, d = jax.random.split(key, 4)
    convolutions = [
        {"w": convolution_weights(a, 1, 16, 3), "b": jnp.zeros(16)},
        {"w": convolution_weights(b, 16, 32, 3), "b": jnp.zeros(32)},
    ]
    return {"convs": convolutions, "l1": linear_weights(c, 1568, 128),
            "l2": linear_weights(d, 128, 10)}, ()  # fmt: skip


def run_cnn(p: Tree, running: Tree, key: Any, x: Any) -> tuple[Any, Tree]:
    first, second = jax.random.split(key)
    for layer in p["convs"]:
        x = max_pool(jax.nn.relu(conv(x, layer["w"]) + layer["b"]), 2, 2)
    x = dropout(first, x.reshape(len(x), -1), 0.25)
    x = dropout(second, jax.nn.relu(linear(x, p["l1"])), 0.5)
    return linear(x, p["l2"]), running


def vit(key: Any) -> tuple[Tree, Tree]:
    keys = jax.random.split(key, 7)
    norms = {n: {"w": jnp.ones(128), "b": jnp.zeros(128)} for n in ("norm1", "norm2", "norm")}
    return {
        **norms,
        "patches": {"w": convolution_weights(keys[0], 1, 128, 4), "b": jnp.zeros(128)},
        "token": jnp.zeros((1, 1, 128)),
        "positions": jax.random.normal(keys[1], (1, 50, 128)) * 0.02,
        "qkv": linear_weights(keys[2], 128, 384), "out": linear_weights(keys[3], 128, 128),
        "up": linear_weights(keys[4], 128, 512), "down": linear_weights(keys[5], 512, 128),
        "head": linear_weights(keys[6], 128, 10),
    }, ()  # fmt: skip


def run_vit(p: Tree, running: Tree, key: Any, x: Any) -> tuple[Any, Tree]:
    keys = jax.random.split(key, 4)
    x = conv(x, p["patches"]["w"], 4, 0) + p["patches"]["b"]
    n, heads = len(x), 2
    token = jnp.broadcast_to(p["token"], (n, 1, 128))
    x = jnp.concatenate([token, x.reshape(n, -1, 128)], 1) + p["positions"]
    q, k, v = jnp.split(linear(layer_norm(x, p["norm1"]), p["qkv"]), 3, -1)
    q, k, v = (z.reshape(n, -1, heads, 128 // heads) for z in (q, k, v))
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k, precision=EXACT) / math.sqrt(128 // heads)
    shares = dropout(keys[0], jax.nn.softmax(scores), 0.1)
    y = jnp.einsum("nhqk,nkhd->nqhd", shares, v, precision=EXACT).reshape(n, -1, 128)
    x = x + dropout(keys[1], linear(y, p["out"]), 0.1)
    y = jax.nn.gelu(linear(layer_norm(x, p["norm2"]), p["up"]), approximate=False)
    x = x + dropout(keys[3], linear(dropout(keys[2], y, 0.1), p["down"]), 0.1)
    return linear(layer_norm(x[:, 0], p["norm"]), p["head"]), running


def resnet(key: Any, widths: tuple[int, ...], blocks: int, project: bool) -> tuple[Tree, Tree]:
    keys = iter(jax.random.split(key, 64))
    running = {}

    def pair(name: str, inputs: int, outputs: int, size: int = 3) -> Tree:
        running[name] = {"mean": jnp.zeros(outputs), "var": jnp.ones(outputs)}
        return {"conv": convolution_weights(next(keys), inputs, outputs, size),
                "w": jnp.ones(outputs), "b": jnp.zeros(outputs)}  # fmt: skip

    p: dict[str, Tree] = {"stem": pair("stem", 3, widths[0])}
    inputs = widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            name = f"{stage}.{block}"
            p[f"{name}.1"] = pair(f"{name}.1", inputs, width)
            p[f"{name}.2"] = pair(f"{name}.2", width, width)
            if project and inputs != width:
                p[f"{name}.short"] = pair(f"{name}.short", inputs, width, 1)
            inputs = width
    p["head"] = linear_weights(next(keys), inputs, 10)
    return p, running


def run_resnet(
    p: Tree, running: Tree, key: Any, x: Any, *, stages: int, blocks: int, half: bool
) -> tuple[Any, Tree]:
    x = x.astype(jnp.bfloat16) if half else x
    new = {}

    def layer(name: str, x: Any, stride: int = 1, padding: int = 1) -> Any:
        y = conv(x, p[name]["conv"], stride, padding)
        y, new[name] = batch_norm(y, p[name], running[name])
        return y

    x = jax.nn.relu(layer("stem", x))
    for stage in range(stages):
        for block in range(blocks):
            name = f"{stage}.{block}"
            stride = 2 if stage and not block else 1
            y = jax.nn.relu(layer(f"{name}.1", x, stride))
            y = layer(f"{name}.2", y)
            if f"{name}.short" in p:
                x = layer(f"{name}.short", x, stride, 0)
            elif stride == 2:  # option A of He et al.: channels of zeros
                added = y.shape[-1] - x.shape[-1]
                around = ((0, 0), (0, 0), (0, 0), (added // 2, added - added // 2))
                x = jnp.pad(x[:, ::2, ::2], around)
            x = jax.nn.relu(x + y)
    return linear(x.mean((1, 2)), p["head"]), new


RESNET20 = ((16, 32, 64), 3, False)
RESNET18 = ((64, 128, 256, 512), 2, True)


def model(name: str) -> tuple[Callable, Callable]:
    """What makes the parameters of a row's network, and what runs it."""
    if name in ("mlp", "cnn", "vit"):
        return {"mlp": (mlp, run_mlp), "cnn": (cnn, run_cnn), "vit": (vit, run_vit)}[name]
    widths, blocks, project = RESNET20 if name == "resnet20" else RESNET18
    run = partial(run_resnet, stages=len(widths), blocks=blocks, half=name.endswith("bf16"))
    return partial(resnet, widths=widths, blocks=blocks, project=project), run


# -- steps ----------------------------------------------------------------------------------------


def sgd(p: Tree, state: Tree, g: Tree) -> tuple[Tree, Tree]:
    state = jax.tree.map(lambda m, g, p: MOMENTUM * m + g + DECAY * p, state, g, p)
    return jax.tree.map(lambda p, m: p - 0.01 * m, p, state), state


def adamw(p: Tree, state: Tree, g: Tree) -> tuple[Tree, Tree]:
    count, m, v = state
    count = count + 1
    m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, g)
    v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, g)
    big, small = 1 - BETA1**count, jnp.sqrt(1 - BETA2**count)

    def moved(p: Any, m: Any, v: Any) -> Any:
        return p * (1 - 1e-3 * ADAMW_DECAY) - 1e-3 / big * m / (jnp.sqrt(v) / small + EPSILON)

    return jax.tree.map(moved, p, m, v), (count, m, v)


def training(name: str, batch: int) -> tuple[Callable, Tree, tuple[Any, Any]]:
    """A compiled step (state, x, y) -> (state, loss), its state, and a batch of random pictures."""
    make, run = model(name)
    digits = name in ("mlp", "cnn", "vit")
    p, running = make(jax.random.key(0))
    zeros = partial(jax.tree.map, jnp.zeros_like)
    optimizer = (jnp.zeros(()), zeros(p), zeros(p)) if digits else zeros(p)

    def step(state: Tree, x: Any, y: Any) -> tuple[Tree, Any]:
        p, running, optimizer, key = state
        key, now = jax.random.split(key)

        def loss_of(p: Tree) -> tuple[Any, Tree]:
            scores, new = run(p, running, now, x)
            return cross_entropy(scores, y), new

        (loss, running), g = jax.value_and_grad(loss_of, has_aux=True)(p)
        p, optimizer = (adamw if digits else sgd)(p, optimizer, g)
        return (p, running, optimizer, key), loss

    shape = (batch, 28, 28, 1) if digits else (batch, 32, 32, 3)
    x = jax.random.uniform(jax.random.key(1), shape)
    y = jax.random.randint(jax.random.key(2), (batch,), 0, 10)
    state = (p, running, optimizer, jax.random.key(3))
    return jax.jit(step, donate_argnums=0), state, (x, y)
