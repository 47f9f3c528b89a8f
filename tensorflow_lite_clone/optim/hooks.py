"""Hooks around what an optimizer does: its steps, and taking and loading its state."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.hooks import Handle

_global_optimizer_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Any] = OrderedDict()
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Hooked:
    """The hooks of one optimizer."""

    _optimizer_step_pre_hooks: OrderedDict[int, Any]
    _optimizer_step_post_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Any]

    def _prepare(self) -> None:
        """What is neither copied nor pickled: hooks, and a `step` of the class that calls them."""
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        kind: Any = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{kind.__name__}.zero_grad"
        if not getattr(kind.step, "hooked", False):
            kind.step = self.profile_hook_step(kind.step)
            kind.step.hooked = True

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """`step` with the hooks around it; a hook before it may replace the arguments."""

        @functools.wraps(func)
        def step(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            if not (
                self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
                or _global_optimizer_pre_hooks
                or _global_optimizer_post_hooks
            ):
                result = func(*args, **kwargs)
                self._optimizer_step_code()
                return result
            for hook in (
                *_global_optimizer_pre_hooks.values(),
                *self._optimizer_step_pre_hooks.values(),
            ):
                replaced = hook(self, args, kwargs)
                if replaced is None:
                    continue
                if not isinstance(replaced, tuple) or len(replaced) != 2:
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{replaced}."
                    )
                args, kwargs = replaced
            result = func(*args, **kwargs)
            self._optimizer_step_code()
            for hook in (
                *self._optimizer_step_post_hooks.values(),
                *_global_optimizer_post_hooks.values(),
            ):
                hook(self, args, kwargs)
            return result

        return step

    def _optimizer_step_code(self) -> None:
        """Called after every step, for profilers to replace."""

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` before every step; it may return other two.

        `args` begin with the optimizer.
        """
        return Handle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call ``hook(optimizer, args, kwargs)`` after every step."""
        return Handle(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Call ``hook(optimizer)`` before `state_dict`."""
        return _handle(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`; it may return another."""
        return _handle(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another."""
        return _handle(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Handle:
        """Call ``hook(optimizer)`` after loading."""
        return _handle(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _handle(hooks: OrderedDict[int, Any], hook: Callable[..., Any], prepend: bool) -> Handle:
    handle = Handle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer."""
    return Handle(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Handle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return Handle(_global_optimizer_post_hooks, hook)
