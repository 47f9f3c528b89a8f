"""`TorchVersion`, the type of ``torch.__version__``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from operator import ge, gt, le, lt
from typing import Any

from tensorflow_lite_clone.version import __version__ as _text

__all__ = ["TorchVersion", "__version__"]

# The versions of PEP 440 without epochs.
_PATTERN = re.compile(
    r"v?(?P<numbers>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<phase>a|alpha|b|beta|c|rc|pre|preview)[-_.]?(?P<of_phase>\d*))?"
    r"(?P<post>-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?"
    r"(?P<dev>[-_.]?dev[-_.]?\d*)?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
_PHASES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def _number(text: str | None) -> int:
    """The digits at the end of a part, 0 for none; -1 where the part is missing."""
    return -1 if text is None else int("0" + text.lstrip("-_.abcdehlopqrstvw"))


def _key(version: Any) -> tuple[Any, ...] | None:
    """What orders a version as PEP 440 does; None for what is no version."""
    if isinstance(version, Iterable) and not isinstance(version, str):
        version = ".".join(map(str, version))
    found = _PATTERN.fullmatch(str(version).strip().lower())
    if found is None:
        return None
    numbers = [int(word) for word in found["numbers"].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    phase, post, dev = found["phase"], _number(found["post"]), _number(found["dev"])
    if phase is None:  # a development release comes before all phases, a plain one behind them
        phase = "" if dev >= 0 and post < 0 else "~"
    local = [] if found["local"] is None else re.split("[-_.]", found["local"])
    return (
        tuple(numbers),
        _PHASES.get(phase, phase),
        _number(found["of_phase"]),
        post,
        dev if dev >= 0 else float("inf"),
        tuple([(1, int(word), "") if word.isdigit() else (0, 0, word) for word in local]),
    )


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[str, Any], bool]:
    def method(self: str, other: Any) -> bool:
        key, other_key = _key(self), _key(other)
        if key is None or other_key is None:
            return compare(str(self), other)
        return compare(key, other_key)

    return method


class TorchVersion(str):
    """A version that is text, and is ordered as a version among texts and tuples of numbers.

    ``TorchVersion("2.13.0") > "2.9"`` and ``TorchVersion("2.13.0") >= (2, 13)``. Beside what is no
    version (PEP 440) it is ordered as text.
    """

    __lt__ = _comparison(lt)
    __le__ = _comparison(le)
    __gt__ = _comparison(gt)
    __ge__ = _comparison(ge)

    def __eq__(self, other: object) -> bool:
        key, other_key = _key(self), _key(other)
        return str(self) == other if key is None or other_key is None else key == other_key

    __hash__ = str.__hash__


__version__ = TorchVersion(_text)
