"""Whether compiled functions compile, use what they have, or run as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

_STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


class _Stance:
    """The one that holds in this process."""

    name = "default"


stance = _Stance()


class set_stance:  # noqa: N801  PyTorch's name
    """Say what compiled functions do from here on; as a block or a decorator, inside of it.

    ``"default"``, ``"force_eager"`` (they run as they are), ``"eager_on_recompile"`` (so they do
    where nothing is compiled yet), ``"fail_on_recompile"`` (that is a RuntimeError).
    """

    def __init__(self, stance: str = "default", *, force_backend: Any = None) -> None:
        if stance not in _STANCES:
            raise RuntimeError(
                f"invalid torch.compile stance '{stance}', expected one of {_STANCES}"
            )
        if force_backend is not None:
            raise NotImplementedError("set_stance(force_backend=...): backends are not exchanged")
        self._name = stance
        self._before = _exchange(stance)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        _exchange(self._before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _exchange(self._before)  # it holds in the function alone

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._name):
                return function(*args, **kwargs)

        return call


def _exchange(name: str) -> str:
    before, stance.name = stance.name, name
    return before
