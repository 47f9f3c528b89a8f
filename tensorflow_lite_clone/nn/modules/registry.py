"""What belongs to a module: its parameters, buffers and children, and the walks over them.

As in PyTorch each kind is in a dictionary of its own, ``_parameters``, ``_buffers`` and
``_modules``, which programs read and write; `__getattr__` finds the members there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any, Self

from tensorflow_lite_clone._bind.overridable import builtins
from tensorflow_lite_clone.nn.modules import hooks
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.tensor.tensor import Tensor

_PACKAGE = __name__.partition(".")[0]
KINDS = ("_parameters", "_buffers", "_modules")


def typename(value: Any) -> str:
    """The name PyTorch's messages give a value's type: ``int``, ``torch.FloatTensor``, ..."""
    if isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else kind.__module__ + "."
    return module + kind.__qualname__


class Registry:
    """The part of `Module` that knows what the module holds."""

    training: bool
    _parameters: dict[str, Any]  # parameters and None
    _buffers: dict[str, Any]  # tensors and None
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]

    _plain = True  # whether nothing in the class stands before the members of these dictionaries

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let functions that PyTorch has as builtins be no methods, and annotations be types.

        ``conv = torch.conv2d`` in the body of a class is called without the module in PyTorch.
        Programs ask for the type hints of a module with namespaces of their own, where the names
        that stand in the text of this package's annotations mean nothing.
        """
        super().__init_subclass__(**kwargs)
        if any([getattr(cls, name, None) is not found for name, found in _LOOKUPS.items()]):
            cls._plain = False
        for part in (cls, *cls.__bases__):  # bases may be no modules
            own = part.__dict__.get("__annotations__", {})
            package, _, module = part.__module__.partition(".")
            # In a program of PyTorch's classes of the package say that they are torch's.
            known = package in (_PACKAGE, "torch") and f"{_PACKAGE}.{module}" in sys.modules
            if not known:
                for name, value in [*part.__dict__.items()]:
                    if type(value) is FunctionType and value in builtins():
                        setattr(part, name, staticmethod(value))
            elif str in map(type, own.values()):
                names = vars(sys.modules[f"{_PACKAGE}.{module}"])
                with suppress(NameError):  # of a type that only checkers import
                    part.__annotations__ = {name: eval(text, names) for name, text in own.items()}

    # -- attributes ---------------------------------------------------------------------------

    # How the built-in layers read their own members. Python 3.11 makes an AttributeError before it
    # calls `__getattr__`, so that ``self.weight, self.bias`` take 0.8 microseconds, a quarter of
    # the call of a small `Linear`; `_pair` takes 0.1. Later versions do not make the error.

    def _member(self, members: dict[str, Any], name: str) -> Any:
        """``getattr(self, name)``, which is most likely in `members`."""
        return members[name] if self._plain and name in members else getattr(self, name)

    def _pair(self, members: dict[str, Any], first: str, second: str) -> tuple[Any, Any]:
        """Both attributes, which are most likely in `members`."""
        if self._plain:
            try:
                return members[first], members[second]
            except KeyError:
                pass  # attributes or properties have taken their places, as in replicas
        return getattr(self, first), getattr(self, second)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        try:
            if (
                name in (members := own["_parameters"])
                or name in (members := own["_buffers"])
                or name in (members := own["_modules"])
            ):
                return members[name]
        except KeyError:
            pass  # before __init__
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = self.__dict__
        attributes.update(state)
        # Files that old versions of PyTorch wrote lack what came later.
        attributes.setdefault("_non_persistent_buffers_set", set())
        hooks.complete_tables(attributes)

    def _require_init(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _remove(self, name: str, kept: str) -> None:
        """Make room for `name` among the `kept`: it is no longer anything else."""
        attributes = self.__dict__
        attributes.pop(name, None)
        attributes["_non_persistent_buffers_set"].discard(name)
        for kind in KINDS:
            if kind != kept:
                attributes[kind].pop(name, None)

    def _set_module(self, name: str, module: Any) -> None:
        self._modules[name] = _announce(hooks.module_registration, self, name, module)

    def _check_name(self, what: str, name: Any, kind: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if name not in self.__dict__[kind] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            got = f", got: {name}" if what == "module" else ""
            raise KeyError(f'{what} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')

    # -- registration -------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make `param` the module's parameter `name`; None reserves the name.

        KeyError if the name is taken or not an attribute's, TypeError if it is no Parameter.
        """
        self._require_init("parameter")
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must "
                    f"be created explicitly. To express '{name}' as a function of another "
                    "Tensor, compute the value in the forward() method."
                )
            param = _announce(hooks.parameter_registration, self, name, param)
        self._parameters[name] = param

    def _register_empty(self, name: str, shape: Any, device: Any, dtype: Any) -> None:
        """Make a parameter of `shape` to be filled; without a shape reserve the name."""
        value = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
        self.register_parameter(name, value)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` the module's buffer `name`: moved and saved with it, but not trained.

        `persistent=False` leaves it out of the state_dict.
        """
        self._require_init("buffer")
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = _announce(hooks.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Make `module` the child `name`; None reserves the name."""
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._require_init("module")
        self._check_name("module", name, "_modules")
        self._set_module(name, module)

    def register_module(self, name: str, module: Any) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    # -- by path ------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module at a dotted path, ``"layer1.0.conv"``; AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Registry):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put `module` at a dotted path; `strict` refuses a last name that is not there yet."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Registry):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def _get_member(self, target: str) -> tuple[Any, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path; AttributeError if there is none."""
        _, name, value = self._get_member(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path; AttributeError if there is none."""
        module, name, value = self._get_member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    # -- walks --------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The immediate children with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """The immediate children, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The module itself and all below it, depth first, with their dotted paths."""
        if memo is None:
            memo = set()
        pending: list[tuple[str, Any]] = [(prefix, self)]
        while pending:
            path, module = pending.pop()
            if module is None or module in memo:
                continue
            if remove_duplicate:
                memo.add(module)
            yield path, module
            children = module._modules
            if children:
                start = path + "." if path else ""
                pending += [(start + name, child) for name, child in reversed(children.items())]

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """The module itself and all below it, depth first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules: Iterable[tuple[str, Any]] = ((prefix, self),)
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            start = path + "." if path else ""
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield start + name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters of the module and of all below it, with their dotted paths."""
        return self._named_members(
            lambda m: m._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of the module and of all below it: what an optimizer is given."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of the module and of all below it, with their dotted paths."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of the module and of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn` on every module below, then on the module itself; returns it."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self


def _announce(registration_hooks: dict, module: Any, name: str, value: Any) -> Any:
    for hook in registration_hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


#: What a class must not have of its own to be `_plain`: name -> what others have.
_LOOKUPS = {
    "__getattribute__": object.__getattribute__,
    "__getattr__": Registry.__getattr__,
    **dict.fromkeys(("weight", "bias", "running_mean", "running_var", "num_batches_tracked")),
    **dict.fromkeys(("weight_ih", "weight_hh", "bias_ih", "bias_hh")),
}
