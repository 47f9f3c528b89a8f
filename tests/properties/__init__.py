"""Properties that hold for all inputs, drawn by hypothesis, with torch as the oracle."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples every time in CI; HYPOTHESIS_PROFILE=explore looks further.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", max_examples=100, derandomize=True, database=None, **_COMMON)
settings.register_profile("explore", max_examples=1500, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
