"""The weight and bias of a quantized linear map, as a module that saves and loads them."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.dtypes import DType, float16, qint8
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.create.constructors import zeros
from tensorflow_lite_clone.quantized.linear import PackedLinear
from tensorflow_lite_clone.quantized.quantize import empty_affine_quantized
from tensorflow_lite_clone.tensor import Tensor


class LinearPackedParams(Module):
    """A weight of `dtype`, qint8 or float16, and a bias.

    In a state they are the entries ``dtype`` and ``_packed_params``, a pair. (The first versions of
    the format had ``weight`` and ``bias``, the very first one no dtype.)
    """

    _version = 3
    _packed_params: PackedLinear

    def __init__(self, dtype: DType = qint8) -> None:
        super().__init__()
        self.dtype = dtype
        weight = empty_affine_quantized([1, 1], dtype=qint8) if dtype is qint8 else zeros(1, 1)
        self.set_weight_bias(weight, None)

    def set_weight_bias(self, weight: Tensor, bias: Tensor | None) -> None:
        """Take a weight, of qint8 or of float32 to be rounded to float16, and a bias."""
        if self.dtype not in (qint8, float16):
            raise RuntimeError(
                "Unsupported dtype on dynamic quantized linear! Expected torch.qint8 or "
                f"torch.float16, got {self.dtype}"
            )
        self._packed_params = PackedLinear(weight, bias)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None]:
        return self._packed_params.weight, self._packed_params.bias

    def _apply(self, fn: Any, recurse: bool = True) -> LinearPackedParams:
        """Move to another device with the module that this is a part of."""
        device = fn(zeros(0)).device
        if device != self._packed_params.weight.device:
            self._packed_params = self._packed_params.to(device)
        return self

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}dtype"] = self.dtype
        destination[f"{prefix}_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any
    ) -> None:
        version = local_metadata.get("version") or 1
        self.dtype = state_dict.pop(f"{prefix}dtype") if version > 1 else qint8
        if version > 2:
            weight, bias = state_dict.pop(f"{prefix}_packed_params")
        else:
            weight, bias = state_dict.pop(f"{prefix}weight"), state_dict.pop(f"{prefix}bias")
        self.set_weight_bias(weight, bias)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def __repr__(self) -> str:
        return repr(self._weight_bias())
