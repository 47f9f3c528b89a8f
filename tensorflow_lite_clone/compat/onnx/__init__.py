"""Mounted in `onnx`, as `compat` says."""
