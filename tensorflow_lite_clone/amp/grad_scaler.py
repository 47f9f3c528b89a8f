"""Loss scaling for float16, whose smallest gradients would vanish."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from enum import Enum
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.create.constructors import full, zeros
from tensorflow_lite_clone.ops.update import unscale, update_scale
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.tensor import Tensor


class OptState(Enum):
    """How far an optimizer is in a step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _any(flags: list[Tensor], device: Any) -> Tensor:
    """One flag on a device that is zero if all are."""
    total = flags[0].to(device)
    for flag in flags[1:]:
        total = total + flag.to(device)
    return total


class GradScaler:
    """Scales losses, and takes steps only where no gradient overflowed; ``torch.amp.GradScaler``.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    The scale starts at `init_scale`, is multiplied by `backoff_factor` after a step with infinite
    or NaN gradients, and by `growth_factor` after `growth_interval` good steps in a row. This
    package's optimizers leave out a bad step on the device: nothing is read back.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=level_outside(),
            )
            self._enabled = False
        if self._enabled and not growth_factor > 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if self._enabled and not backoff_factor < 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._stages: dict[int, OptState] = {}  # no entry: READY
        self._found: dict[int, list[Tensor]] = {}

    def _scale_on(self, device: Any) -> Tensor:
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=dtypes.float32, device=device)
            self._growth_tracker = full(
                (), self._init_growth_tracker, dtype=dtypes.int32, device=device
            )
        return self._scale if self._scale.device == device else self._scale.to(device)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or nested sequences of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(value) for value in outputs]
            return scaled if isinstance(outputs, list) else tuple(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, in place.

        To be called at most once between `update`s, before gradients are clipped.
        """
        if not self._enabled:
            return
        stage = self._stages.get(id(optimizer))
        if stage == OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the "
                               "last update().")  # fmt: skip
        if stage == OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        if self._scale is None:
            raise AssertionError("Attempted unscale_ but _scale is None. This may indicate your "
                                 "script did not use scaler.scale(loss or outputs) earlier in the "
                                 "iteration.")  # fmt: skip
        self._unscale(optimizer, allow_half=False)
        self._stages[id(optimizer)] = OptState.UNSCALED

    def _unscale(self, optimizer: Optimizer, allow_half: bool) -> None:
        by_device: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if not allow_half and param.grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if param.grad.is_sparse and param.grad.dtype is dtypes.float16:
                    param.grad = param.grad.coalesce()  # two finite elements may sum to infinity
                g = param.grad._values() if param.grad.is_sparse else param.grad
                by_device.setdefault(g.device, []).append(g)
        found = []
        for device, grads in by_device.items():
            flag = zeros((), dtype=dtypes.float32, device=device)
            unscale(grads, flag, self._scale_on(device).reciprocal())
            found.append(flag)
        self._found[id(optimizer)] = found

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients if that was not done, and let the optimizer take its step.

        The parameters stay as they are when a gradient is infinite or NaN. RuntimeError for a
        second step before `update`, and for closures.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs or args:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if self._stages.get(id(optimizer)) == OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._stages:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._take(optimizer, found, kwargs)
        self._stages[id(optimizer)] = OptState.STEPPED
        return result

    def _take(self, optimizer: Optimizer, found: list[Tensor], kwargs: dict) -> Any:
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            optimizer.found_inf = _any(found, found[0].device)
            try:
                return optimizer.step(**kwargs)
            finally:
                optimizer.found_inf = None
        if any(flag.item() for flag in found):
            return None
        return optimizer.step(**kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what the steps since the last update met, or set it to `new_scale`."""
        if not self._enabled:
            return
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                "Attempted update but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )
        if new_scale is not None:
            self._scale.fill_(new_scale)
        else:
            flags = [flag for found in self._found.values() for flag in found]
            if not flags:
                raise AssertionError("No inf checks were recorded prior to update.")
            update_scale(
                self._scale,
                self._growth_tracker,
                _any(flags, self._scale.device),
                self._growth_factor,
                self._backoff_factor,
                self._growth_interval,
            )
        self._stages.clear()
        self._found.clear()

    def get_scale(self) -> float:
        """The scale as a Python number, which reads it back; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after `growth_interval` good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what `get_growth_factor` returns."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a bad step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what `get_backoff_factor` returns."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row let the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set what `get_growth_interval` returns."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and the count of good steps; empty when disabled."""
        if not self._enabled:
            return {}
        tracker = self._growth_tracker
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._init_growth_tracker if tracker is None else int(tracker),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`; RuntimeError for that of a disabled scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
