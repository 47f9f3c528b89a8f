"""``torch.classes``: classes of libraries in C++, of which there are none.

Transformers and others ask for one, and go on without it; some set ``torch.classes.__path__``.
"""

from __future__ import annotations

from typing import NoReturn

#: The libraries that were loaded.
loaded_libraries: set[str] = set()


def load_library(path: str) -> NoReturn:
    """NotImplementedError: libraries in C++ need PyTorch's own."""
    raise NotImplementedError(f"{path}: libraries in C++ need PyTorch's headers and libraries")


class _ClassNamespace:
    """The classes of one library: RuntimeError for each."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(
            f"Tried to instantiate class '{self._name}.{name}', but it does not exist! "
            "Ensure that it is registered via torch::class_"
        )


def __getattr__(name: str) -> _ClassNamespace:
    if name.startswith("__"):  # what Python's import system asks of modules
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _ClassNamespace(name)
