"""What `use_deterministic_algorithms` changes: some functions refuse, new memory is filled."""

from __future__ import annotations

import warnings

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.limits import iinfo


def expect_any_order(name: str) -> None:
    """RuntimeError, or a warning, if deterministic algorithms were asked for.

    For functions whose result depends on the order in which equal places are written.
    """
    if not flags.deterministic:
        return
    if not flags.deterministic_warn_only:
        raise RuntimeError(
            f"{name} does not have a deterministic implementation, but you set "
            "'torch.use_deterministic_algorithms(True)'. Turn it off for this operation, or give "
            "'warn_only=True'."
        )
    warnings.warn(
        f"{name} does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True, warn_only=True)'.",
        stacklevel=level_outside(),
    )


def filling(dtype: DType) -> float | int | bool | None:
    """What new memory is filled with: NaN or the largest number; None where it is left as it is."""
    if not (flags.deterministic and flags.fill_uninitialized_memory):
        return None
    if dtype.kind in "fc":
        return float("nan")
    return True if dtype.kind == "b" else iinfo(dtype).max
