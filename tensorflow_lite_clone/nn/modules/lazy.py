"""Modules that learn their sizes from their first input."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Makes a module's uninitialized parameters and buffers at its first call.

    A subclass derives from this class first and from a module second, creates
    `UninitializedParameter` and `UninitializedBuffer`, and gives them shapes in
    `initialize_parameters`, which gets the arguments of the call. Afterwards the module becomes a
    `cls_to_become`, if one is named. Loading a state gives them shapes as well.
    """

    cls_to_become: type | None = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all parameters and buffers their shapes, from the arguments of the first call."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self: Any) -> bool:
        """Whether a parameter or buffer of the module itself has no shape yet."""
        own = (*self._parameters.values(), *self._buffers.values())
        return any(is_lazy(value) for value in own)

    def _infer_parameters(
        self: Any, module: Any, args: tuple, kwargs: dict[str, Any] | None = None
    ) -> None:
        """The hook of the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _lazy_load_hook(
        self: Any,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Give what is in `state_dict` the shapes it has there."""
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            new = state_dict.get(prefix + name)
            if is_lazy(value) and new is not None and not is_lazy(new):
                value.materialize(new.shape)

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state():
            if value is not None:
                as_is = keep_vars or is_lazy(value)
                destination[prefix + name] = value if as_is else value.detach()

    def _replicate_for_data_parallel(self: Any) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
            "forward pass to correctly initialize the modules"
        )
