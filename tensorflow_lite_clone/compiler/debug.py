"""The folder that ``torch.compile(debug=...)`` fills for a reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

_EAGER = "eager.txt"


class Folder:
    """Where a compiled function writes what it was captured as, and why it was not.

    Each captured form has a folder ``N_name`` of its own.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / _EAGER).unlink(missing_ok=True)  # of an earlier run
        self._forms = 0

    def tell(self, name: str, reason: str) -> None:
        """Write down why calls run as they are."""
        with (self.path / _EAGER).open("a") as file:
            file.write(f"{name} runs eagerly: {reason}\n")

    @contextmanager
    def recording(self, graphs: Any, name: str) -> Iterator[None]:
        """Write what `graphs` capture in this block, if that does not fail."""
        with graphs.record() as record:
            yield
        self._forms += 1
        readable = re.sub(r"\W+", "_", name.rpartition(".")[2]).strip("_") or "function"
        record.write(self.path / f"{self._forms}_{readable}", f"What {name} was captured as")
