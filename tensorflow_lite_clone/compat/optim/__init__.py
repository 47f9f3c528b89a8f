"""Mounted in `optim`, as `compat` says."""
