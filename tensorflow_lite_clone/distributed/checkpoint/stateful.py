"""Objects that have a state to save, as ``torch.distributed.checkpoint.stateful``."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """What has a `state_dict` and a `load_state_dict`: modules, optimizers, and users' classes."""

    def state_dict(self) -> dict[str, Any]:
        """What is saved."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what was saved."""


StatefulT = TypeVar("StatefulT", bound=Stateful)
