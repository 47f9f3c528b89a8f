"""The rows of the table for a CPU: small and large functions, training steps and inferences."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.bench import chains, overhead, tensorgrad
from tests.bench.case import Call
from tests.bench.cpu_kernels import (
    attention,
    convolution,
    indexed,
    layer,
    of_tensors,
    optimizer,
    step,
)
from tests.bench.rows import Row, fits
from tests.bench.steps import inference

MEMORY = "memory"
SQUARE, SCORES, MAPS = (2048, 2048), (4096, 1024), (32, 64, 56, 56)
ROWS: dict[str, Row] = {
    **of_tensors("matmul-256", "matmul 256", lambda lib, x, y: x @ y, (256, 256), (256, 256)),
    **of_tensors("matmul-512", "matmul 512", lambda lib, x, y: x @ y, (512, 512), (512, 512)),
    **of_tensors("matmul-1024", "matmul 1024", lambda lib, x, y: x @ y, (1024, 1024), (1024, 1024)),
    **layer("linear-784", "linear 32x784x256", lambda lib: lib.nn.Linear(784, 256), (32, 784)),
    **layer(
        "linear-1024", "linear 128x1024x1024", lambda lib: lib.nn.Linear(1024, 1024), (128, 1024)
    ),
    **of_tensors("add", "add 4M", lambda lib, x, y: x + y, SQUARE, SQUARE),
    **of_tensors("exp", "exp 4M", lambda lib, x: x.exp(), SQUARE),
    **of_tensors("tanh", "tanh 4M", lambda lib, x: x.tanh(), SQUARE),
    **of_tensors("relu", "relu 4M", lambda lib, x: x.relu(), SQUARE),
    **of_tensors("gelu", "gelu 4M", lambda lib, x: lib.nn.functional.gelu(x), SQUARE),
    **of_tensors("sigmoid", "sigmoid 4M", lambda lib, x: x.sigmoid(), SQUARE),
    **of_tensors("sum", "sum 4M", lambda lib, x: x.sum(), SQUARE),
    **of_tensors("sum-dim0", "sum 4M dim 0", lambda lib, x: x.sum(0), SQUARE),
    **of_tensors("sum-dim1", "sum 4M dim 1", lambda lib, x: x.sum(1), SQUARE),
    **of_tensors("softmax", "softmax 4096x1024", lambda lib, x: x.softmax(-1), SCORES),
    **of_tensors("log-softmax", "log-softmax 4096x1024", lambda lib, x: x.log_softmax(-1), SCORES),
    **indexed(
        "cross-entropy", "cross-entropy 4096x1024",
        lambda lib, x, target: lib.nn.functional.cross_entropy(x, target), SCORES, 1024, (4096,),
    ),
    **layer("layer-norm", "layer-norm 4096x1024", lambda lib: lib.nn.LayerNorm(1024), SCORES),
    **layer(
        "batch-norm", "batch-norm train b32 c64 32x32", lambda lib: lib.nn.BatchNorm2d(64),
        (32, 64, 32, 32),
    ),
    **convolution("conv-a", "conv3x3 4x3x32x32 c16", (4, 3, 32, 32), 16),
    **convolution("conv-b", "conv3x3 8x32x64x64 c64", (8, 32, 64, 64), 64),
    **convolution("conv-c", "conv3x3 8x64x128x128 c128", (8, 64, 128, 128), 128),
    **convolution("conv-64", "conv3x3 b32 c64 32x32", (32, 64, 32, 32), 64),
    **convolution("conv-128", "conv3x3 b32 c128 16x16", (32, 128, 16, 16), 128),
    **convolution("conv-16", "conv3x3 b32 c16 32x32", (32, 16, 32, 32), 16),
    **convolution("conv-1x1", "conv1x1 b32 c64 to 128 32x32", (32, 64, 32, 32), 128, 1),
    **convolution("stride2", "conv3x3/2 b32 c64 to 128 32x32", (32, 64, 32, 32), 128, 3, 2),
    **convolution("depthwise", "depthwise 3x3 b32 c64 32x32", (32, 64, 32, 32), 64, groups=64),
    **convolution("stem", "conv7x7/2 8x3x224x224 c64", (8, 3, 224, 224), 64, 7, 2),
    **of_tensors(
        "transposed", "transposed conv4x4/2 8x64x32x32 c64",
        lambda lib, x, w: lib.nn.functional.conv_transpose2d(x, w, None, 2, 1),
        (8, 64, 32, 32), (64, 64, 4, 4),
    ),
    **of_tensors(
        "max-pool-2", "max-pool 2/2 32x64x56x56",
        lambda lib, x: lib.nn.functional.max_pool2d(x, 2), MAPS,
    ),
    **of_tensors(
        "max-pool-3", "max-pool 3/2/1 32x64x56x56",
        lambda lib, x: lib.nn.functional.max_pool2d(x, 3, 2, 1), MAPS,
    ),
    **of_tensors(
        "avg-pool-2", "avg-pool 2/2 32x64x56x56",
        lambda lib, x: lib.nn.functional.avg_pool2d(x, 2), MAPS,
    ),
    **of_tensors(
        "adaptive-avg-pool", "adaptive avg-pool 1 32x64x56x56",
        lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 1), MAPS,
    ),
    **attention(16, 32, 64, 4),
    **attention(32, 64, 128, 8),
    **attention(32, 128, 256, 8),
    **of_tensors(
        "attention", "attention causal 8x8x256x64",
        lambda lib, *qkv: lib.nn.functional.scaled_dot_product_attention(*qkv, is_causal=True),
        *[(8, 8, 256, 64)] * 3,
    ),
    **layer("lstm", "LSTM 32x16x128", lambda lib: lib.nn.LSTM(128, 128), (32, 16, 128)),
    **layer("gru", "GRU 32x16x128", lambda lib: lib.nn.GRU(128, 128), (32, 16, 128)),
    **indexed(
        "embedding", "embedding 32x128 of 10000x128",
        lambda lib, w, words: lib.nn.functional.embedding(words, w), (10000, 128), 10000, (32, 128),
    ),
    **indexed(
        "gather", "gather 1024x512 of 1024x1024", lambda lib, x, i: x.gather(1, i), (1024, 1024),
        1024, (1024, 512),
    ),
    **indexed(
        "scatter-add", "scatter_add 1024x512 to 1024x1024",
        lambda lib, x, i: x.scatter_add(1, i, x.detach()), (1024, 1024), 1024, (1024, 512),
    ),
    **indexed(
        "index-select", "index_select 2048 of 4096x1024", lambda lib, x, i: x.index_select(0, i),
        SCORES, 4096, (2048,),
    ),
    **of_tensors(
        "cat", "cat two 1024x1024", lambda lib, x, y: lib.cat([x, y], 1), (1024, 1024),
        (1024, 1024),
    ),
    **of_tensors(
        "permute", "permute+contiguous 32x64x56x56",
        lambda lib, x: x.permute(0, 2, 3, 1).contiguous(), MAPS,
    ),
    **of_tensors("dropout", "dropout 4M", lambda lib, x: lib.nn.functional.dropout(x, 0.1), SQUARE),
    **optimizer("adam", "Adam step 20 x 100k", "Adam"),
    **optimizer("sgd", "SGD momentum step 20 x 100k", "SGD", lr=0.01, momentum=0.9),
    **step("mlp-b32", "MNIST MLP step b32", "mlp", 32),
    **step("cnn-b32", "MNIST CNN step b32", "cnn", 32),
    **step("cnn-b128", "MNIST CNN step b128", "cnn", 128),
    **step("vit-b32", "MNIST ViT step b32", "vit", 32),
    **step("resnet20-b32", "ResNet-20 CIFAR step b32", "resnet20", 32),
    **step("resnet18-b16", "ResNet-18 CIFAR step b16", "resnet18", 16),
    **step("lstm-lm", "LSTM language model step b32 t32", "lstm", 32),
    **step("gpt-mini", "GPT mini step b8 t64", "gpt", 8),
    "resnet20-b1": Row(
        "ResNet-20 inference b1", partial(inference, name="resnet20", batch=1), is_step=True,
        group="inference",
    ),
}  # fmt: skip


def table(lib: Any) -> dict[str, Row]:
    """All rows, group by group; the small functions are those that there are for `lib`."""
    small = {}
    for number, (name, _) in enumerate(overhead.cases(lib)):

        def work(lib: Any, number: int = number) -> tuple[Call, tuple]:
            return list(overhead.cases(lib))[number][1], ()

        small[f"{overhead.NAME}-{number}"] = Row(name, work, group=overhead.NAME)
    steps = {key: row for key, row in ROWS.items() if row.group == "steps"}
    memory = {f"{MEMORY}-{key}": row._replace(group=MEMORY) for key, row in steps.items()}
    rows = {**small, **ROWS, **chains.ROWS, **tensorgrad.ROWS, **memory}
    groups = dict.fromkeys(row.group for row in rows.values())
    return {key: row for group in groups for key, row in rows.items() if row.group == group}


def chosen(rows: dict[str, Row], names: list[str], groups: list[str]) -> dict[str, Row]:
    """Rows by their names and the beginnings of them, and by groups; all where there is no choice.

    Raises ValueError for what fits none.
    """
    for choice, known in ((names, rows), (groups, {row.group: row for row in rows.values()})):
        for name in choice:
            if not any(fits(each, name) for each in known):
                raise ValueError(f"no row or group {name!r}: there are {', '.join(known)}")
    return {
        key: row
        for key, row in rows.items()
        if (not names or any(fits(key, name) for name in names))
        and (not groups or any(fits(row.group, name) for name in groups))
    }
