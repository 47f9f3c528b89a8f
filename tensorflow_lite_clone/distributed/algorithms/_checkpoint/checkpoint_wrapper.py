"""Modules whose activations are calculated again in the backward pass, or wait in host memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.saved import save_on_cpu
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.utils.checkpoint import checkpoint

_WRAPPED = "_checkpoint_wrapped_module"


class CheckpointImpl(Enum):
    """How: by a backward pass within the backward pass, or without one."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module whose activations are kept in another way; its state dict is the module's own.

    Subclasses define `forward`.
    """

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str) -> Any:
        if name == _WRAPPED:  # before there is one
            return super().__getattr__(name)
        return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        wrapped: Any = self._checkpoint_wrapped_module
        return wrapped[key]

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        for name, parameter in super().named_parameters(prefix, recurse, remove_duplicate):
            yield name.replace(f"{_WRAPPED}.", ""), parameter


class CheckpointWrapper(ActivationWrapper):
    """A module under `utils.checkpoint`, or under `checkpoint_fn`."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn = (
            partial(checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs)
            if checkpoint_fn is None
            else partial(checkpoint_fn, **checkpoint_fn_kwargs)
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        wrapped: Any = self._checkpoint_wrapped_module
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(wrapped, *args, **kwargs)
        names, count = list(kwargs), len(args)  # that form takes no keywords

        def call(*values: Any) -> Any:
            return wrapped(*values[:count], **dict(zip(names, values[count:], strict=True)))

        return self.checkpoint_fn(call, *args, *kwargs.values())


class OffloadWrapper(ActivationWrapper):
    """A module whose activations wait for the backward pass in host memory (`save_on_cpu`)."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        wrapped: Any = self._checkpoint_wrapped_module
        with save_on_cpu(pin_memory=True):
            return wrapped(*args, **kwargs)


def _without_prefix(module: Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    for name in [name for name in state if name.startswith(f"{prefix}{_WRAPPED}.")]:
        state[prefix + name.removeprefix(f"{prefix}{_WRAPPED}.")] = state.pop(name)


def _with_prefix(module: Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
    for name in [name for name in state if name.startswith(prefix)]:
        state[f"{prefix}{_WRAPPED}.{name.removeprefix(prefix)}"] = state.pop(name)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """`module` in a `CheckpointWrapper`."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """`module` in an `OffloadWrapper`."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda module: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wrap, in place, those modules within `model` for which `check_fn` says so.

    An `auto_wrap_policy` decides in its stead, as in `distributed.fsdp`. It is called with
    `module`, `recurse` and `nonwrapped_numel`: first with `recurse` True, whether to look at the
    modules within, then with False, whether to wrap the module, and with how many elements its
    parameters have that are not in something wrapped.
    """

    def checked(module: Module, recurse: bool, nonwrapped_numel: int) -> bool:
        return recurse or check_fn(module)

    _wrap_children(model, checkpoint_wrapper_fn, auto_wrap_policy or checked)


def _wrap_children(
    model: Module, wrap: Callable[[Module], Module], policy: Callable[..., bool]
) -> int:
    """Wrap modules within `model`; how many elements their parameters have."""
    total = 0
    for name, child in list(model.named_children()):
        count = sum([parameter.numel() for parameter in child.parameters()])
        wrapped = 0
        if policy(module=child, recurse=True, nonwrapped_numel=count):
            wrapped = _wrap_children(child, wrap, policy)
        if policy(module=child, recurse=False, nonwrapped_numel=count - wrapped):
            setattr(model, name, wrap(child))
            wrapped = count
        total += wrapped
    return total
