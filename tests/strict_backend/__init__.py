"""A device in one folder: NumPy arrays behind a wrapper that refuses what a device cannot do.

Its arrays know the operators, basic attributes and functions of the array API standard and the
primitives, and nothing else: no conversion to host values behind the programmer's back, no NumPy
methods. Code that runs on it runs on a device whose arrays are not NumPy's.
"""

from __future__ import annotations

from tests.strict_backend.backend import backend

__all__ = ["backend"]
