"""Loops that Numba compiles; importing a module imports Numba."""
