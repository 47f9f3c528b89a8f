"""Mounted in `ao.quantization`, as `compat` says."""
