"""Single functions on a CUDA device, over either library.

Each function gives the calls that are measured: forward and backward of what it is named after, or
one call. The shapes are those of a language model's head, a transformer and a residual network.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.bench.case import Call, Wrap, both

ROWS_OF_SCORES = (8192, 4096)
TOKENS = (16384, 1024)
WORDS = (8192, 50257)
STAGE = (128, 64, 32, 32)
STEM = (128, 64, 112, 112)
HEADS = (16, 12, 1024, 64)
GROUPS = (64, 256, 32, 32)
TABLE, LOOKUPS = (50257, 768), 16384
PARAMETERS = 1 << 25  # elements of the tensors that an optimizer and a scaler work on


def pictures(lib: Any, shape: tuple[int, ...], channels_last: bool) -> Any:
    x = lib.randn(*shape, device="cuda")
    return x.contiguous(memory_format=lib.channels_last) if channels_last else x


def copy(lib: Any) -> Iterator[Call]:
    x = lib.randn(*ROWS_OF_SCORES, device="cuda")
    yield lambda: x.clone()


def softmax(lib: Any, wrap: Wrap | None = None, half: bool = False) -> Iterator[Call]:
    x = lib.randn(*ROWS_OF_SCORES, device="cuda")
    x = x.to(lib.bfloat16) if half else x
    return both(lib, lambda x: lib.nn.functional.softmax(x, 1), x, wrap=wrap)


def log_softmax(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    x = lib.randn(*ROWS_OF_SCORES, device="cuda")
    return both(lib, lambda x: lib.nn.functional.log_softmax(x, 1), x, wrap=wrap)


def gelu(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    x = lib.randn(*ROWS_OF_SCORES, device="cuda")
    return both(lib, lambda x: lib.nn.functional.gelu(x), x, wrap=wrap)


def layer_norm(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    x = lib.randn(*TOKENS, device="cuda")
    w, b = (lib.randn(TOKENS[1], device="cuda") for _ in range(2))

    def norm(x: Any, w: Any, b: Any) -> Any:
        return lib.nn.functional.layer_norm(x, TOKENS[1:], w, b)

    return both(lib, norm, x, w, b, wrap=wrap, trained=3)


def rms_norm(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    x, w = lib.randn(*TOKENS, device="cuda"), lib.randn(TOKENS[1], device="cuda")

    def norm(x: Any, w: Any) -> Any:
        return lib.nn.functional.rms_norm(x, TOKENS[1:], w)

    return both(lib, norm, x, w, wrap=wrap, trained=2)


def cross_entropy(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    x = lib.randn(*WORDS, device="cuda")
    target = lib.randint(WORDS[1], WORDS[:1], device="cuda")
    return both(lib, lambda x, t: lib.nn.functional.cross_entropy(x, t), x, target, wrap=wrap)


def max_pool(lib: Any, wrap: Wrap | None = None, channels_last: bool = False) -> Iterator[Call]:
    x = pictures(lib, STEM, channels_last)
    return both(lib, lambda x: lib.nn.functional.max_pool2d(x, 3, 2, 1), x, wrap=wrap)


def avg_pool(lib: Any, wrap: Wrap | None = None, channels_last: bool = False) -> Iterator[Call]:
    x = pictures(lib, STEM, channels_last)
    return both(lib, lambda x: lib.nn.functional.avg_pool2d(x, 2), x, wrap=wrap)


def batch_norm(lib: Any, wrap: Wrap | None = None, channels_last: bool = False) -> Iterator[Call]:
    x = pictures(lib, STAGE, channels_last)
    w, b = (lib.randn(STAGE[1], device="cuda") for _ in range(2))
    mean, var = lib.zeros(STAGE[1], device="cuda"), lib.ones(STAGE[1], device="cuda")

    def norm(x: Any, w: Any, b: Any) -> Any:
        return lib.nn.functional.batch_norm(x, mean, var, w, b, True)

    return both(lib, norm, x, w, b, wrap=wrap, trained=3)


def group_norm(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    x = lib.randn(*GROUPS, device="cuda")
    w, b = (lib.randn(GROUPS[1], device="cuda") for _ in range(2))
    return both(lib, lambda x: lib.nn.functional.group_norm(x, 32, w, b), x, wrap=wrap)


def convolution(
    lib: Any,
    channels: int,
    size: int,
    wrap: Wrap | None = None,
    channels_last: bool = False,
) -> Iterator[Call]:
    x = pictures(lib, (128, channels, size, size), channels_last)
    w = pictures(lib, (channels, channels, 3, 3), channels_last)
    conv = lib.nn.functional.conv2d
    return both(lib, lambda x, w: conv(x, w, None, 1, 1), x, w, wrap=wrap, trained=2)


def depthwise(lib: Any, wrap: Wrap | None = None, channels_last: bool = False) -> Iterator[Call]:
    x = pictures(lib, GROUPS, channels_last)
    w = lib.randn(GROUPS[1], 1, 3, 3, device="cuda")
    conv = lib.nn.functional.conv2d
    return both(lib, lambda x: conv(x, w, None, 1, 1, groups=GROUPS[1]), x, wrap=wrap)


def attention(lib: Any, wrap: Wrap | None = None, half: bool = False) -> Iterator[Call]:
    q, k, v = (lib.randn(*HEADS, device="cuda") for _ in range(3))
    if half:
        q, k, v = (x.to(lib.bfloat16) for x in (q, k, v))
    attend = lib.nn.functional.scaled_dot_product_attention
    return both(lib, lambda q, k, v: attend(q, k, v, is_causal=True), q, k, v, wrap=wrap, trained=3)


def dropout(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    x = lib.randn(*ROWS_OF_SCORES, device="cuda")
    return both(lib, lambda x: lib.nn.functional.dropout(x, 0.1), x, wrap=wrap)


def embedding(lib: Any, wrap: Wrap | None = None) -> Iterator[Call]:
    w = lib.randn(*TABLE, device="cuda")
    tokens = lib.randint(TABLE[0], (LOOKUPS,), device="cuda")
    look = lib.nn.functional.embedding
    return both(lib, lambda w, tokens: look(tokens, w), w, tokens, wrap=wrap)


def product(lib: Any, half: bool = False) -> Iterator[Call]:
    x, y = (lib.randn(4096, 4096, device="cuda") for _ in range(2))
    if half:
        x, y = x.to(lib.bfloat16), y.to(lib.bfloat16)
    yield lambda: x @ y


def normal(lib: Any) -> Iterator[Call]:
    x = lib.randn(*ROWS_OF_SCORES, device="cuda")
    yield lambda: x.normal_()


def integers(lib: Any) -> Iterator[Call]:
    x = lib.randn(*ROWS_OF_SCORES, device="cuda")
    yield lambda: x.random_(0, 1000)


def lstm_cell(lib: Any) -> Iterator[Call]:
    cell = lib.nn.LSTMCell(8, 1024, device="cuda")
    x, h, c = (lib.randn(4096, n, device="cuda") for n in (8, 1024, 1024))

    def call() -> Any:
        with lib.no_grad():
            return cell(x, (h, c))  # as in `both`

    yield call


def adamw(lib: Any) -> Iterator[Call]:
    p = lib.nn.Parameter(lib.randn(PARAMETERS, device="cuda"))
    p.grad = lib.randn(PARAMETERS, device="cuda")
    yield lib.optim.AdamW([p], fused=True, capturable=True).step


def unscale(lib: Any) -> Iterator[Call]:
    p = lib.nn.Parameter(lib.randn(PARAMETERS, device="cuda"))
    p.grad = lib.randn(PARAMETERS, device="cuda")
    optimizer, scaler = lib.optim.SGD([p]), lib.amp.GradScaler("cuda")
    scaler.scale(p.detach()[0])

    def call() -> None:
        scaler.unscale_(optimizer)
        scaler.update()

    yield call
