"""``torch.xpu``, ``torch.mps`` and ``torch.mtia``: accelerators that are not served.

What programs ask on every machine has its answer: there is no such device, and seeds for it are
taken and dropped, as PyTorch does where it finds none.
"""

from __future__ import annotations

from typing import NoReturn


class AbsentDevice:
    """The module of a type of device of which there is none."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<torch.{self.__name__}: no such devices>"

    def is_available(self) -> bool:
        """False."""
        return False

    def is_initialized(self) -> bool:
        """False."""
        return False

    def device_count(self) -> int:
        """0."""
        return 0

    def manual_seed(self, seed: int) -> None:
        """Nothing: there is no generator to seed."""

    def manual_seed_all(self, seed: int) -> None:
        """Nothing: there is no generator to seed."""

    def empty_cache(self) -> None:
        """Nothing is kept for `xpu`; RuntimeError for the others, as in PyTorch."""
        if self.__name__ != "xpu":
            raise RuntimeError(
                f"Cannot execute emptyCache() without {self.__name__.upper()} backend."
            )

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"torch.{self.__name__} has no attribute '{name}': devices of this type are not served"
        )


xpu, mps, mtia = (AbsentDevice(name) for name in ("xpu", "mps", "mtia"))
