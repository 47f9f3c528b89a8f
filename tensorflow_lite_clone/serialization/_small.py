"""Small names of ``torch.serialization`` that have little to do with files."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside


class SourceChangeWarning(Warning):
    """For modules whose source has changed since they were saved; only the oldest files know."""


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is there for a block."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether ``module.__version__`` is at least `req_version_tuple`.

    A version that is no numbers is a RuntimeError, or without `error_if_malformed` a warning, and
    good enough.
    """
    words = str(module.__version__).split(".")[: len(req_version_tuple)]
    try:
        return tuple([int(word) for word in words]) >= tuple(req_version_tuple)
    except ValueError as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{module.__version__}' and "
            f"cannot be compared with tuple {req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(
            f"{message}, but continuing assuming that requirement is met",
            stacklevel=level_outside(),
        )
        return True
