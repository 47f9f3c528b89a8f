"""Kernels on a CUDA device beside PyTorch's, and the share of the copy bandwidth they reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench import cuda_other_kernels
from tests.bench.case import Case, both, without_graph

NAME = "kernels"
DEVICE = "cuda"


def cases(lib: Any) -> Iterator[Case]:
    """The shapes of a language model's head, a transformer and a residual network."""
    F = lib.nn.functional
    x = lib.randn(8192, 4096, device="cuda")
    size = 4 * 8192 * 4096
    yield Case("copy 8192x4096", lambda: x.clone(), 2 * size)
    yield from both(lib, "softmax 8192x4096", x, lambda x: F.softmax(x, 1), 2 * size, 3 * size)
    yield from both(
        lib, "log-softmax 8192x4096", x, lambda x: F.log_softmax(x, 1), 2 * size, 3 * size
    )
    h = x.to(lib.bfloat16)
    half = size // 2
    yield from both(
        lib, "softmax bf16 8192x4096", h, lambda x: F.softmax(x, 1), 2 * half, 3 * half
    )
    yield from both(lib, "gelu 8192x4096", x, F.gelu, 2 * size, 3 * size)
    del x, h

    x = lib.randn(16384, 1024, device="cuda")
    w, b = lib.randn(1024, device="cuda"), lib.randn(1024, device="cuda")
    w.requires_grad_(), b.requires_grad_()
    size = 4 * 16384 * 1024
    yield from both(
        lib, "layer-norm 16384x1024", x, lambda x: F.layer_norm(x, (1024,), w, b), 2 * size,
        3 * size,
    )  # fmt: skip
    yield from both(
        lib, "rms-norm 16384x1024", x, lambda x: F.rms_norm(x, (1024,), w), 2 * size, 3 * size
    )
    del x

    x = lib.randn(8192, 50257, device="cuda")
    target = lib.randint(50257, (8192,), device="cuda")
    size = 4 * 8192 * 50257
    yield from both(
        lib, "cross-entropy 8192x50257", x, lambda x: F.cross_entropy(x, target), size, 2 * size
    )
    del x

    x = lib.randn(128, 64, 112, 112, device="cuda")
    size, pooled = 4 * 128 * 64 * 112 * 112, 4 * 128 * 64 * 56 * 56
    yield from both(
        lib, "max-pool 128x64x112x112", x, lambda x: F.max_pool2d(x, 3, 2, 1),
        size + pooled, pooled + size,
    )  # fmt: skip
    yield from both(
        lib, "avg-pool 128x64x112x112", x, lambda x: F.avg_pool2d(x, 2), size + pooled // 4,
        size + pooled // 4,
    )  # fmt: skip
    del x

    x = lib.randn(128, 64, 32, 32, device="cuda")
    size = 4 * 128 * 64 * 32 * 32
    w, b = lib.randn(64, device="cuda"), lib.randn(64, device="cuda")
    mean, var = lib.zeros(64, device="cuda"), lib.ones(64, device="cuda")
    w.requires_grad_(), b.requires_grad_()
    yield from both(
        lib, "batch-norm 128x64x32x32", x,
        lambda x: F.batch_norm(x, mean, var, w, b, True), 3 * size, 5 * size,
    )  # fmt: skip
    for n, c, s in ((128, 64, 32), (128, 128, 16), (128, 256, 8), (128, 512, 4)):
        yield from _convolution(lib, n, c, s)
    yield from _attention(lib, lib.float32)
    yield from _attention(lib, lib.bfloat16)
    yield from _products(lib)
    yield from cuda_other_kernels.cases(lib)


def _convolution(lib: Any, n: int, c: int, s: int) -> Iterator[Case]:
    F = lib.nn.functional
    for layout in (lib.contiguous_format, lib.channels_last):
        x = lib.randn(n, c, s, s, device="cuda").contiguous(memory_format=layout)
        w = lib.randn(c, c, 3, 3, device="cuda").contiguous(memory_format=layout)
        name = f"conv3x3 b{n} c{c} {s}x{s}{' NHWC' if layout is lib.channels_last else ''}"
        yield Case(
            f"{name} forward",
            lambda x=x, w=w: without_graph(lib, lambda x: F.conv2d(x, w, None, 1, 1), x),
        )
        x, w = x.requires_grad_(), w.requires_grad_()
        y = F.conv2d(x, w, None, 1, 1)
        g = lib.randn(n, c, s, s, device="cuda").contiguous(memory_format=layout)
        yield Case(
            f"{name} backward",
            lambda x=x, w=w, y=y, g=g: lib.autograd.grad(y, (x, w), g, retain_graph=True),
        )


def _attention(lib: Any, dtype: Any) -> Iterator[Case]:
    attend = lib.nn.functional.scaled_dot_product_attention
    q, k, v = (lib.randn(16, 12, 1024, 64, device="cuda").to(dtype) for _ in range(3))
    name = f"attention 16x12x1024x64 {str(dtype).split('.')[-1]}"
    yield Case(
        f"{name} forward",
        lambda: without_graph(lib, lambda q: attend(q, k, v, is_causal=True), q),
    )
    inputs = [x.requires_grad_() for x in (q, k, v)]
    y = attend(*inputs, is_causal=True)
    g = lib.randn(*y.shape, device="cuda").to(dtype)
    yield Case(f"{name} backward", lambda: lib.autograd.grad(y, inputs, g, retain_graph=True))


def _products(lib: Any) -> Iterator[Case]:
    for dtype in (lib.float32, lib.bfloat16):
        x, y = (lib.randn(4096, 4096, device="cuda").to(dtype) for _ in range(2))
        yield Case(f"matmul 4096 {str(dtype).split('.')[-1]}", lambda x=x, y=y: x @ y)
