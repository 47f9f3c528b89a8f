"""Which dimensions of the inputs are dynamic, and examples of other sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow_lite_clone.onnx._sizes import Symbol, Varying
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.tensor import Tensor

#: Per input its dynamic dimensions, as {axis: name}.
Dynamic = dict[str, dict[int, str]]


def from_axes(dynamic_axes: Mapping[str, Any], ranks: Mapping[str, int]) -> Dynamic:
    """Reads `dynamic_axes`: per input {axis: name}, or a list of axes, which get names.

    Entries of outputs are left out: their dynamic dimensions follow from those of the inputs.
    """
    found: Dynamic = {}
    for name, axes in dynamic_axes.items():
        if name in ranks:
            if not isinstance(axes, Mapping):
                axes = {axis: f"{name}_dynamic_axes_{n}" for n, axis in enumerate(axes, 1)}
            found[name] = {axis % ranks[name]: str(word) for axis, word in axes.items()}
    return found


def from_shapes(dynamic_shapes: Any, arguments: Mapping[str, Any], names: Sequence[str]) -> Dynamic:
    """Reads `dynamic_shapes`, which has the structure of the arguments with {axis: dimension} or a
    sequence of dimensions in place of tensors; a dimension is a name, an object that has one,
    None or an integer (which is fixed).

    `names` are those of the tensors in the arguments, in order. Raises ValueError for another
    structure.
    """
    if not isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = dict(zip(arguments, dynamic_shapes, strict=True))
    order = iter(names)
    found: Dynamic = {}
    for argument, tree in arguments.items():
        _read(dynamic_shapes.get(argument), tree, order, found)
    return found


def _read(spec: Any, tree: Any, names: Any, found: Dynamic) -> None:
    if isinstance(tree, Tensor):
        name = next(names)
        if spec is None:
            return
        pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
        found[name] = {
            axis % tree.ndim: _word(dimension, f"{name}_dim_{axis}")
            for axis, dimension in pairs
            if dimension is not None and type(dimension) is not int
        }
        return
    entries: Any = ()
    if isinstance(tree, Mapping):
        entries = [(entry, spec[key] if spec else None) for key, entry in tree.items()]
    elif isinstance(tree, (tuple, list)):
        if spec is not None and len(spec) != len(tree):
            raise ValueError(
                f"dynamic_shapes has {len(spec)} entries where the arguments have {len(tree)}"
            )
        entries = zip(tree, spec or [None] * len(tree))
    for entry, part in entries:
        _read(part, entry, names, found)


def _word(dimension: Any, default: str) -> str:
    return str(dimension if type(dimension) is str else getattr(dimension, "__name__", default))


#: How much sizes differ in the second and third run; dimensions take turns, so that they can be
#: told apart. A model may have a largest size, such as its table of positions, hence the others.
ATTEMPTS = (
    ((1, 3), (2, 5), (3, 4), (5, 2), (4, 7)),
    ((1, 2), (2, 1), (1, 3), (3, 1), (3, 2)),
    ((-1, -2), (-2, -1), (-1, -3), (-3, -1), (-3, -2)),
)
RUNS = 3


def symbols_of(dynamic: Dynamic, inputs: Mapping[str, Tensor], attempt: int) -> list[Symbol]:
    """The dynamic dimensions with the sizes that the runs shall use.

    The first run uses the example's size, unless that is 0 or 1, which code treats specially, the
    others that of an attempt. Raises ValueError where a name stands for two sizes.
    """
    symbols: dict[str, Symbol] = {}
    for name, axes in dynamic.items():
        for axis, word in axes.items():
            size = inputs[name].shape[axis]
            size = size if size > 1 else 2
            known = symbols.get(word)
            if known is None:
                turns = ATTEMPTS[attempt]
                steps: tuple[int, ...] = turns[len(symbols) % len(turns)]
                if size + min(steps) < 2:
                    steps = tuple(map(abs, steps))
                sizes = Varying([size, *[size + step for step in steps]])
                symbols[word] = Symbol(word, sizes, name, axis)
            elif known.size[0] != size:
                raise ValueError(
                    f"the dynamic dimension '{word}' has size {known.size[0]} and {size} in the "
                    "example inputs"
                )
    return list(symbols.values())


def resized(tensor: Tensor, axes: Mapping[int, int]) -> Tensor:
    """A copy in which dimensions have other sizes; its elements repeat along them."""
    result = tensor.detach().clone()
    for axis, size in axes.items():
        have = tensor.shape[axis]
        if have != size:
            places = arange(size, device=tensor.device) % max(have, 1)
            result = result.index_select(axis, places)
    return result
