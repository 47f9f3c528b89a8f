"""Discrete Fourier transforms and windows."""
