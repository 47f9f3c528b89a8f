"""Mounted in `ao`, as `compat` says."""
