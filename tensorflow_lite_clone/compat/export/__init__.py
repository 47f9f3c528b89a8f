"""Mounted in `export`, as `compat` says."""
