"""Reductions, scans and statistics."""
