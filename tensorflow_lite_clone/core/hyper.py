"""Hyperparameters as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any


class Hyper:
    """What an optimizer's step takes by keyword: ``Hyper({"lr": 0.1}).lr`` is 0.1.

    Rules read them for every parameter, for which a `SimpleNamespace` is slow.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__ = values

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
