"""Rows of the table for a CPU, from functions and modules that either library has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.bench.case import Call, together
from tests.bench.rows import Row, kernel
from tests.bench.steps import training

PARTS = ("forward", "forward+backward")
Cases = Callable[[Any], Iterator[Call]]


def pair(key: str, title: str, cases: Cases, group: str = "ops") -> dict[str, Row]:
    rows = kernel(key, title, cases, parts=PARTS)
    return {
        f"{key}-{part}": rows[f"{key}-{part}"]._replace(group=f"{group}-{part}") for part in PARTS
    }


def uniform(lib: Any, *shape: int) -> Any:
    return lib.rand(*shape) - 0.5


def of_tensors(
    key: str, title: str, function: Callable[..., Any], *shapes: tuple[int, ...]
) -> dict[str, Row]:
    """A function of a library and of tensors of these shapes, which all have gradients."""

    def cases(lib: Any) -> Iterator[Call]:
        inputs = [uniform(lib, *shape) for shape in shapes]
        return together(lib, partial(function, lib), *inputs, trained=len(inputs))

    return pair(key, title, cases)


def layer(
    key: str,
    title: str,
    make: Callable[[Any], Any],
    *shapes: tuple[int, ...],
    trained: int = 1,
    group: str = "ops",
) -> dict[str, Row]:
    """What a module makes of tensors, the first of what it gives; its parameters have gradients."""

    def cases(lib: Any) -> Iterator[Call]:
        module = make(lib)

        def function(*inputs: Any) -> Any:
            y = module(*inputs)
            return y[0] if isinstance(y, tuple) else y

        inputs = [uniform(lib, *shape) for shape in shapes]
        return together(lib, function, *inputs, trained=trained, parameters=module.parameters())

    return pair(key, title, cases, group)


def indexed(
    key: str,
    title: str,
    function: Callable[..., Any],
    shape: tuple[int, ...],
    below: int,
    index: tuple[int, ...],
) -> dict[str, Row]:
    """A function of a library, a tensor of this shape and one of random integers."""

    def cases(lib: Any) -> Iterator[Call]:
        x, i = uniform(lib, *shape), lib.randint(0, below, index)
        return together(lib, partial(function, lib), x, i)

    return pair(key, title, cases)


def convolution(
    key: str,
    title: str,
    x: tuple[int, int, int, int],
    channels: int,
    size: int = 3,
    stride: int = 1,
    groups: int = 1,
) -> dict[str, Row]:
    """With a border of zeros that keeps the size of the picture where the stride is one."""

    def convolve(lib: Any, x: Any, w: Any) -> Any:
        return lib.nn.functional.conv2d(x, w, None, stride, size // 2, 1, groups)

    return of_tensors(key, title, convolve, x, (channels, x[1] // groups, size, size))


def attention(size: int, length: int, width: int, heads: int) -> dict[str, Row]:
    def cases(lib: Any) -> Iterator[Call]:
        attend = lib.nn.MultiheadAttention(width, heads, batch_first=True)

        def function(x: Any) -> Any:
            return attend(x, x, x, need_weights=False)[0]

        x = uniform(lib, size, length, width)
        return together(lib, function, x, parameters=attend.parameters())

    return pair(f"mha-{width}", f"MultiheadAttention {size}x{length}x{width} h{heads}", cases)


def optimizer(key: str, title: str, name: str, **options: Any) -> dict[str, Row]:
    def cases(lib: Any) -> Iterator[Call]:
        parameters = [lib.nn.Parameter(uniform(lib, 100_000)) for _ in range(20)]
        for p in parameters:
            p.grad = uniform(lib, 100_000)
        yield getattr(lib.optim, name)(parameters, **options).step

    return kernel(key, title, cases, parts=("",), group="optimizers")


def step(key: str, title: str, name: str, batch: int) -> dict[str, Row]:
    work = partial(training, name=name, batch=batch, device="cpu")
    return {key: Row(title, work, is_step=True, group="steps")}
