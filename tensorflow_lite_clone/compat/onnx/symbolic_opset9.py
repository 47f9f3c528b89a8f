"""``torch.onnx.symbolic_opset9``: see `symbolic_helper`."""

from __future__ import annotations

from .symbolic_helper import refused

gelu, masked_fill, softmax = map(refused, ("gelu", "masked_fill", "softmax"))
