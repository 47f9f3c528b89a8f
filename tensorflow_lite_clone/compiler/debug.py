"""The folder that ``torch.compile(debug=...)`` fills for a reader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

_EAGER = "eager.txt"
#: How many forms this process has written into a folder, which several functions may share.
_forms: Counter[Path] = Counter()


class Folder:
    """Where a compiled function writes what it was captured as, and why it was not.

    Each captured form has a folder ``N_name`` of its own.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).resolve()
        self.path.mkdir(parents=True, exist_ok=True)
        if self.path not in _forms:
            (self.path / _EAGER).unlink(missing_ok=True)  # of an earlier run
            _forms[self.path] = 0

    def tell(self, name: str, reason: str) -> None:
        """Write down why calls run as they are."""
        with (self.path / _EAGER).open("a") as file:
            file.write(f"{name} runs eagerly: {reason}\n")

    @contextmanager
    def recording(self, graphs: Any, name: str) -> Iterator[None]:
        """Write what `graphs` capture in this block, if that does not fail."""
        with graphs.record() as record:
            yield
        _forms[self.path] += 1
        readable = re.sub(r"\W+", "_", name.rpartition(".")[2]).strip("_") or "function"
        folder = self.path / f"{_forms[self.path]}_{readable}"
        record.write(folder, f"What `{name}` was captured as")
