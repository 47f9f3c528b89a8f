"""How an op's results lie in memory: as PyTorch's do, whatever computed them.

Each op names a rule, `Op.layout`. What serves the op on a backend, be it the generic forward or an
override, is held to it where a program applies the op; what a gradient's formula calls is not.
For row-major operands every rule gives row-major results, so that a look at flags is all it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.shape import Shape, contiguous_strides
from tensorflow_lite_clone.core.strides import (
    Geometry,
    dense_strides,
    elementwise_strides,
    has_format,
    suggested_strides,
)

#: The strides of a result, from its shape and the shapes and strides of the op's arrays.
Rule = Callable[[Shape, tuple[Geometry, ...]], Shape]


def row_major(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    """As most ops' results lie: reductions, functions along a dimension, products, indexing."""
    return contiguous_strides(shape)


#: As a function of each element lies: where all operands agree, as they do.
elementwise: Rule = elementwise_strides


def like_first(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    """As the first operand lies, without its gaps and repetitions."""
    return dense_strides(*operands[0])


def image(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    """channels_last where the first operand is."""
    return suggested_strides(shape, operands[0][1])


def image_or_weight(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    """channels_last where the first or the second operand is."""
    strides = suggested_strides(shape, operands[0][1])
    if strides == contiguous_strides(shape):
        strides = suggested_strides(shape, operands[1][1])
    return strides


def column_major(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    """Matrices as LAPACK leaves them, with columns next to each other."""
    *batch, rows, columns = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*batch, columns, rows)


def held(op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which serves `op` on `backend`, with results that lie as the op's rule says.

    Where a device lets results lie as it computes them (`storage.Free`), ops of any layout do.
    """
    rule = op.layout
    if rule is None or op.view or backend.batched or (backend.lays and op.any_layout):
        return call
    is_contiguous, array_type = backend.is_contiguous, backend.array_type
    of_images = rule in (image, image_or_weight)  # which may take row-major ones for channels_last

    def settled(result: Any, arrays: tuple) -> Any:
        if result.__class__ is tuple:
            return tuple([settled(one, arrays) for one in result])
        if result.__class__ is not array_type or not result.size:
            return result
        if result.ndim < 2 or rule is row_major:
            return result if is_contiguous(result) else backend.F.copy(result)
        operands = tuple(
            [(x.shape, backend.strides(x)) for x in arrays if x.__class__ is array_type]
        )
        return laid_out(backend, result, rule(result.shape, operands))

    if rule is elementwise and op.word is not None and len(op.inputs) == 2:

        def of_two(x: Any, y: Any) -> Any:
            result = call(x, y)
            if is_contiguous(x) and is_contiguous(y):
                return result
            return settled(result, (x, y))

        of_two.__wrapped__ = call  # type: ignore[attr-defined]
        return of_two

    if rule is elementwise and op.word is not None and len(op.inputs) == 1:

        def of_one(x: Any) -> Any:
            result = call(x)
            return result if is_contiguous(x) else settled(result, (x,))

        of_one.__wrapped__ = call  # type: ignore[attr-defined]
        return of_one

    def of_several(*arrays: Any, **parameters: Any) -> Any:
        result = call(*arrays, **parameters)
        if result.__class__ is array_type and is_contiguous(result) and rule is not column_major:
            if rule is row_major:
                return result
            for x in arrays:
                if x.__class__ is array_type and (
                    not is_contiguous(x) or (of_images and 1 in x.shape)
                ):
                    break
            else:
                return result
        return settled(result, arrays)

    return of_several


def laid_out(backend: Any, array: Any, strides: Shape) -> Any:
    """`array`, or a copy of it, with `strides`; those of dimensions of size one come for free."""
    have = backend.strides(array)
    if have == strides:
        return array
    if has_format(array.shape, have, strides):
        return backend.F.as_strided(array, array.shape, strides)
    return backend.F.restride(array, strides=strides)
