"""A linear map with quantized weights."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.ao.nn.quantized.dynamic.modules._weights import weight_packing
from tensorflow_lite_clone.ao.nn.quantized.modules.linear import LinearPackedParams
from tensorflow_lite_clone.core.dtypes import DType, float16, qint8
from tensorflow_lite_clone.nn.modules import linear
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.create.constructors import tensor, zeros
from tensorflow_lite_clone.quantized.linear import linear_dynamic
from tensorflow_lite_clone.quantized.quantize import empty_affine_quantized
from tensorflow_lite_clone.tensor import Tensor


class Linear(Module):
    """y = x W^T + b: (..., in_features) -> (..., out_features), with W of 8 or 16 bits.

    `dtype` is qint8, for which x is quantized at every call, or float16. Both x and y are of
    float32. There are no parameters and no gradients; `from_float` and `set_weight_bias` give the
    weights. `scale` and `zero_point` stand in the state, as in PyTorch, and mean nothing here.

    >>> from torch.ao.nn.quantized.dynamic import Linear
    >>> Linear(20, 30)
    DynamicQuantizedLinear(in_features=20, out_features=30, dtype=torch.qint8, \
qscheme=torch.per_tensor_affine)
    """

    _version = 4
    _packed_params: LinearPackedParams

    def __init__(
        self, in_features: int, out_features: int, bias_: bool = True, dtype: DType = qint8
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = 1.0, 0
        self.version: int | None = self._version
        self._packed_params = LinearPackedParams(dtype)
        size = out_features, in_features
        weight = empty_affine_quantized(size, dtype=qint8) if dtype is qint8 else zeros(*size)
        self.set_weight_bias(weight, zeros(out_features) if bias_ else None)

    def forward(self, x: Tensor) -> Tensor:
        # Until version 4 of the state all codes were used.
        reduce_range = self.version is not None and self.version > 3
        return linear_dynamic(x, self._packed_params._packed_params, reduce_range)

    def weight(self) -> Tensor:
        """The quantized weight, (out_features, in_features)."""
        return self._packed_params._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias, (out_features,) in float32, or None."""
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Take a quantized weight (for float16 one of float32), and a bias or None."""
        self._packed_params.set_weight_bias(w, b)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        dtype = self._packed_params.dtype
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={dtype}"
        return text if dtype is float16 else f"{text}, qscheme={self.weight().qscheme()}"

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}scale"] = tensor(self.scale)
        destination[f"{prefix}zero_point"] = tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any
    ) -> None:
        self.version = local_metadata.get("version")
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """The quantized form of a `torch.nn.Linear` that has a `qconfig`.

        AssertionError for other modules and for dtypes other than qint8 and float16.
        """
        kinds = linear.Linear, linear.NonDynamicallyQuantizableLinear
        dtype, pack = weight_packing(mod, kinds)
        made = cls(mod.in_features, mod.out_features, dtype=dtype)
        made._packed_params._packed_params = pack(mod.weight, mod.bias)
        return made
