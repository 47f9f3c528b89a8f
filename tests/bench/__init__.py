"""Measurements against torch on one machine: ``python -m tests.bench``."""
