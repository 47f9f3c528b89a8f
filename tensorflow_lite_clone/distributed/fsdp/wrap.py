"""Which modules of a model are wrapped one by one; as ``torch.distributed.fsdp.wrap``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.nn.modules.activation import MultiheadAttention
from tensorflow_lite_clone.nn.modules.container import ModuleDict, ModuleList
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Parameter

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

# A policy is asked twice about a module: with ``recurse=True`` whether to look at its children,
# and then whether to wrap it, where `nonwrapped_numel` counts what no wrapped child has.


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Wrap the modules for which a function says so."""
    return True if recurse else bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: set[type[Module]],
) -> bool:
    """Wrap the modules of some classes: the layers of a transformer."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Wrap a module whose parameters, without those of wrapped children, are so many elements.

    `force_leaf_modules` are not looked into, `exclude_wrap_modules` not wrapped.
    """
    leaves = tuple(size_based_auto_wrap_policy.FORCE_LEAF_MODULES)  # type: ignore[attr-defined]
    excluded = tuple(size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES)  # type: ignore[attr-defined]
    leaves = leaves if force_leaf_modules is None else tuple(force_leaf_modules)
    excluded = excluded if exclude_wrap_modules is None else tuple(exclude_wrap_modules)
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, leaves)
    return large and not isinstance(module, excluded)


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {  # type: ignore[attr-defined]
    ModuleList, ModuleDict
}  # fmt: skip
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}  # type: ignore[attr-defined]


def _or_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]
) -> bool:
    """Wrap what one of several policies wraps."""
    return any(
        [
            policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)
            for policy in policies
        ]
    )


class _Policy:
    """A policy that names the modules to wrap, each with its own options."""

    def _run_policy(
        self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]
    ) -> dict[Module, dict[str, Any]]:
        raise NotImplementedError


class ModuleWrapPolicy(_Policy):
    """Wrap the modules of some classes."""

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = tuple(set(module_classes))

    def _run_policy(
        self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]
    ) -> dict[Module, dict[str, Any]]:
        return {
            module: dict(root_kwargs)
            for module in root_module.modules()
            if module not in ignored_modules and isinstance(module, self._module_classes)
        }

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return True if recurse else isinstance(module, self._module_classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({set(self._module_classes)})"


class CustomPolicy(_Policy):
    """Wrap the modules for which a function gives True, or a dictionary of options."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(
        self, root_module: Module, ignored_modules: set[Module], root_kwargs: dict[str, Any]
    ) -> dict[Module, dict[str, Any]]:
        found = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (dict, bool)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg "
                    f"dict, but it returned {answer}"
                )
            if answer:
                found[module] = {**root_kwargs, **(answer if isinstance(answer, dict) else {})}
        return found


def wrap_children(
    module: Module,
    policy: Any,
    wrapper: Callable[..., Module],
    ignored: set[Module],
    options: dict[str, Any],
) -> None:
    """Wrap modules below one, the innermost first, as a policy says."""
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(module, ignored, options)
        _wrap_chosen(module, chosen, wrapper, set())
    else:
        _recursive_wrap(module, policy, wrapper, ignored, set(), only_wrap_children=True, **options)


def _wrap_chosen(
    module: Module,
    chosen: dict[Module, dict[str, Any]],
    wrapper: Callable[..., Module],
    seen: set[Module],
) -> None:
    for name, child in list(module.named_children()):
        if child in seen:
            continue
        seen.add(child)
        _wrap_chosen(child, chosen, wrapper, seen)
        if child in chosen:
            setattr(module, name, wrapper(child, **chosen[child]))


def _recursive_wrap(
    module: Module,
    auto_wrap_policy: Callable[..., bool],
    wrapper_cls: Callable[..., Module],
    ignored_modules: set[Module],
    ignored_params: set[Parameter],
    only_wrap_children: bool = False,
    **kwargs: Any,
) -> tuple[Module, int]:
    """Wrap what a policy chooses; the module and how many elements were wrapped."""
    numel = sum([p.numel() for p in module.parameters() if p not in ignored_params])
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored_modules or _is_wrapped(child, wrapper_cls):
            continue
        made, count = _recursive_wrap(
            child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
        )
        setattr(module, name, made)
        wrapped += count
    if only_wrap_children:
        return module, wrapped
    if auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=numel - wrapped):
        return wrapper_cls(module, **kwargs), numel
    return module, wrapped


def _is_wrapped(module: Module, wrapper: Any) -> bool:
    return isinstance(wrapper, type) and isinstance(module, wrapper)


class _Wrapping:
    """What `enable_wrap` has set: a wrapper and its options, the innermost last."""

    stack: list[tuple[Callable[..., Module], dict[str, Any]]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Context manager: `wrap` wraps, with these options."""
    _Wrapping.stack.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _Wrapping.stack.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """The module, wrapped within `enable_wrap` and as it is elsewhere."""
    if not _Wrapping.stack:
        return module
    wrapper, options = _Wrapping.stack[-1]
    return wrapper(module, **{**options, **wrap_overrides})
