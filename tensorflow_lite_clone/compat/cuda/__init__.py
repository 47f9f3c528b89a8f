"""Mounted in `cuda`, as `compat` says."""
