"""Where a package's modules are looked for: in its folder, then in its folder of `compat`."""

from __future__ import annotations

import os
from collections.abc import MutableSequence

from tensorflow_lite_clone.core.errors import PACKAGE_FOLDER

_PACKAGE = __package__.partition(".")[0]


def mount_compat(path: MutableSequence[str], package: str) -> None:
    """Let the modules in the folder of `compat` that corresponds to a package be modules of it.

    `path` is the package's ``__path__``.
    """
    inner = package.removeprefix(_PACKAGE).strip(".").split(".")
    path.append(os.path.join(PACKAGE_FOLDER, "compat", *inner))
