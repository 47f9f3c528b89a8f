"""``torch.onnx.symbolic_opset12``: see `symbolic_helper`."""

from __future__ import annotations

from .symbolic_helper import refused

dropout = refused("dropout")
