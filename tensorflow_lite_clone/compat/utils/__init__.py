"""Mounted in `utils`, as `compat` says."""
