"""Finds the kernel files, follows their edits, and inlines the headers they include.

Headers are inlined as text because CuPy's cache of compiled kernels sees the text it is given and
not what that includes: after an edit of a header it would serve stale binaries.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

#: The variable of the environment that names a folder whose files go before the package's.
VARIABLE = "TENSORFLOW_LITE_CLONE_KERNELS"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"[^\n]*$', re.MULTILINE)
#: A file whose name ends so uses the own instructions of one architecture.
_ARCHITECTURES = {"_sm90": "sm_90a"}
_PATIENCE = 0.25  # seconds between two looks at a file's time of change


@cache
def package_folder() -> Path:
    """The kernels of the package: those of the checkout, else those in the wheel."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parent / "kernels"
    return checkout if (checkout / "common.cuh").is_file() else package / "_kernels"


def architecture_of(path: Path) -> str | None:
    """The one architecture a file is compiled for, by its name; None where any will do."""
    for ending, architecture in _ARCHITECTURES.items():
        if path.stem.endswith(ending):
            return architecture
    return None


def folders() -> list[Path]:
    """Where a kernel file is looked for by its name: the user's folder, then the package's."""
    named = os.environ.get(VARIABLE)
    return [Path(named).resolve(), package_folder()] if named else [package_folder()]


class Source:
    """The text of one kernel file with its headers, read again when one of them changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.architecture = architecture_of(path)
        self.version = 0  # how often the text has changed
        self.text = ""
        self._times: dict[Path, int] = {}
        self._looked = 0.0
        self._read()

    def refresh(self) -> int:
        """Look for edits, unless that was done just now; returns the version."""
        now = time.monotonic()
        if now - self._looked > _PATIENCE:
            self._looked = now
            if any(_changed(path) != then for path, then in self._times.items()):
                with suppress(OSError):  # gone while an editor replaces it: the next look finds it
                    self._read()
        return self.version

    def _read(self) -> None:
        times: dict[Path, int] = {}
        text = self._inlined(self.path, set(), times)
        self._times = times
        if text != self.text:
            self.text = text
            self.version += 1
        self._looked = time.monotonic()

    def _inlined(self, path: Path, included: set[Path], times: dict[Path, int]) -> str:
        """The file's text; each header stands where it is first included."""
        times[path] = _changed(path)
        text = path.read_text(encoding="utf-8")

        def replace(match: re.Match[str]) -> str:
            header = _find_header(match[1], path)
            if header is None:
                return match[0]  # the compiler says what is missing, and where
            if header in included:
                return ""
            included.add(header)
            body = self._inlined(header, included, times)
            line = text.count("\n", 0, match.start()) + 2
            return f'{body}\n#line {line} "{path.name}"'

        return f'#line 1 "{path.name}"\n' + _INCLUDE.sub(replace, text)


def _find_header(name: str, path: Path) -> Path | None:
    """A header beside the file that includes it, or in the folders of kernels.

    The user's folder goes before the package's for the package's own files, too.
    """
    places = folders()
    if path.parent not in places:
        places.insert(0, path.parent)
    for folder in places:
        header = folder / name
        if header.is_file():
            return header.resolve()
    return None


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@cache
def _source(path: Path) -> Source:
    return Source(path)


def source(file: str | Path) -> Source:
    """The one `Source` of a file: a name in the folders of kernels, or a path.

    Raises FileNotFoundError with the places that were tried.
    """
    path = Path(file)
    places = folders() if path.name == str(path) else []
    for found in [*(folder / path for folder in places), path]:
        if found.is_file():
            return _source(found.resolve())
    tried = ", ".join(map(str, [*places, path.resolve().parent]))
    raise FileNotFoundError(f"there is no kernel file '{file}' in {tried}")
