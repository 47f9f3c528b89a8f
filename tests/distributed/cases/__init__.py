"""A table of collectives that check themselves, over whatever engine the world has.

``run(rank, size, name)`` runs one in a process of a world.
"""

from tests.distributed.cases import collectives, different, messages, several  # noqa: F401
from tests.distributed.cases.table import CASES, run

__all__ = ["CASES", "run"]
