"""How an op's results lie in memory: as PyTorch's do, whatever computed them.

Each op names a rule, `Op.layout`. What serves the op on a backend, be it the generic forward or an
override, is held to it where a program applies the op; what a gradient's formula calls is not.
For row-major operands most rules give row-major results, so that a look at flags is all it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from tensorflow_lite_clone.core.shape import Shape, contiguous_strides
from tensorflow_lite_clone.core.strides import (
    Geometry,
    dense_strides,
    elementwise_strides,
    has_format,
    suggested_strides,
    unsqueezed,
)

#: The strides of a result, from its shape, the shapes and strides of the op's arrays, and the op's
#: parameters. It is asked for results of two dimensions or more.
Rule = Callable[[Shape, tuple[Geometry, ...], dict[str, Any]], Shape]


#: Rules by which results of row-major operands need not be row-major.
_reordering: set[Rule] = set()


def reordering(rule: Rule) -> Rule:
    """Let a rule be asked for row-major operands too."""
    _reordering.add(rule)
    return rule


def row_major(shape: Shape, operands: tuple[Geometry, ...], parameters: dict) -> Shape:
    """As most ops' results lie: reductions, functions along a dimension, products."""
    return contiguous_strides(shape)


def elementwise(shape: Shape, operands: tuple[Geometry, ...], parameters: dict) -> Shape:
    """As functions of each element lie: where all operands agree, as they do."""
    return elementwise_strides(shape, operands)


def like_first(shape: Shape, operands: tuple[Geometry, ...], parameters: dict) -> Shape:
    """As the first operand lies, without its gaps and repetitions."""
    return dense_strides(*operands[0])


@reordering
def column_major(shape: Shape, operands: tuple[Geometry, ...], parameters: dict) -> Shape:
    """Matrices as LAPACK leaves them, with columns next to each other; vectors are row-major."""
    if len(shape) < len(operands[0][0]):
        return contiguous_strides(shape)
    *batch, rows, columns = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*batch, columns, rows)


def image(shape: Shape, operands: tuple[Geometry, ...], parameters: dict) -> Shape:
    """channels_last where the first operand is."""
    return suggested_strides(shape, operands[0])


def windows(shape: Shape, operands: tuple[Geometry, ...], parameters: dict) -> Shape:
    """`image`, for which lines (n, c, w) are images of height one."""
    return _of_lines(shape, operands[:1])


def windows_with_weight(shape: Shape, operands: tuple[Geometry, ...], parameters: dict) -> Shape:
    """channels_last where the first operand or the second, a weight, is; of lines the second."""
    if len(shape) == 3:
        return _of_lines(shape, operands[1:2])
    if len(shape) == 5 and _is_small(*operands[:2], parameters["groups"]):
        return contiguous_strides(shape)
    return _of_lines(shape, operands[:2])


def _is_small(x: Geometry, weight: Geometry, groups: int) -> bool:
    """Whether PyTorch convolves so small a volume by a way that knows row-major ones alone."""
    count, *kernel = x[0][0], *weight[0][-2:]
    return groups == 1 and count == 1 and min(kernel) <= 3 and prod(x[0][:4]) <= 20480


def _of_lines(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    if len(shape) == 3:
        high = tuple([unsqueezed(own, strides, 2) for own, strides in operands])
        n, c, _, w = _of_lines((*shape[:2], 1, shape[2]), high)
        return n, c, w
    plain = contiguous_strides(shape)
    for operand in operands:
        strides = suggested_strides(shape, operand)
        if strides != plain:
            return strides
    return plain


#: Those for which an operand may be channels_last though it is row-major as well.
_OF_IMAGES = (image, windows, windows_with_weight)


def held(op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which serves `op` on `backend`, with results that lie as the op's rule says.

    Where a device lets results lie as it computes them (`storage.Free`), ops of any layout do.
    """
    rule = op.layout
    if rule is None or op.view or backend.batched or (backend.lays and op.any_layout):
        return call
    is_contiguous, array_type = backend.is_contiguous, backend.array_type
    of_images, reorders = rule in _OF_IMAGES, rule in _reordering

    def settled(result: Any, arrays: tuple, parameters: dict) -> Any:
        if result.__class__ is tuple:
            return tuple(
                [
                    one if place in op.hints else settled(one, arrays, parameters)
                    for place, one in enumerate(result)
                ]
            )
        if result.__class__ is not array_type or not result.size:
            return result
        if result.ndim < 2 or rule is row_major:
            return result if is_contiguous(result) else backend.F.copy(result)
        operands = tuple(
            [(x.shape, backend.strides(x)) for x in arrays if x.__class__ is array_type]
        )
        return laid_out(backend, result, rule(result.shape, operands, parameters))

    if rule is elementwise and op.word is not None and len(op.inputs) == 2:

        def of_two(x: Any, y: Any) -> Any:
            result = call(x, y)
            if is_contiguous(x) and is_contiguous(y):
                return result
            return settled(result, (x, y), {})

        of_two.__wrapped__ = call  # type: ignore[attr-defined]
        return of_two

    if rule is elementwise and op.word is not None and len(op.inputs) == 1:

        def of_one(x: Any) -> Any:
            result = call(x)
            return result if is_contiguous(x) else settled(result, (x,), {})

        of_one.__wrapped__ = call  # type: ignore[attr-defined]
        return of_one

    def of_several(*arrays: Any, **parameters: Any) -> Any:
        result = call(*arrays, **parameters)
        if result.__class__ is array_type and is_contiguous(result) and not reorders:
            if rule is row_major:
                return result
            for x in arrays:
                if x.__class__ is array_type and (
                    not is_contiguous(x) or (of_images and 1 in x.shape)
                ):
                    break
            else:
                return result
        return settled(result, arrays, parameters)

    return of_several


def laid_out(backend: Any, array: Any, strides: Shape) -> Any:
    """`array`, or a copy of it, with `strides`; those of dimensions of size one come for free."""
    have = backend.strides(array)
    if have == strides:
        return array
    if has_format(array.shape, have, strides):
        return backend.F.as_strided(array, array.shape, strides)
    return backend.F.restride(array, strides=strides)
