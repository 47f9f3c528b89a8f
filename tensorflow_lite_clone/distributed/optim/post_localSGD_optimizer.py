"""An optimizer after whose steps models are averaged now and then."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.distributed.algorithms.model_averaging.averagers import ModelAverager
from tensorflow_lite_clone.optim.optimizer import Optimizer


class PostLocalSGDOptimizer(Optimizer):
    """`optim`, after each step of which `averager` may average the parameters.

    Its state dict has the averager's count of steps besides.
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The optimizer's."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's, with ``step``, the number of steps of the averager."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` gave; without ``step``, warn and let the averager begin at 0."""
        self.optim.load_state_dict(state_dict)
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step "
                "counter to 0.",
                stacklevel=level_outside(),
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:  # type: ignore[override]
        """A step of the optimizer, then of the averager."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """The optimizer's."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """The optimizer's."""
        self.optim.add_param_group(param_group)
