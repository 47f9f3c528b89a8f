"""A module's state as a dictionary, out and in: `state_dict`, `load_state_dict`."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.autograd.swap import swap_tensors
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn.modules.conversion import get_swap_module_params_on_conversion
from tensorflow_lite_clone.nn.modules.hooks import Hooks, RemovableHandle, add_hook
from tensorflow_lite_clone.nn.parameter import Parameter, is_lazy
from tensorflow_lite_clone.ops.create.constructors import from_numpy
from tensorflow_lite_clone.tensor.tensor import Tensor

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"  # packages look for keys that end so


class _IncompatibleKeys(
    NamedTuple("IncompatibleKeys", [("missing_keys", list[str]), ("unexpected_keys", list[str])])
):
    """What `load_state_dict` returns: the keys that only one of the two sides has."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class Stateful:
    """The part of `Module` that saves and loads it."""

    _version = 1  # of the class's state, written to the metadata; read by _load_from_state_dict

    _state_dict_hooks: Hooks
    _state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_post_hooks: Hooks
    #: Which of them are called otherwise: tables of their own in modules that have such hooks.
    _state_dict_hooks_public: Mapping[int, bool] = MappingProxyType({})
    _load_state_dict_pre_hooks_with_module: Mapping[int, bool] = MappingProxyType({})

    _parameters: dict[str, Any]  # parameters and None
    _buffers: dict[str, Any]  # tensors and None
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]

    # -- hooks --------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the state is collected."""
        return add_hook(self, "_state_dict_pre_hooks", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after it is; returns None."""
        return add_hook(self, "_state_dict_hooks", hook, marks=("_state_dict_hooks_public",))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(self, "_state_dict_hooks", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Before the module's own state is loaded, call ``hook(module, state_dict, prefix,
        local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        marks = ("_load_state_dict_pre_hooks_with_module",) if with_module else ()
        return add_hook(self, "_load_state_dict_pre_hooks", hook, marks=marks)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may edit the lists."""
        return add_hook(self, "_load_state_dict_post_hooks", hook)

    # -- out ----------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """What a subclass wants saved beyond parameters and buffers."""
        raise RuntimeError("Module.get_extra_state() has to be overridden by the subclass")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError("Module.set_extra_state() has to be overridden by the subclass")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write the module's own state, without its children's, into `destination`."""
        for name, value in self._own_state():
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if _has_extra(self, "get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _own_state(self) -> list[tuple[str, Any]]:
        hidden = self._non_persistent_buffers_set
        saved = [(name, buffer) for name, buffer in self._buffers.items() if name not in hidden]
        return [*self._parameters.items(), *saved]

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by dotted name, sharing memory with the module's.

        They are detached unless `keep_vars`. The result's ``_metadata`` holds the versions.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=level_outside(),
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args))
            destination = given.get("destination") if destination is None else destination
            prefix = given.get("prefix", prefix) if prefix == "" else prefix
            keep_vars = keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()

        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                start = prefix + name + "."
                module.state_dict(destination=destination, prefix=start, keep_vars=keep_vars)
        for number, hook in self._state_dict_hooks.items():
            result = hook(self, destination, prefix, local_metadata)
            if number in self._state_dict_hooks_public:
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    # -- in -----------------------------------------------------------------------------------

    def init_from_torch(self, module: Any) -> Self:
        """Copy the parameters and buffers of a ``torch`` module of the same class; returns self.

        TypeError when the classes differ, RuntimeError when the state does.
        """
        if type(module).__name__ != type(self).__name__:
            raise TypeError(
                f"expected a module of class {type(self).__name__}, got {type(module).__name__}"
            )
        state = {}
        for name, value in module.state_dict().items():
            value = value.detach().cpu()
            if str(value.dtype) == "torch.bfloat16":  # NumPy has no such dtype to hand it over in
                value = value.float()
            state[name] = from_numpy(value.numpy())
        self.load_state_dict(state)
        return self

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy the values of `state_dict` into the module's parameters and buffers.

        `strict` demands that the keys agree. `assign` puts the given tensors in place of the
        module's own, and so takes their dtype and device. RuntimeError lists all disagreements;
        else returns the missing and unexpected keys.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        def load(module: Any, state: Mapping[str, Any], prefix: str) -> None:
            local_metadata = dict((metadata or {}).get(prefix[:-1], ()))
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                state, prefix, local_metadata, True, missing, unexpected, errors
            )
            for name, child in module._modules.items():
                if child is not None:
                    start = prefix + name + "."
                    load(child, {k: v for k, v in state.items() if k.startswith(start)}, start)
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be "
                        "modified, it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            lists = (("Missing", missing), ("Unexpected", unexpected))
            errors[:0] = [
                f"{what} key(s) in state_dict: {_quoted(keys)}. " for what, keys in lists if keys
            ]
        if errors:
            name = type(self).__name__
            raise RuntimeError(
                f"Error(s) in loading state_dict for {name}:\n\t" + "\n\t".join(errors)
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the module's own state, without its children's; a subclass may convert first."""
        for number, hook in list(self._load_state_dict_pre_hooks.items()):
            with_module = number in self._load_state_dict_pre_hooks_with_module
            hook(
                *((self,) if with_module else ()),
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = {name: value for name, value in self._own_state() if value is not None}
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_value(name, value, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)

        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if _has_extra(self, "set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)

        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_value(
        self, name: str, value: Any, key: str, new: Any, assign: bool, error_msgs: list[str]
    ) -> None:
        if not isinstance(new, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(new)}"
            )
            return
        if is_lazy(value) and is_lazy(new):
            return
        if value.ndim == 0 and tuple(new.shape) == (1,):
            new = new[0]  # PyTorch 0.3 had no tensors without dimensions
        if tuple(new.shape) != tuple(value.shape):
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {new.shape} from "
                f"checkpoint, the shape in current model is {value.shape}."
            )
            return
        if value.device.type == "meta" != new.device.type and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding key "
                "in the module instead of copying them in place?)",
                stacklevel=level_outside(),
            )
        swap = get_swap_module_params_on_conversion()
        try:
            with no_grad():
                if not (swap or assign):
                    value.copy_(new)
                    return
                if swap:
                    new = value.module_load(new, assign=assign)
                if isinstance(value, Parameter):
                    if isinstance(new, Parameter):
                        new.requires_grad_(value.requires_grad)
                    else:
                        new = Parameter(new, requires_grad=value.requires_grad)
                if swap:
                    swap_tensors(value, new)
                else:
                    setattr(self, name, new)
        except Exception as error:
            action = "swapping" if swap else "copying"
            error_msgs.append(
                f'While {action} the parameter named "{key}", whose dimensions in the model are '
                f"{value.shape} and whose dimensions in the checkpoint are {new.shape}, an "
                f"exception occurred : {error.args}."
            )


def _has_extra(module: Stateful, method: str) -> bool:
    return getattr(type(module), method) is not getattr(Stateful, method)


def _quoted(keys: Iterable[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
