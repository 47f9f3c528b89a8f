"""How an op's results lie in memory: as PyTorch's do, whatever computed them.

Each op names a rule, `Op.layout`, to which `in_order` holds what serves the op on a backend, be it
the generic forward or an override. Whoever applies ops to tensors calls it; what the formula of a
gradient calls lies as it likes. The short ways for common ops ask only where an array is not
row-major: for row-major operands most rules give row-major results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.core.shape import Shape, contiguous_strides
from tensorflow_lite_clone.core.strides import (
    Geometry,
    dense_strides,
    elementwise_strides,
    has_format,
    is_channels_last,
    suggested_strides,
    unsqueezed,
)

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Array, Backend

#: The strides of a result, from its shape, the shapes and strides of the op's arrays, and the op's
#: parameters. It is asked for results of two dimensions or more.
Rule = Callable[[Shape, tuple[Geometry, ...], dict[str, Any]], Shape]


#: How often arrays were copied from one order of memory to another, which tests and profiles read:
#: "packed" where channels were brought next to each other, for a convolution or as another operand
#: lies so; "settled" where they were brought back, because a program looked at the array.
conversions: Counter[str] = Counter()

#: Rules by which results of row-major operands need not be row-major.
_reordering: set[Rule] = set()


def reordering(rule: Any) -> Any:
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
    if len(shape) == 5 and _is_small(operands[0], operands[1], parameters["groups"]):
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


def in_order(
    op: Any, backend: Backend, result: Any, arrays: Sequence[Any], parameters: dict
) -> Any:
    """An op's result (or a tuple of them), or copies, as `Op.layout` lets it lie in memory.

    `arrays` are the op's, or None. Where a device lets results lie as it computes them
    (`storage.LazyStorage`), those of layout-agnostic ops do as soon as one of their arrays is
    channels_last.
    """
    rule = op.layout
    if rule is None or op.view or backend.batched or backend.dispatches:
        return result
    kind = backend.array_type
    contiguous = result.__class__ is kind and backend.is_contiguous(result)
    if contiguous:
        if rule is row_major or result.ndim < 2:
            return result
        if rule not in _reordering:
            ambiguous = rule in _OF_IMAGES
            for x in arrays:
                if x.__class__ is kind and (
                    not backend.is_contiguous(x) or (ambiguous and 1 in x.shape)
                ):
                    break
            else:
                return result
    elif rule is elementwise and result.__class__ is kind:
        strides = result.strides
        for x in arrays:  # the dense layout of the result is that of all operands
            if x.__class__ is not kind or x.strides != strides:
                break
        else:
            return result
    if backend.lays and op.layout_agnostic and _among_free(backend, result, arrays):
        return result
    if result.__class__ is tuple:
        return tuple(
            [
                one
                if place in op.auxiliary_outputs
                else in_order(op, backend, one, arrays, parameters)
                for place, one in enumerate(result)
            ]
        )
    if result.__class__ is not kind or not result.size:
        return result
    if rule is row_major or result.ndim < 2:
        return backend.F.copy(result)
    operands = tuple([(x.shape, backend.strides(x)) for x in arrays if x.__class__ is kind])
    return laid_out(backend, result, rule(result.shape, operands, parameters))


def _among_free(backend: Backend, result: Any, arrays: Sequence[Any]) -> bool:
    """Whether an array is channels_last, as those of free storages are."""
    results = result if result.__class__ is tuple else (result,)
    return any(
        [
            x.ndim == 4 and is_channels_last(x.shape, backend.strides(x))
            for x in (*results, *arrays)
            if x.__class__ is backend.array_type
        ]
    )


def laid_out(backend: Backend, array: Array, strides: Shape) -> Any:
    """`array`, or a copy of it, with `strides`; those of dimensions of size one come for free."""
    have = backend.strides(array)
    if have == strides:
        return array
    if has_format(array.shape, have, strides):
        return backend.F.as_strided(array, array.shape, strides)
    return backend.F.restride(array, strides=strides)
