"""``torch.onnx.symbolic_opset11``: see `symbolic_helper`."""

from __future__ import annotations

from .symbolic_helper import refused

select, squeeze, unsqueeze = map(refused, ("select", "squeeze", "unsqueeze"))
