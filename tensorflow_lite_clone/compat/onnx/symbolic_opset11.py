"""``torch.onnx.symbolic_opset11``: see `symbolic_helper`."""

from __future__ import annotations

from tensorflow_lite_clone.onnx.symbolic_helper import refused

select, squeeze, unsqueeze = map(refused, ("select", "squeeze", "unsqueeze"))
