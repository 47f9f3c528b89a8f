"""Windows cut out into columns, and columns summed back into place."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Fold", "Unfold"]


class Fold(Stateless):
    """Sums columns (N, C * prod(kernel_size), windows) into images; see `functional.fold`."""

    repr_fields = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )


class Unfold(Stateless):
    """Cuts images into columns (N, C * prod(kernel_size), windows); see `functional.unfold`."""

    repr_fields = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
