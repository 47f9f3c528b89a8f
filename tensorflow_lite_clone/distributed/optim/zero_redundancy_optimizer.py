"""An optimizer of which each process of a group keeps a part; of one process, so far."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributed.distributed_c10d import _get_default_group
from tensorflow_lite_clone.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """``optimizer_class(params, **defaults)``, whose state all processes share out.

    In a group of one, this process keeps all of it. Needs a process group.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("overlap_with_ddp (planned: several devices and processes)")
        self.process_group = process_group or _get_default_group()
        self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        # One list of groups and one state: a schedule that sets a rate sets the inner one's.
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """A step of the inner optimizer."""
        return self.optim.step(closure, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters."""
        if getattr(self, "param_groups", None) is self.optim.param_groups:
            self.optim.add_param_group(param_group)
        else:  # while this object is made
            super().add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state together in the process `to`, before `state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state
