"""What a row of a table is, and the rows for a GPU, with how long each is to take at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

from tests.bench import cuda_kernels as of
from tests.bench.case import Call
from tests.bench.steps import Training, training

Work = Callable[..., tuple[Callable[..., Any], tuple]]


class Row(NamedTuple):
    """One piece of work.

    `work(lib, ...)` makes it for a library: a function and its arguments; its options are
    `channels_last`, where `pictures` says that it means something, and `wrap`, which is given the
    function that a compiler is to see, where `compiles`. `goal` is in microseconds; None is a row
    that is measured on request. A step counts its own `flops`; `bytes` are those that must be
    moved. `unit` says which peak rate is the roof: float32, tf32 or bfloat16. Rows for a CPU that
    have a mean together are a `group`.
    """

    title: str
    work: Work
    goal: float | None = None
    is_step: bool = False
    pictures: bool = False
    compiles: bool = True
    flops: float = 0
    bytes: float = 0
    unit: str = "float32"
    group: str = ""


def _step(title: str, goal: float | None, name: str, batch: int, **options: Any) -> Row:
    def work(lib: Any, **more: Any) -> Training:
        return training(lib, name, batch, **options, **more)

    unit = "bfloat16" if options else "tf32" if name.startswith("resnet") else "float32"
    pictures = name not in ("mlp", "vit", "gpt2")
    return Row(title, work, goal, is_step=True, pictures=pictures, unit=unit)


def kernel(
    key: str,
    title: str,
    cases: Callable[..., Iterator[Call]],
    goals: tuple[float, ...] = (),
    *,
    flops: tuple[float, ...] = (),
    moved: tuple[float, ...] = (),
    parts: tuple[str, ...] = ("forward", "backward"),
    **kind: Any,
) -> dict[str, Row]:
    """A row for each of the calls that `cases` makes."""

    def work(number: int, lib: Any, **options: Any) -> tuple[Call, tuple]:
        calls = cases(lib, **options)
        for _ in range(number):
            next(calls)
        return next(calls), ()

    rows = {}
    for number, part in enumerate(parts):
        rows[f"{key}-{part}" if part else key] = Row(
            f"{title} {part}".strip(),
            partial(work, number),
            goals[number] if goals else None,
            flops=flops[number] if flops else 0,
            bytes=moved[number] if moved else 0,
            **kind,
        )
    return rows


def _convolution(channels: int, size: int, goals: tuple[float, float]) -> dict[str, Row]:
    flops = 2 * 128 * size * size * channels * channels * 9
    pixels, weights = 4 * 128 * channels * size * size, 4 * 9 * channels * channels
    return kernel(
        f"conv{channels}", f"conv3x3 b128 c{channels} {size}x{size} TF32",
        partial(of.convolution, channels=channels, size=size), goals,
        flops=(flops, 2 * flops), moved=(2 * pixels + weights, 3 * pixels + 2 * weights),
        pictures=True, unit="tf32",
    )  # fmt: skip


def _memory(
    key: str, title: str, cases: Any, size: float, counts: tuple[float, float], goals: tuple = (),
    moves: tuple[float, float] = (2, 3), **kind: Any,
) -> dict[str, Row]:  # fmt: skip
    """A function that the memory bounds: `moves` times `size` bytes are read and written.

    `counts` are the operations that an element takes, forward and backward, an exponential as one.
    """
    flops = tuple(count * size / 4 for count in counts)
    moved = tuple(count * size for count in moves)
    return kernel(key, title, cases, goals, flops=flops, moved=moved, **kind)


def _single(key: str, title: str, cases: Any, **about: Any) -> dict[str, Row]:
    about = {
        name: (value,) if name in ("flops", "moved") else value for name, value in about.items()
    }
    return kernel(key, title, cases, parts=("",), compiles=False, **about)


SCORES, TOKENS, WORDS = (4.0 * prod(s) for s in (of.ROWS_OF_SCORES, of.TOKENS, of.WORDS))
STAGE, STEM, GROUPS = (4.0 * prod(s) for s in (of.STAGE, of.STEM, of.GROUPS))
LOOKED_UP, TABLE = 4.0 * of.LOOKUPS * of.TABLE[1], 4.0 * prod(of.TABLE)
ATTENTION = 2.0 * of.HEADS[0] * of.HEADS[1] * of.HEADS[2] ** 2 * of.HEADS[3]  # causal: half of 4
QKV = 4.0 * prod(of.HEADS)
PRODUCT, MATRICES = 2 * 4096.0**3, 3 * 4.0 * 4096**2

ROWS: dict[str, Row] = {
    "mlp": _step("MNIST MLP step b32", 45, "mlp", 32),
    "cnn": _step("MNIST CNN step b128", 450, "cnn", 128),
    "vit": _step("MNIST ViT step b128", 1000, "vit", 128),
    "resnet20": _step("ResNet-20 CIFAR step b128 TF32", 2500, "resnet20", 128),
    "resnet18": _step("ResNet-18 CIFAR step b512 TF32", 11000, "resnet18", 512),
    "resnet18-bf16": _step("ResNet-18 CIFAR step b512 bf16", 6000, "resnet18", 512, half=True),
    **_convolution(64, 32, (50, 150)),
    **_convolution(128, 16, (45, 115)),
    **_convolution(256, 8, (30, 95)),
    **_convolution(512, 4, (40, 105)),
    **_memory("softmax", "softmax 8192x4096", of.softmax, SCORES, (5, 4), (72, 110)),
    **_memory("layer-norm", "layer-norm 16384x1024", of.layer_norm, TOKENS, (7, 11), (36, 75)),
    **_memory(
        "batch-norm", "batch-norm train b128 c64 32x32", of.batch_norm, STAGE, (7, 11), (36, 60),
        (3, 5), pictures=True,
    ),
    **_memory(
        "cross-entropy", "cross-entropy 8192x50257", of.cross_entropy, WORDS, (4, 3), (450, 900),
        (1, 2),
    ),
    **_memory(
        "max-pool", "max-pool 3/2/1 b128 c64 112x112", of.max_pool, STEM, (2.25, 0.25), (160, 220),
        (1.25, 1.25), pictures=True,
    ),
    **kernel(
        "attention", "attention float32 16x12x1024x64 causal", of.attention, (500, 1500),
        flops=(ATTENTION, 2.5 * ATTENTION), moved=(4 * QKV, 8 * QKV),
    ),
    **kernel(
        "attention-bf16", "attention bf16 16x12x1024x64 causal",
        partial(of.attention, half=True), (80, 260),
        flops=(ATTENTION, 2.5 * ATTENTION), moved=(2 * QKV, 4 * QKV), unit="bfloat16",
    ),
    "gpt2-bf16": _step("GPT-2 124M step 8x1024 bf16", None, "gpt2", 8, half=True),
    **_single("copy", "copy 8192x4096", of.copy, moved=2 * SCORES),
    **_memory("log-softmax", "log-softmax 8192x4096", of.log_softmax, SCORES, (5, 3)),
    **_memory(
        "softmax-bf16", "softmax bf16 8192x4096", partial(of.softmax, half=True), SCORES / 2,
        (10, 8),
    ),
    **_memory("gelu", "gelu 8192x4096", of.gelu, SCORES, (4, 8)),
    **_memory("rms-norm", "rms-norm 16384x1024", of.rms_norm, TOKENS, (4, 8)),
    **_memory(
        "avg-pool", "avg-pool 2 b128 c64 112x112", of.avg_pool, STEM, (1, 0.25), (), (1.25, 1.25),
        pictures=True,
    ),
    **_single("matmul", "matmul 4096 float32", of.product, flops=PRODUCT, moved=MATRICES),
    **_single(
        "matmul-bf16", "matmul 4096 bf16", partial(of.product, half=True), flops=PRODUCT,
        moved=MATRICES / 2, unit="bfloat16",
    ),
    **_memory("group-norm", "group-norm 64x256x32x32", of.group_norm, GROUPS, (7, 11)),
    **_memory(
        "depthwise", "depthwise 3x3 64x256x32x32", of.depthwise, GROUPS, (18, 18), (), (2, 2),
        pictures=True,
    ),
    **_memory("dropout", "dropout 8192x4096", of.dropout, SCORES, (2, 1), (), (2, 2)),
    **_single("normal", "normal_ 8192x4096", of.normal, moved=SCORES),
    **_single("integers", "random_ 8192x4096", of.integers, moved=SCORES),
    **kernel(
        "embedding", "embedding 16384 of 50257x768", of.embedding,
        moved=(2 * LOOKED_UP, TABLE + 3 * LOOKED_UP),
    ),
    **_single("lstm-cell", "LSTM cell 4096x1024", of.lstm_cell),
    **_single("adamw", "AdamW step of 33.5 M", of.adamw, moved=28.0 * of.PARAMETERS),
    **_single("unscale", "unscale 33.5 M", of.unscale, moved=8.0 * of.PARAMETERS),
}  # fmt: skip


def chosen(names: list[str], everything: bool) -> dict[str, Row]:
    """The rows by these names or their beginnings; without names those with a goal, or all.

    Raises ValueError for a name that fits none.
    """
    if not names:
        return {key: row for key, row in ROWS.items() if everything or row.goal}
    for name in names:
        if not any(fits(key, name) for key in ROWS):
            raise ValueError(f"no row {name!r}: there are {', '.join(ROWS)}")
    return {key: row for key, row in ROWS.items() if any(fits(key, name) for name in names)}


def fits(key: str, name: str) -> bool:
    """Whether a row is meant by a name: its own, or the words that it begins with."""
    return key == name or key.startswith(f"{name}-")
