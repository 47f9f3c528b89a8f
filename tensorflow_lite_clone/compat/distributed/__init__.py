"""Mounted in `distributed`, as `compat` says."""
