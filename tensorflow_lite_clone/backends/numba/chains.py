"""Steps of a chain as one loop: their results stay in registers, and the lock is let go of once.

Only words that are rounded exactly, as NumPy rounds them: a kernel has no faster arithmetic, and
contracts nothing. Kernels are made of text, so that Numba keeps them for this process alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import Kernels, is_there
from tensorflow_lite_clone.backends.numpy import primitives
from tensorflow_lite_clone.backends.numpy.formulas import Node, Step

_kernels = Kernels("chains")
_WORDS: dict[Any, str] = {
    np.add: "{} + {}", np.subtract: "{} - {}", np.multiply: "{} * {}", np.divide: "{} / {}",
    np.negative: "-{}", np.positive: "{}", np.square: "{0} * {0}", np.sqrt: "sqrt({})",
    np.absolute: "abs({})", np.greater: "{} > {}", np.less: "{} < {}",
    np.greater_equal: "{} >= {}", np.less_equal: "{} <= {}", np.equal: "{} == {}",
    np.not_equal: "{} != {}", primitives.where: "{1} if {0} else {2}",
}  # fmt: skip
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_BOOL = np.dtype(bool)
_FEWEST = 2  # steps that are worth a kernel
_CHECKS = 8  # comparisons of addresses that LLVM makes before it gives a loop up


class Loop(NamedTuple):
    """Several steps at once: ``word(*operands, *results)``, which is compiled from `text`."""

    text: str
    word: Callable[..., None]
    operands: tuple[Node, ...]
    results: tuple[Node, ...]


def loops(
    steps: list[Step],
    shapes: dict[int, tuple[int, ...]],
    axes: int,
    kept: set[int],
    updated: list[Node],
) -> list[Step | Loop]:
    """Steps with loops in place of those that can be.

    `shapes` are those of what is read, by the node's id, which have as many `axes` as a tile;
    `kept` the nodes that somebody reads afterwards. What is `updated` lies where an operand lies,
    for which a loop would have to go number by number.
    """
    if axes > 2 or not is_there():
        return list(steps)
    made: list[Step | Loop] = []
    run: list[Step] = []
    for position, step in enumerate(steps):
        if _fits(step, run, updated):
            run.append(step)
            continue
        made += _loop(run, steps[position:], shapes, axes, kept)
        run = []
        if _fits(step, run, updated):
            run.append(step)
        else:
            made.append(step)
    return made + _loop(run, [], shapes, axes, kept)


def _fits(step: Step, run: list[Step], updated: list[Node]) -> bool:
    """Whether a loop can do a step, and all that it does is in one floating dtype."""
    if step.word not in _WORDS or step.result in updated:
        return False
    if step.word is np.add and step.result.dtype == _BOOL:  # which is 2 of True and True in a loop
        return False
    nodes = [value for each in (step, *run[:1]) for value in (*each.operands, each.result)]
    dtypes = {value.dtype for value in nodes if isinstance(value, Node)} - {_BOOL}
    numbers = [value for value in step.operands if not isinstance(value, Node)]
    finite = all([type(value) in (bool, int, float) and math.isfinite(value) for value in numbers])
    return len(dtypes) == 1 and dtypes <= set(_FLOATS) and finite


def _loop(
    run: list[Step], rest: list[Step], shapes: dict[int, tuple[int, ...]], axes: int, kept: set[int]
) -> list[Step | Loop]:
    """A run as a loop, as long as it may be, and what is left of it."""
    for end in range(len(run), _FEWEST - 1, -1):
        part, after = run[:end], run[end:]
        read = {id(value) for step in (*after, *rest) for value in step.operands} | kept
        results = [step.result for step in part if id(step.result) in read]
        inside = {id(step.result) for step in part}
        operands = {id(x): x for step in part for x in step.operands if isinstance(x, Node)}
        given = [node for key, node in operands.items() if key not in inside]
        moving = [node for node in given if shapes.get(id(node), (0,))[-1] != 1]
        checks = len(results) * len(moving) + len(results) * (len(results) - 1) // 2
        if checks <= _CHECKS:
            text = _text(part, given, results, shapes, axes)
            loop = Loop(text, _kernels.loop(text), tuple(given), tuple(results))
            return [loop, *_loop(after, rest, shapes, axes, kept)]
    return [*run[:1], *_loop(run[1:], rest, shapes, axes, kept)] if run else []


def _text(run: list[Step], given: list[Node], results: list[Node], shapes: dict, axes: int) -> str:
    """The source of a kernel over tiles of one or two axes."""
    names = {id(node): f"x_{i}" for i, node in enumerate(given, 1)}
    arguments = [*names.values(), *[f"y_{i}" for i in range(1, len(results) + 1)]]
    places = "ij"[-axes:]
    lines: list[tuple[int, str]] = []  # how deep, and what
    for node in given:
        shape = shapes.get(id(node), (0,) * axes)  # of what an earlier step has made all varies
        index = ["0" if size == 1 else place for size, place in zip(shape, places)]
        depth = max([0, *[n + 1 for n, place in enumerate(index) if place != "0"]])
        name = names[id(node)]
        lines.append((depth, f"a_{name} = {name}[{', '.join(index)}]"))
        names[id(node)] = f"a_{name}"
    nodes = [node for step in run for node in (*step.operands, step.result)]
    dtype = next(x.dtype for x in nodes if isinstance(x, Node) and x.dtype != _BOOL)
    for number, step in enumerate(run, 1):
        values = [
            names[id(x)] if isinstance(x, Node) else f"{dtype.name}({float(x)!r})"
            for x in step.operands
        ]
        name = names[id(step.result)] = f"t_{number}"
        lines.append((axes, f"{name} = {_WORDS[step.word].format(*values)}"))
    for number, node in enumerate(results, 1):
        lines.append((axes, f"y_{number}[{', '.join(places)}] = {names[id(node)]}"))
    text = [f"def kernel({', '.join(arguments)}):"]
    for depth in range(axes + 1):
        if depth:
            loop = f"for {places[depth - 1]} in range(y_1.shape[{depth - 1}]):"
            text.append(f"{'    ' * depth}{loop}")
        text += [f"{'    ' * (depth + 1)}{line}" for deep, line in lines if deep == depth]
    return "\n".join(text) + "\n"
