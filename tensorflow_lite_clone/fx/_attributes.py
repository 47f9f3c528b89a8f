"""Values at paths in a module, such as ``layer1.0.weight``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Parameter, Tensor


def parent_at(module: Module, path: str) -> tuple[Module, str]:
    """The module above a path, which is made if it is not there, and the last name."""
    *names, last = path.split(".")
    for name in names:
        child = getattr(module, name, None)
        if child is None:
            child = Module()
            setattr(module, name, child)
        module = child
    return module, last


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Give a module a value at a path; a tensor becomes a buffer."""
    parent, name = parent_at(to_module, target)
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        parent.register_buffer(name, from_obj)
    else:
        setattr(parent, name, from_obj)


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module what another has at a path, unless it has a module above that already."""
    value: Any = from_module
    own: Any = to_module
    *names, last = target.split(".")
    for name in names:
        value, own = getattr(value, name), getattr(own, name, None)
        if value is own:
            return
    _assign_attr(getattr(value, last), to_module, target)


def _get_attr(model: Module, attr_name: str) -> Any:
    """The value at a path."""
    value: Any = model
    for name in attr_name.split("."):
        value = getattr(value, name)
    return value


def _has_attr(model: Module, attr_name: str) -> bool:
    """Whether there is a value at a path."""
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _del_attr(model: Module, attr_name: str) -> None:
    """Remove the value at a path."""
    parent, _, name = attr_name.rpartition(".")
    delattr(_get_attr(model, parent) if parent else model, name)
