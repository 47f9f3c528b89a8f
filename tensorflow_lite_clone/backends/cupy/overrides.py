"""The ops that kernels serve: importing a family registers its overrides."""

from __future__ import annotations
