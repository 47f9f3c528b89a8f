"""Mounted in `backends`, as `compat` says."""
