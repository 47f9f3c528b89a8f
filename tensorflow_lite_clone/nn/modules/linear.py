"""Linear maps."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.lazy import LazyModuleMixin
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter, UninitializedParameter
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; accepts and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x W^T + b: (..., in_features) -> (..., out_features).

    Both are drawn from U(-1/sqrt(in_features), 1/sqrt(in_features)).
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self._register_empty("bias", out_features if bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight, then bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        try:  # as `_pair`, whose call would take a thirtieth of this one's time
            own = self._parameters if self._plain else {}
            weight, bias = own["weight"], own["bias"]
        except KeyError:
            weight, bias = self.weight, self.bias
        return F.linear(input, weight, bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes `in_features` from its first input."""

    cls_to_become = Linear

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None) -> None:
        # Without features and bias: the real ones follow, uninitialized.
        super().__init__(0, 0, False)
        self.weight: Any = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias: Any = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the shapes from the first input, and draw."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        self.in_features = self.weight.shape[-1]  # which a state that was loaded has changed


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` under the name that attention's output projection has in torch."""


class Bilinear(Module):
    """y_k = x1^T W_k x2 + b_k."""

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        size = (out_features, in1_features, in2_features)
        self.weight = Parameter(empty(size, device=device, dtype=dtype))
        self._register_empty("bias", out_features if bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight, then bias."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        weight, bias = self._pair(self._parameters, "weight", "bias")
        return F.bilinear(input1, input2, weight, bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
