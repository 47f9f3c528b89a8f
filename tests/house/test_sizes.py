"""No file grows past what one can hold in the head."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.tools.markdown import ROOT

SOFT, HARD = 500, 700

# Files between the two limits, and why they are not divided.
LONG: dict[str, str] = {
    "tests/packages/jobs/diffusers/pipelines.py": "its steps share one set of small networks",
}


def sources() -> Iterator[Path]:
    """Every Python and CUDA source of the checkout."""
    for folder in ("tensorflow_lite_clone", "kernels", "tests", "examples"):
        for pattern in ("*.py", "*.pyi", "*.cu", "*.cuh"):
            yield from sorted((ROOT / folder).rglob(pattern))


def too_long(lengths: dict[str, int], long: dict[str, str]) -> list[str]:
    """Files past the hard limit, past the soft one without a reason, and reasons without need."""
    return [
        f"{name}: {length} lines, {'hard' if length > HARD else 'soft'} limit "
        f"{HARD if length > HARD else SOFT}"
        for name, length in lengths.items()
        if length > HARD or (length > SOFT and name not in long)
    ] + [f"{name}: its reason is no longer needed" for name in long if lengths.get(name, 0) <= SOFT]


def test_files_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in sources()
        if path.name != "tensor.pyi"  # generated
    }
    assert too_long(lengths, LONG) == []


def test_long_files_are_noticed() -> None:
    assert too_long({"a.py": 500, "b.py": 600}, {"b.py": "one table"}) == []
    assert too_long({"a.py": 501}, {}) == ["a.py: 501 lines, soft limit 500"]
    assert too_long({"a.py": 701}, {"a.py": "one table"}) == ["a.py: 701 lines, hard limit 700"]
    assert too_long({"a.py": 20}, {"a.py": "one table"}) == ["a.py: its reason is no longer needed"]
