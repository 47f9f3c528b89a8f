"""Special functions of each element."""
