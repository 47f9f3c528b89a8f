"""Steps of a chain as one loop: their results stay in registers, and the lock is let go of once.

Only functions that are rounded exactly, as NumPy rounds them: a kernel has no faster arithmetic,
and contracts nothing. Kernels are made of text, so that Numba keeps them for this process alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from tensorflow_lite_clone.backends.numba.layer import Kernels, is_there
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.fuse.symbol import Symbol
from tensorflow_lite_clone.fuse.target import BOOL, FLOAT32, FLOAT64

_kernels = Kernels("chains")
#: What C and Python say alike: one operator, which is rounded exactly.
_OPERATOR = re.compile(r"-?\{0\}( ([-+*/<>]|[<>=!]=) \{[01]\})?")
_TEXTS = {n: r.c["f"] for n, r in PRIMITIVES.items() if _OPERATOR.fullmatch(r.c.get("f", ""))}
_TEXTS.update(abs="abs({0})", positive="{0}", sqrt="sqrt({0})", where="{1} if {0} else {2}")
_FEWEST = 2  # steps that are worth a kernel
_CHECKS = 8  # comparisons of addresses that LLVM makes before it gives a loop up


class Loop(NamedTuple):
    """Several steps at once: ``function(*operands, *results)``, which is compiled from `text`."""

    text: str
    function: Callable[..., None]
    operands: tuple[Symbol, ...]
    results: tuple[Symbol, ...]


_Shapes = dict[int, tuple[int, ...]]
_Parts = list[Symbol | Loop]


def loops(
    steps: list[Symbol], shapes: _Shapes, axes: int, kept: set[int], updated: set[int]
) -> _Parts:
    """Steps with loops in place of those that can be.

    `shapes` are those of what is read, by the symbol's id, which have as many `axes` as a tile;
    `kept` the symbols that somebody reads afterwards. What is `updated` lies where an operand lies,
    for which a loop would have to go number by number.
    """
    if axes > 2 or not is_there():
        return list(steps)
    parts: _Parts = []
    run: list[Symbol] = []
    for position, step in enumerate(steps):
        if _fits(step, run, updated):
            run.append(step)
            continue
        parts += _loop(run, steps[position:], shapes, axes, kept)
        run = []
        if _fits(step, run, updated):
            run.append(step)
        else:
            parts.append(step)
    return parts + _loop(run, [], shapes, axes, kept)


def _fits(step: Symbol, run: list[Symbol], updated: set[int]) -> bool:
    """Whether a loop can do a step, and all that it does is in one floating dtype."""
    if step.value is not None or step.name not in _TEXTS or id(step) in updated:
        return False
    if step.name == "add" and step.dtype == BOOL:  # which is 2 of True and True in a loop
        return False
    symbols = [symbol for each in (step, *run[:1]) for symbol in (*each.operands, each)]
    dtypes = {symbol.dtype for symbol in symbols if symbol.name != "number"} - {BOOL}
    numbers = [symbol.value for symbol in step.operands if symbol.name == "number"]
    finite = all([type(value) in (bool, int, float) and math.isfinite(value) for value in numbers])
    return len(dtypes) == 1 and dtypes <= {FLOAT32, FLOAT64} and finite


def _loop(
    run: list[Symbol], rest: list[Symbol], shapes: _Shapes, axes: int, kept: set[int]
) -> _Parts:
    """A run as a loop, as long as it may be, and what is left of it."""
    for end in range(len(run), _FEWEST - 1, -1):
        part, after = run[:end], run[end:]
        read = {id(symbol) for step in (*after, *rest) for symbol in step.operands} | kept
        results = [step for step in part if id(step) in read]
        inside = set(map(id, part))
        used = {id(x): x for step in part for x in step.operands if x.name != "number"}
        operands = [symbol for key, symbol in used.items() if key not in inside]
        moving = [symbol for symbol in operands if shapes.get(id(symbol), (0,))[-1] != 1]
        checks = len(results) * len(moving) + len(results) * (len(results) - 1) // 2
        if checks <= _CHECKS:
            text = _text(part, operands, results, shapes, axes)
            loop = Loop(text, _kernels.loop(text), tuple(operands), tuple(results))
            return [loop, *_loop(after, rest, shapes, axes, kept)]
    return [*run[:1], *_loop(run[1:], rest, shapes, axes, kept)] if run else []


def _text(
    run: list[Symbol], operands: list[Symbol], results: list[Symbol], shapes: _Shapes, axes: int
) -> str:
    """The source of a kernel over tiles of one or two axes."""
    names = {id(symbol): f"x_{i}" for i, symbol in enumerate(operands, 1)}
    arguments = [*names.values(), *[f"y_{i}" for i in range(1, len(results) + 1)]]
    indices = "ij"[-axes:]
    lines: list[tuple[int, str]] = []  # how deep, and what
    for symbol in operands:
        shape = shapes.get(id(symbol), (0,) * axes)  # of what an earlier step has made all varies
        index = ["0" if size == 1 else name for size, name in zip(shape, indices)]
        depth = max([0, *[n + 1 for n, each in enumerate(index) if each != "0"]])
        name = names[id(symbol)]
        lines.append((depth, f"a_{name} = {name}[{', '.join(index)}]"))
        names[id(symbol)] = f"a_{name}"
    symbols = [symbol for step in run for symbol in (*step.operands, step)]
    dtype = next(x.dtype for x in symbols if x.name != "number" and x.dtype != BOOL)
    for number, step in enumerate(run, 1):
        values = [
            f"{dtype.name}({float(x.value)!r})" if x.name == "number" else names[id(x)]
            for x in step.operands
        ]
        name = names[id(step)] = f"t_{number}"
        lines.append((axes, f"{name} = {_TEXTS[step.name].format(*values)}"))
    for number, symbol in enumerate(results, 1):
        lines.append((axes, f"y_{number}[{', '.join(indices)}] = {names[id(symbol)]}"))
    text = [f"def kernel({', '.join(arguments)}):"]
    for depth in range(axes + 1):
        if depth:
            loop = f"for {indices[depth - 1]} in range(y_1.shape[{depth - 1}]):"
            text.append(f"{'    ' * depth}{loop}")
        text += [f"{'    ' * (depth + 1)}{line}" for deep, line in lines if deep == depth]
    return "\n".join(text) + "\n"
