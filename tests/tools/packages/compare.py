"""Whether two runs of a job printed the same."""

from __future__ import annotations

import math
from typing import Any

#: Numbers may differ by so much of themselves, or of the norm of their tensor's numbers.
RTOL = 1e-3
#: What a number beside no others may differ by where it is nearly zero.
ATOL = 1e-5


def judged(oracle: list[dict[str, Any]], here: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each step of `oracle` its name, the result and what is to be said of it.

    The result is "equal", "differs", "fails" (an exception, or the step never ran here), or "not
    judged" where PyTorch failed at it.
    """
    found = []
    by_name = {line["step"]: line for line in here}
    for line in oracle:
        name = line["step"]
        other = by_name.get(name, {"error": "the job ended before it"})
        if "error" in line:
            result, detail = "not judged", f"under PyTorch: {line['error']}"
        elif "error" in other:
            result, detail = "fails", other["error"]
        else:
            where = difference(line["value"], other["value"])
            result, detail = ("differs", where) if where else ("equal", "")
        found.append({"step": name, "result": result, "detail": detail})
    return found


def difference(one: Any, other: Any, where: str = "", scale: float = 0.0) -> str:
    """Where two values, as `tests.packages.steps.plain` gives them, are not the same; "" if they
    are. `scale` is the size of the numbers around, which rounding errors are measured by."""
    if isinstance(one, bool) or isinstance(other, bool) or type(one) is not type(other):
        numbers = (int, float)
        if isinstance(one, bool) or not (isinstance(one, numbers) and isinstance(other, numbers)):
            return (
                "" if one == other and type(one) is type(other) else f"{where}: {one!r}, {other!r}"
            )
    if isinstance(one, dict):
        if list(one) != list(other):
            return f"{where}: keys {list(one)}, {list(other)}"
        if isinstance(norm := one.get("norm"), float) and "numbers" in one:
            scale = norm / max(1.0, math.sqrt(math.prod(one["shape"])))
        each = (difference(one[key], other[key], f"{where}.{key}", scale) for key in one)
        return next(filter(None, each), "")
    if isinstance(one, list):
        if len(one) != len(other):
            return f"{where}: {len(one)}, {len(other)} entries"
        pairs = enumerate(zip(one, other, strict=True))
        each = (difference(a, b, f"{where}[{i}]", scale) for i, (a, b) in pairs)
        return next(filter(None, each), "")
    if isinstance(one, float):
        if math.isclose(one, other, rel_tol=RTOL, abs_tol=max(ATOL * (scale == 0), RTOL * scale)):
            return ""
    elif one == other:
        return ""
    return f"{where}: {one!r}, {other!r}"
