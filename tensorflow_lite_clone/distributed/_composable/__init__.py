"""Older names of ways to change a module in its place."""
