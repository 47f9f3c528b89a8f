"""The start of ``python -m tensorflow_lite_clone`` and of its modules, before all other imports.

Python puts the current folder at the head of the path then. A `numpy.py` or `random.py` that
happens to lie there is none of the program that is to run, which may lie anywhere, so the folder
goes before this package imports anything; where the package lies in it, to the end of the path.
(What Python itself imports to find the package, `contextlib` and `functools` among it, has been
taken by then; ``python -P`` is the way out.)
"""

from __future__ import annotations

import os
import sys


def _names_package() -> bool:
    """Whether what ``python -m`` is looking for just now is this package, or a module in it."""
    if sys.argv[:1] != ["-m"]:
        return False
    word = sys.orig_argv[len(sys.orig_argv) - len(sys.argv)]
    name = word.partition("m")[2] if word.startswith("-") else word  # also -mNAME and -BmNAME
    return name.partition(".")[0] == __name__.partition(".")[0]


if _names_package() and not sys.flags.safe_path:
    folder = sys.path.pop(0)
    if folder == os.path.dirname(os.path.dirname(os.path.abspath(__file__))):
        sys.path.append(folder)  # processes that are started find the package there, after all else
