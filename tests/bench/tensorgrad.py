"""The functions that tensorgrad, a library over NumPy and CuPy, was measured by, with its figures.

Figures: https://github.com/akv17/tensorgrad, BENCHMARK.md of 3764e8d, tables "CPU"; shapes:
benchmark/const.py there. It timed forward and backward apart, against a PyTorch of its own day and
on a machine that it does not name: its ratios may be put beside ours, its times may not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.bench.cpu_kernels import PARTS, layer
from tests.bench.rows import Row

GROUP = "tensorgrad"


class Published(NamedTuple):
    """Seconds that tensorgrad took, and how many times longer than PyTorch that was."""

    forward: tuple[float, float]
    backward: tuple[float, float]


PUBLISHED = {
    "tg-linear-128": Published((0.00007, 7.957), (0.00013, 2.31789)),
    "tg-linear-2048": Published((0.00333, 3.53146), (0.02247, 7.56456)),
    "tg-linear-4096": Published((0.02759, 3.34093), (0.19425, 8.50893)),
    "tg-conv-16": Published((0.00027, 5.28848), (0.0014, 9.82634)),
    "tg-conv-64": Published((0.02066, 4.87644), (0.09186, 13.0172)),
    "tg-conv-128": Published((0.17148, 2.58034), (0.71355, 10.3801)),
    "tg-mha-64": Published((0.00175, 8.84703), (0.00745, 18.7644)),
    "tg-mha-128": Published((0.01677, 7.32494), (0.2466, 63.8829)),
    "tg-mha-256": Published((0.07684, 5.19165), (1.57431, 88.5085)),
    "tg-softmax-64": Published((0.00005, 9.71885), (0.00073, 21.8265)),
    "tg-softmax-256": Published((0.00028, 17.1162), (0.09498, 1431.73)),
    "tg-softmax-512": Published((0.00142, 21.2956), (0.66259, 4488.73)),
}


def published(key: str) -> float | None:
    """tensorgrad's time over PyTorch's for a row; both passes together are their sums."""
    name, _, part = key.rpartition("-")
    if name not in PUBLISHED:
        return None
    (first, slower), (second, much_slower) = PUBLISHED[name]
    if part == PARTS[0]:
        return slower
    return (first + second) / (first / slower + second / much_slower)


def linear(size: int, inputs: int, outputs: int) -> dict[str, Row]:
    def make(lib: Any) -> Any:
        return lib.nn.Linear(inputs, outputs)

    key, title = f"tg-linear-{outputs}", f"Linear {size}x{inputs} to {outputs}"
    return layer(key, title, make, (size, inputs), trained=0, group=GROUP)


def convolution(size: int, inputs: int, pixels: int, outputs: int) -> dict[str, Row]:
    def make(lib: Any) -> Any:
        return lib.nn.Conv2d(inputs, outputs, 3)

    x = (size, inputs, pixels, pixels)
    title = f"Conv2d 3x3 {'x'.join(map(str, x))} to {outputs}"
    return layer(f"tg-conv-{outputs}", title, make, x, trained=0, group=GROUP)


def attention(length: int, size: int, width: int, heads: int) -> dict[str, Row]:
    def make(lib: Any) -> Any:
        return lib.nn.MultiheadAttention(width, heads)

    x = (length, size, width)
    title = f"MultiheadAttention with weights {'x'.join(map(str, x))} h{heads}"
    return layer(f"tg-mha-{width}", title, make, x, x, x, trained=0, group=GROUP)


def softmax(size: int, width: int) -> dict[str, Row]:
    def make(lib: Any) -> Any:
        return lib.nn.Softmax(-1)

    return layer(f"tg-softmax-{width}", f"Softmax {size}x{width}", make, (size, width), group=GROUP)


ROWS: dict[str, Row] = {
    **linear(32, 64, 128),
    **linear(32, 1024, 2048),  # there it is called 64x1024
    **linear(128, 2048, 4096),
    **convolution(4, 3, 32, 16),
    **convolution(8, 32, 64, 64),
    **convolution(8, 64, 128, 128),
    **attention(16, 32, 64, 4),
    **attention(32, 64, 128, 8),
    **attention(32, 128, 256, 8),
    **softmax(128, 64),
    **softmax(512, 256),
    **softmax(1024, 512),
}
