"""Mounted in `nn`, as `compat` says."""
