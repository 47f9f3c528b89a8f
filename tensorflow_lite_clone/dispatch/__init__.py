"""The table (op, backend) -> callable, overrides that may decline, hooks."""
