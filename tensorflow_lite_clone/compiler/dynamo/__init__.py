"""Calls of functions recorded as graphs of `fx`, which backends compile: see docs/compile.md."""
