"""The loader's parts: fetching, collation, worker processes."""
