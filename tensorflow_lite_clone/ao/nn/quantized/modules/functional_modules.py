"""Operations as modules, which static quantization would give scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tensorflow_lite_clone.nn.modules.linear import Identity
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.linalg.matmul import matmul
from tensorflow_lite_clone.ops.nn.activation import relu
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor


class FloatFunctional(Module):
    """Sums, products and more of tensors, whose results pass `activation_post_process`.

    That is the identity: static quantization, which would observe results there, is not here.

    >>> add = torch.ao.nn.quantized.FloatFunctional()
    >>> add.add_relu(torch.ones(2), torch.tensor([1.0, -3.0]))
    tensor([2., 0.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Tensor) -> NoReturn:
        """RuntimeError: its operations are called by their names."""
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying "
            "operation"
        )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """``x + y``."""
        return self.activation_post_process(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x + y``, which is not observed."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x * y``."""
        return self.activation_post_process(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """``x * y``, which is not observed."""
        return x * y

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """Tensors one after another."""
        return self.activation_post_process(cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """``relu(x + y)``."""
        return self.activation_post_process(relu(x + y))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """``x @ y``."""
        return self.activation_post_process(matmul(x, y))
