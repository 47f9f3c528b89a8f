"""An optimizer after whose steps the parameters of processes are averaged."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.optim.optimizer import Optimizer

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """`optim`, and after each of its steps ``averager.average_parameters(param_groups)``.

    Source: Lin et al., "Don't Use Large Mini-Batches, Use Local SGD" (2020).
    """

    def __init__(self, optim: Optimizer, averager: Any) -> None:
        self.optim = optim
        self.averager = averager
        self.param_groups = optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The inner optimizer's."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The inner optimizer's, and the averager's number of steps as ``step``."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what `state_dict` gave; without ``step`` the averager starts anew, with a
        warning."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" in state_dict:
            self.averager.step = state_dict["step"]
        else:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step "
                "counter to 0.",
                stacklevel=2,
            )
            self.averager.step = 0

    def step(self) -> None:  # type: ignore[override]
        """A step of the inner optimizer, and of the averager."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or fill them with zeros."""
        self.optim.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters to the inner optimizer."""
        self.optim.add_param_group(param_group)
