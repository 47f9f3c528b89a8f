"""torchvision, the oracle of these tests; a module that imports this is skipped without it."""

from __future__ import annotations

import pytest

from tests.vision.declared import imported

torchvision = imported()
if torchvision is None:
    pytest.skip("torchvision is not installed", allow_module_level=True)
