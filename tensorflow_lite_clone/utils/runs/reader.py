"""Reading a folder of runs while they are written."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow_lite_clone.utils.runs.purges import without_purged

_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_EXACT = 2**53  # below it every integer is a number of JSON's readers
_LONGEST = 1 << 26  # bytes of a line; what is longer is no record
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


class Event(NamedTuple):
    """One record. `value` is None where it is large; `Reader.load` fetches it from `place`."""

    run: str  # the folder below the reader's, with "/"; "." is that itself
    kind: str
    tag: str
    step: int
    time: float
    value: Any
    place: tuple[str, int, int] | None = None  # the file, where the line begins, its length


class _File:
    """How far a file has been read."""

    def __init__(self, run: str, identity: tuple[int, int]) -> None:
        self.run = run
        self.identity = identity
        self.offset = 0
        self.malformed = 0
        self.partial = False
        self.skipping = False  # within a line that is too long


# -- what a line may hold -------------------------------------------------------------------------


def _number(x: Any) -> float:
    if isinstance(x, str):
        return _NUMBERS[x]
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise TypeError("no number")
    return float(x)


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise TypeError("no text")
    return x


def _histogram(x: Any) -> Any:
    if len(x["limits"]) != len(x["counts"]):
        raise ValueError("limits without counts")
    return [_number(n) for n in [*x["limits"], *x["counts"]]]


def _curve(x: Any) -> Any:
    if len(x["precision"]) != len(x["recall"]):
        raise ValueError("precision without recall")
    return [_number(n) for n in [*x["precision"], *x["recall"]]]


def _media(x: Any) -> Any:
    if x["type"] not in ("image/png", "image/gif", "audio/wav"):
        raise ValueError("another type")
    if not _BASE64.fullmatch(x["data"]):
        raise ValueError("no base64")


def _hparams(x: Any) -> Any:
    given = {_text(name): value for name, value in x["hparams"].items()}
    if not all(isinstance(value, str | int | float) for value in given.values()):
        raise TypeError("no hyperparameter")
    return {"hparams": given, "metrics": [_text(name) for name in x["metrics"]]}


# Kind -> what checks its value, and whether that is kept; other values stay in the file.
_CHECKS: dict[str, tuple[Any, bool]] = {
    "scalar": (_number, True),
    "hparams": (_hparams, True),
    "histogram": (_histogram, False),
    "pr_curve": (_curve, False),
    "image": (_media, False),
    "audio": (_media, False),
    "text": (_text, False),
}


def _event(run: str, line: bytes, place: tuple[str, int, int]) -> Event:
    """The event of a line; ValueError, TypeError, LookupError, ... for what is none."""
    record = json.loads(line)
    kind, tag, step = _text(record["kind"]), _text(record["tag"]), record["step"]
    time = float(_number(record["time"]))
    if type(step) is not int or abs(step) >= _EXACT or not math.isfinite(time):
        raise ValueError("no step or no time")
    check, kept = _CHECKS.get(kind, (lambda value: None, False))
    value = check(record["value"])
    return Event(run, kind, tag, step, time, *((value, None) if kept else (None, place)))


# -- the reader -----------------------------------------------------------------------------------


class Reader:
    """The records of all files ``*.jsonl`` of a folder and the folders in it, each a run.

    `poll` reads what was added since it was last called. `events` are the records so far, those
    that a later run has purged left out. `generation` rises when earlier ones have changed: a file
    has vanished or was cut, or some were purged. Nothing that stands in a file raises an
    exception: a line that is no record is counted (`problems` says so), and a last line without an
    end waits for it. Files that links name are read only if they lie in the folder.
    """

    def __init__(self, folder: str | os.PathLike) -> None:
        self.folder = os.path.realpath(folder)
        self.events: list[Event] = []
        self.generation = 0
        self._files: dict[str, _File] = {}
        self._purges: list[tuple[int, Event]] = []  # with the number of events before each
        self._unreadable: dict[str, str] = {}
        self._foreign = 0

    def poll(self) -> None:
        """Read what is new."""
        self._unreadable.clear()
        found = self._find()
        if any(self._has_changed(path, found) for path in self._files):
            self._files.clear()
            self.events.clear()
            self.generation += 1
        for path, (run, status) in sorted(found.items()):
            if path not in self._files:
                self._files[path] = _File(run, (status.st_dev, status.st_ino))
            if status.st_size > self._files[path].offset:
                try:
                    self._read(path, self._files[path])
                except OSError as error:
                    self._note(error)
        self._purge()

    def _find(self) -> dict[str, tuple[str, os.stat_result]]:
        """The files there are: path -> run and status."""
        found = {}
        self._foreign = 0
        for place, _, names in os.walk(self.folder, onerror=self._note):
            run = Path(os.path.relpath(place, self.folder)).as_posix()
            for name in names:
                self._foreign += "tfevents" in name
                path = os.path.join(place, name)
                if not name.endswith(".jsonl") or not self._is_inside(path):
                    continue
                try:
                    status = os.stat(path)
                except OSError:  # it has just vanished
                    continue
                if stat.S_ISREG(status.st_mode):
                    found[path] = run, status
        return found

    def _note(self, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # what is not there yet is no problem
            self._unreadable[str(error.filename)] = error.strerror or str(error)

    def _is_inside(self, path: str) -> bool:
        return os.path.realpath(path).startswith(os.path.join(self.folder, ""))

    def _has_changed(self, path: str, found: dict[str, tuple[str, os.stat_result]]) -> bool:
        """Whether a file that was read is gone, another one, or shorter than it was."""
        if path not in found:
            return True
        _, status = found[path]
        known = self._files[path]
        return (status.st_dev, status.st_ino) != known.identity or status.st_size < known.offset

    def _read(self, path: str, known: _File) -> None:
        with open(path, "rb") as file:
            file.seek(known.offset)
            known.partial = False
            while line := file.readline(_LONGEST):
                ends = line.endswith(b"\n")
                if not ends and len(line) < _LONGEST:
                    known.partial = True
                    return
                place = path, known.offset, len(line)
                known.offset += len(line)
                if ends and not known.skipping:
                    self._take(known, line, place)
                known.malformed += known.skipping and ends
                known.skipping = not ends

    def _take(self, known: _File, line: bytes, place: tuple[str, int, int]) -> None:
        if line.isspace():
            return
        try:
            event = _event(known.run, line, place)
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
            known.malformed += 1
        except RecursionError:  # brackets in brackets
            known.malformed += 1
        else:
            if event.kind == "purge":
                self._purges.append((len(self.events), event))
            else:
                self.events.append(event)

    def _purge(self) -> None:
        """Leave out what purges among the lines just read take away, all of them at once."""
        left = without_purged(self.events, self._purges) if self._purges else self.events
        self._purges.clear()
        if len(left) < len(self.events):
            self.events = left
            self.generation += 1

    def load(self, event: Event) -> Any:
        """The value of an event; LookupError where its file no longer holds it."""
        if event.place is None:
            return event.value
        path, offset, length = event.place
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                line = file.read(length)
            if _event(event.run, line, event.place) != event:
                raise ValueError("another event")
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise LookupError(f"{path} no longer holds {event.tag!r}") from error
        return json.loads(line)["value"]

    def scalars(self) -> dict[str, dict[str, list[tuple[int, float]]]]:
        """The curves: run -> tag -> pairs of step and value."""
        curves: dict[str, dict[str, list[tuple[int, float]]]] = {}
        for event in self.events:
            if event.kind == "scalar":
                tags = curves.setdefault(event.run, {})
                tags.setdefault(event.tag, []).append((event.step, event.value))
        return curves

    @property
    def problems(self) -> list[str]:
        """What could not be read, a sentence each."""
        said = []
        for path, known in self._files.items():
            name = os.path.relpath(path, self.folder)
            if known.malformed:
                lines = "line is" if known.malformed == 1 else "lines are"
                said.append(f"{name}: {known.malformed} {lines} malformed and left out")
            if known.partial:
                said.append(f"{name}: the last line has no end yet")
        for path, reason in self._unreadable.items():
            said.append(f"{os.path.relpath(path, self.folder)}: {reason}")
        if self._foreign:
            said.append(
                f"{self._foreign} of TensorBoard's files are not shown here: tensorboard "
                f"--logdir {self.folder}"
            )
        return said
