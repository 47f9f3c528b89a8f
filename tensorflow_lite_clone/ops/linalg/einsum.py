"""``einsum``: sums of products named by letters, made of permutations and matrix products."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from tensorflow_lite_clone.core.dtypes import promote_types
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.linalg._products import expect_one_dtype, expect_tensors
from tensorflow_lite_clone.ops.linalg.matmul import matmul
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.tensor import Tensor

# A label is a letter, or an int below zero for an axis under the ellipsis (-1 is the last).
_ELLIPSIS = "..."

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@public("torch")
def einsum(*args: Any) -> Tensor:
    """``einsum("ij,jk->ik", x, y)``, or ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

    Axes of one label are multiplied along, those that the output lacks are summed; a label
    repeated in an operand takes its diagonal; ``...`` stands for axes that broadcast. Without
    ``->`` the output has the labels that occur once, in alphabetical order. Raises RuntimeError
    for equations that do not parse or fit.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
    else:
        equation, operands = _equation_of(args)
    expect_tensors("einsum", *operands)
    inputs, output = _parse(equation, len(operands))
    tensors, labels = [], []
    for position, (operand, subscripts) in enumerate(zip(operands, inputs)):
        tensor, named = _diagonal(operand, _expanded(subscripts, operand.ndim, position), position)
        tensors.append(tensor)
        labels.append(named)
    _check_sizes(tensors, labels)
    order = _output_labels(output, labels, inputs)
    counts = Counter([label for named in labels for label in named])
    summed = any([count > 1 and label not in order for label, count in counts.items()])
    if summed and not autocast:  # what is no product is promoted; autocast casts for products
        expect_one_dtype("einsum", *tensors)
    dtype = tensors[0].dtype
    for tensor in tensors:
        dtype = promote_types(dtype, tensor.dtype)
    return _contract([cast(tensor, dtype) for tensor in tensors], labels, order)


def _equation_of(args: tuple) -> tuple[str, tuple]:
    """The sublist format as an equation and operands."""

    def letters(sublist: Any) -> str:
        words = []
        for item in sublist:
            if item is Ellipsis:
                words.append(_ELLIPSIS)
            elif 0 <= item < len(_LETTERS):
                # capitals come first, as they do in the alphabetical order of an equation
                words.append((_LETTERS[26:] + _LETTERS[:26])[item])
            else:
                raise ValueError(
                    f"einsum(): expected subscripts to be within the range [0, 52), got {item}"
                )
        return "".join(words)

    pairs = len(args) // 2
    equation = ",".join(letters(args[2 * i + 1]) for i in range(pairs))
    if len(args) % 2:
        equation += "->" + letters(args[-1])
    return equation, args[: 2 * pairs : 2]


def _parse(equation: str, count: int) -> tuple[list[list[str]], list[str] | None]:
    """Labels per operand and of the output (None: not given); the ellipsis is one label."""
    left, arrow, right = equation.partition("->")
    inputs: list[list[str]] = [[]]
    position = 0
    while position < len(left):
        letter = left[position]
        if letter == ",":
            inputs.append([])
        elif left.startswith(_ELLIPSIS, position):
            if _ELLIPSIS in inputs[-1]:
                raise RuntimeError(
                    f"einsum(): found '.' for operand {len(inputs) - 1} for which an ellipsis was "
                    "already found"
                )
            inputs[-1].append(_ELLIPSIS)
            position += 2
        elif letter == ".":
            raise RuntimeError(
                f"einsum(): found '.' for operand {len(inputs) - 1} that is not part of any "
                "ellipsis"
            )
        elif letter != " ":
            _expect_letter(letter, position)
            inputs[-1].append(letter)
        position += 1
    if len(inputs) != count:
        relation = "fewer" if len(inputs) > count else "more"
        raise RuntimeError(
            f"einsum(): {relation} operands were provided than specified in the equation"
        )
    return inputs, _parse_output(right, len(left) + 2) if arrow else None


def _parse_output(text: str, offset: int) -> list[str]:
    output: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        if text.startswith(_ELLIPSIS, position):
            if _ELLIPSIS in output:
                raise RuntimeError(
                    "einsum(): found '.' for output but an ellipsis (...) was already found"
                )
            output.append(_ELLIPSIS)
            position += 2
        elif letter == ".":
            raise RuntimeError(
                "einsum(): found '.' for output that is not part of any ellipsis (...)"
            )
        elif letter != " ":
            _expect_letter(letter, position + offset)
            if letter in output:
                raise RuntimeError(
                    f"einsum(): output subscript {letter} appears more than once in the output"
                )
            output.append(letter)
        position += 1
    return output


def _expect_letter(letter: str, position: int) -> None:
    if letter not in _LETTERS:
        raise RuntimeError(
            f"einsum(): invalid subscript given at index {position} in the equation string, "
            "subscripts must be in [a-zA-Z]"
        )


def _expanded(subscripts: list[str], ndim: int, position: int) -> list:
    """A label per axis."""
    named = len(subscripts) - (_ELLIPSIS in subscripts)
    if named == ndim and _ELLIPSIS not in subscripts:
        return subscripts
    if _ELLIPSIS not in subscripts or named > ndim:
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the "
            f"number of dimensions ({ndim}) for operand {position}"
            + ("" if _ELLIPSIS in subscripts else " and no ellipsis was given")
        )
    at = subscripts.index(_ELLIPSIS)
    return [*subscripts[:at], *range(named - ndim, 0), *subscripts[at + 1 :]]


def _diagonal(x: Tensor, labels: list, position: int) -> tuple[Tensor, list]:
    """`x` with axes of one label reduced to their diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {position} but the "
                    f"sizes don't match, {x.shape[second]} != {x.shape[first]}"
                )
            x = x.diagonal(0, first, second)  # the diagonal becomes the last axis
            del labels[second], labels[first]
            labels.append(label)
    return x, labels


def _check_sizes(tensors: list[Tensor], labels: list[list]) -> None:
    sizes: dict[Any, int] = {}
    for position, (tensor, named) in enumerate(zip(tensors, labels)):
        for label, size in zip(named, tensor.shape):
            known = sizes.get(label, 1)
            if size not in (1, known) and known != 1:
                raise RuntimeError(
                    f"einsum(): subscript {label if isinstance(label, str) else _ELLIPSIS} has "
                    f"size {size} for operand {position} which does not broadcast with previously "
                    f"seen size {known}"
                )
            if size != 1:
                sizes[label] = size


def _output_labels(output: list[str] | None, labels: list[list], inputs: list[list[str]]) -> list:
    """The output's labels, one per axis."""
    dots = sorted({label for named in labels for label in named if not isinstance(label, str)})
    if output is None:
        written = [letter for subscripts in inputs for letter in subscripts]
        once = [c for c in set(written) if c != _ELLIPSIS and written.count(c) == 1]
        return [*dots, *sorted(once)]
    order: list = []
    for label in output:
        if label == _ELLIPSIS:
            order += dots
        elif not any(label in named for named in labels):
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input "
                "operand"
            )
        else:
            order.append(label)
    return order


def _contract(tensors: list[Tensor], labels: list[list], order: list) -> Tensor:
    """Multiply the operands from left to right and sum labels as soon as none needs them."""
    x, have = tensors[0], labels[0]
    for position in range(1, len(tensors)):
        later = set(order).union(*labels[position + 1 :])
        x, have = _multiply(x, have, tensors[position], labels[position], later, order)
    summed = [axis for axis, label in enumerate(have) if label not in order]
    if summed:
        x = x.sum(summed)
        have = [label for label in have if label in order]
    axes = [have.index(label) for label in order]
    return x if axes == list(range(len(axes))) else x.permute(*axes)


def _multiply(
    x: Tensor, left: list, y: Tensor, right: list, later: set, order: list
) -> tuple[Tensor, list]:
    """The product of two operands, summed over the labels they share that are not in `later`.

    Labels of `order`, the output's, come in that order within the rows and the columns.
    """
    x, left = _presummed(x, left, set(right) | later)
    y, right = _presummed(y, right, set(left) | later)
    x_size, y_size = dict(zip(left, x.shape)), dict(zip(right, y.shape))
    shared = [label for label in left if label in y_size]
    inner = [c for c in shared if c not in later]
    if any(x_size[c] != y_size[c] for c in inner):  # an axis of length one stands for all
        wide = [c for c in inner if x_size[c] != y_size[c]]
        x, left = _presummed(x, left, set(left) - {c for c in wide if y_size[c] == 1})
        y, right = _presummed(y, right, set(right) - {c for c in wide if x_size[c] == 1})
        x = _unsqueezed(x, left, wide)
        y = _unsqueezed(y, right, wide)
        left = [*left, *[c for c in wide if c not in left]]
        right = [*right, *[c for c in wide if c not in right]]
        return _multiply(x, left, y, right, later, order)
    place = lambda label: order.index(label) if label in order else len(order)
    batch = sorted([c for c in shared if c in later], key=place)
    rows = sorted([c for c in left if c not in y_size], key=place)
    columns = sorted([c for c in right if c not in x_size], key=place)
    x_batch, y_batch = [x_size[c] for c in batch], [y_size[c] for c in batch]
    count = math.prod(x_size[c] for c in inner)
    m, n = [x_size[c] for c in rows], [y_size[c] for c in columns]
    x = x.permute(*[left.index(c) for c in (*batch, *rows, *inner)])
    y = y.permute(*[right.index(c) for c in (*batch, *inner, *columns)])
    if not inner:  # nothing is summed: a product of elements
        x = x.reshape(*x_batch, *m, *(1 for _ in n))
        y = y.reshape(*y_batch, *(1 for _ in m), *n)
        return x * y, [*batch, *rows, *columns]
    if x_batch == y_batch:
        x = x.reshape(*([math.prod(x_batch)] if batch else []), math.prod(m), count)
        y = y.reshape(*([math.prod(y_batch)] if batch else []), count, math.prod(n))
    else:
        x = x.reshape(*x_batch, math.prod(m), count)
        y = y.reshape(*y_batch, count, math.prod(n))
    sizes = [max(p, q) if p and q else 0 for p, q in zip(x_batch, y_batch)]
    return matmul(x, y).reshape(*sizes, *m, *n), [*batch, *rows, *columns]


def _presummed(x: Tensor, labels: list, needed: set) -> tuple[Tensor, list]:
    """`x` summed over the labels that are not needed."""
    axes = [axis for axis, label in enumerate(labels) if label not in needed]
    if axes:
        x = x.sum(axes)
    return x, [label for label in labels if label in needed]


def _unsqueezed(x: Tensor, labels: list, targets: list) -> Tensor:
    """`x` with a last axis of length one for every wanted label that it lacks."""
    for label in targets:
        if label not in labels:
            x = x.unsqueeze(-1)
    return x
