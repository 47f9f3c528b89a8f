"""Reads and writes at indices, sorting and searching."""
