"""Tables of a step's kernels from records like the profiler's."""

from __future__ import annotations

from tests.bench import breakdown


def record(name: str, at: float, microseconds: float, grid: list[int] | None) -> dict:
    where = {"grid": grid, "block": [256, 1, 1]} if grid else {"bytes": 400}
    return {"name": name, "ts": at, "dur": microseconds, "args": where}


STEPS = [
    event
    for begin in (0.0, 100.0)
    for event in (
        record("add<float>", begin, 5.0, [8, 1, 1]),
        record("product", begin + 6, 30.0, [4, 4, 1]),
        record("add<float>", begin + 40, 7.0, [16, 1, 1]),
        record("Memcpy DtoD", begin + 48, 2.0, None),
    )
]


def test_launches_of_one_kernel_are_a_line() -> None:
    found = breakdown.lines(STEPS, 2, by_shape=False)
    assert [(line.name, line.launches, line.microseconds) for line in found] == [
        ("product", 1, 30.0), ("add<float>", 2, 12.0), ("Memcpy DtoD", 1, 2.0),
    ]  # fmt: skip
    apart = breakdown.lines(STEPS, 2, by_shape=True)
    assert [(line.shape, line.microseconds) for line in apart] == [
        ("4x4x1 of 256x1x1", 30.0), ("16x1x1 of 256x1x1", 7.0), ("8x1x1 of 256x1x1", 5.0),
        ("400 bytes", 2.0),
    ]  # fmt: skip


def test_the_table_says_what_a_step_takes() -> None:
    text = breakdown.table("a step", STEPS, 2, by_shape=False)
    assert "4 launches, 44.0 us in kernels of a step of 75.0 us" in text
    assert "| 12.0 | 2 | 6.0 | `add<float>` |  |" in text
