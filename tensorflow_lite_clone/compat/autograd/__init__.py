"""Mounted in `autograd`, as `compat` says."""
