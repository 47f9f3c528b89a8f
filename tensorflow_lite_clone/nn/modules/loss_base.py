"""The bases of losses: the reduction, and a weight per class."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from tensorflow_lite_clone.nn import _reduction
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor


class _Loss(Module):
    """A loss with a reduction; of one without other options a subclass names the `function`."""

    function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = _reduction.legacy_get_string(size_average, reduce)
        self.reduction = reduction

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return type(self).function(input, target, reduction=self.reduction)


class _WeightedLoss(_Loss):
    """A loss with a weight per class (or per element), which is a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return type(self).function(input, target, weight=self.weight, reduction=self.reduction)
