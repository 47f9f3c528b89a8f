"""Mounted in `utils.data`, as `compat` says."""
