"""Every collective against its definition, in two and four processes of this machine."""

from __future__ import annotations

import pytest

from tests.distributed.cases import CASES, run
from tests.distributed.worlds import world


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("name", CASES)
def test_collectives(name, size):
    world(size).run(run, name)
