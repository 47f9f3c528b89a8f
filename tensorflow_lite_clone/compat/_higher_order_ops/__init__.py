"""``torch._higher_order_ops``: functions that take functions. transformers imports from it."""
