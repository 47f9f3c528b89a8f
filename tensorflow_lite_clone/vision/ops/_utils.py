"""Regions of interest in the forms that the pooling operators take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorflow_lite_clone.ops.create.constructors import full
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor


def convert_boxes_to_roi_format(boxes: Sequence[Tensor]) -> Tensor:
    """Rows (picture, x1, y1, x2, y2) of the boxes (L, 4) of each picture."""
    columns = [
        full((part.shape[0], 1), float(index), dtype=part.dtype, device=part.device)
        for index, part in enumerate(boxes)
    ]
    return cat([cat(columns), cat(list(boxes))], dim=1)


def check_roi_boxes_shape(boxes: Tensor | Sequence[Tensor]) -> None:
    """Raises AssertionError unless the boxes are (K, 5), or a list of (L, 4)."""
    if isinstance(boxes, Tensor):
        if boxes.ndim != 2 or boxes.shape[1] != 5:
            raise AssertionError("The boxes tensor shape is not correct as Tensor[K, 5]")
    elif isinstance(boxes, list | tuple):
        if any(part.ndim != 2 or part.shape[1] != 4 for part in boxes):
            raise AssertionError(
                "The shape of the tensor in the boxes list is not correct as List[Tensor[L, 4]]"
            )
    else:
        raise AssertionError("boxes is expected to be a Tensor[L, 5] or a List[Tensor[K, 4]]")


def rois_of(boxes: Tensor | Sequence[Tensor], input: Tensor) -> Tensor:
    """The boxes as rows (K, 5); RuntimeError if their dtype is not the input's."""
    check_roi_boxes_shape(boxes)
    rois = boxes if isinstance(boxes, Tensor) else convert_boxes_to_roi_format(boxes)
    if rois.dtype != input.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.dtype} does not equal {rois.dtype}"
        )
    return rois.detach()


def by_picture(
    input: Tensor, rois: Tensor, pool: Callable[[Tensor, Tensor], Tensor], empty: tuple[int, ...]
) -> Tensor:
    """`pool(picture, rows)` for each picture with the indices of its regions, in their order.

    `empty` is the shape of one result, for no regions at all.
    """
    if not len(rois):
        return input.sum() * 0 + input.new_zeros((0, *empty))
    pictures = rois[:, 0].long()
    numbers = pictures.unique().tolist()
    rows = [(pictures == number).nonzero()[:, 0] for number in numbers]
    results = [pool(input[number], row) for number, row in zip(numbers, rows)]
    return cat(results)[cat(rows).argsort()]


def pair(size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width."""
    return (size, size) if isinstance(size, int) else (size[0], size[-1])
