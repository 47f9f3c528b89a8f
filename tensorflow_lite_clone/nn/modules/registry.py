"""What belongs to a module: its parameters, buffers and children, and the walks over them.

Values live in the module's own ``__dict__``, and the module keeps only their names, in order:
reading ``self.weight`` is then a plain attribute read, which costs a twentieth of what a
``__getattr__`` that searches dictionaries costs. ``_parameters``, ``_buffers`` and ``_modules``
are views, made when somebody asks for them.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import suppress
from typing import Any, Self

from tensorflow_lite_clone.nn.modules import hooks
from tensorflow_lite_clone.nn.parameter import Buffer, Parameter
from tensorflow_lite_clone.tensor.tensor import Tensor

_PACKAGE = f"{__name__.partition('.')[0]}."
KINDS = ("_parameter_names", "_buffer_names", "_module_names")
#: PyTorch's tables of hooks, which modules have here when there are hooks: around the call, others.
_CALL_HOOKS = (
    "_backward_pre_hooks _backward_hooks _forward_hooks _forward_hooks_with_kwargs "
    "_forward_hooks_always_called _forward_pre_hooks _forward_pre_hooks_with_kwargs"
).split()
_STATE_HOOKS = (
    "_state_dict_hooks _state_dict_pre_hooks _load_state_dict_pre_hooks _load_state_dict_post_hooks"
).split()


def typename(value: Any) -> str:
    """The name PyTorch's messages give a value's type: ``int``, ``torch.FloatTensor``, ..."""
    if isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else kind.__module__ + "."
    return module + kind.__qualname__


class Registered(MutableMapping):
    """One kind of a module's members as a dictionary over the module's attributes."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: dict[str, bool], values: dict[str, Any]) -> None:
        self._names = names
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if name in self._names:
            return self._values[name]
        raise KeyError(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._names.setdefault(name, True)
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._names[name]
        self._values.pop(name, None)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(self.copy())

    def items(self) -> Any:
        """The members now; packages go through them backwards, too."""
        return self.copy().items()

    def copy(self) -> dict[str, Any]:
        """A dictionary of its own with the same members."""
        values = self._values
        return {name: values[name] for name in self._names}


def _registered(kind: str, word: str) -> property:
    def read(self: Registry) -> Registered:
        attributes = self.__dict__
        if kind not in attributes:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{word}'")
        return Registered(attributes[kind], attributes)

    def write(self: Registry, members: MutableMapping[str, Any]) -> None:
        members = dict(members)  # before the old ones go: it may be a view of them
        view = read(self)
        view.clear()
        view.update(members)

    return property(read, write, doc=f"The module's own {word[1:]} by name (a view).")


class Registry:
    """The part of `Module` that knows what the module holds."""

    training: bool
    _parameter_names: dict[str, bool]
    _buffer_names: dict[str, bool]  # the value: whether it is in the state_dict
    _module_names: dict[str, bool]

    _parameters = _registered("_parameter_names", "_parameters")
    _buffers = _registered("_buffer_names", "_buffers")
    _modules = _registered("_module_names", "_modules")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let annotations of this package's modules be types, not text.

        Programs ask for the type hints of a module with namespaces of their own, where the names
        that stand in the text mean nothing.
        """
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__annotations__")
        if own and cls.__module__.startswith(_PACKAGE):
            names = vars(sys.modules[cls.__module__])
            with suppress(NameError):  # of a type that only checkers import
                cls.__annotations__ = {name: eval(text, names) for name, text in own.items()}

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        return {name for name, persistent in self._buffer_names.items() if not persistent}

    # -- attributes ---------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        parameters = attributes.get("_parameter_names", ())
        if isinstance(value, Parameter):
            self._require_init("parameters")
            self._forget(name, "_parameter_names")
            self.register_parameter(name, value)
        elif name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Registry):
            self._require_init("module")
            self._forget(name, "_module_names")
            self._set_module(name, value)
        elif name in attributes.get("_module_names", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            self._set_module(name, None)
        elif isinstance(value, Buffer) or name in attributes.get("_buffer_names", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            self._require_init("buffer")
            if isinstance(value, Buffer):
                self._forget(name, "_buffer_names")
                self.register_buffer(name, value, value.persistent)
            else:
                attributes[name] = _announce(hooks.buffer_registration, self, name, value)
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        # Python asks when there is no such attribute. Programs and subclasses call it by its name,
        # and PyTorch's finds members there, which are ordinary attributes here.
        attributes = self.__dict__
        if any([name in attributes.get(kind, ()) for kind in KINDS]):
            return attributes[name]
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self
        )

    def __delattr__(self, name: str) -> None:
        for kind in KINDS:
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self.__dict__.pop(name, None)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        # Children of containers are called "0", "1", ...: no use to a completer.
        return sorted(name for name in object.__dir__(self) if not name[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = self.__dict__
        attributes.update(state)
        for kind, word in zip(KINDS, ("_parameters", "_buffers", "_modules")):
            # A copy must not share its names with the original. PyTorch keeps the members in
            # dictionaries instead, and its pickles say so.
            names = dict(attributes.get(kind, ()))
            members = attributes.pop(word, {})
            attributes.update(members)
            attributes[kind] = {**names, **dict.fromkeys(members, True)}
        for name in attributes.pop("_non_persistent_buffers_set", ()):
            attributes["_buffer_names"][name] = False
        if any([attributes.get(table) for table in _CALL_HOOKS]):
            attributes["_hooked"] = True

    def _saved_state(self) -> dict[str, Any]:
        """The attributes as PyTorch keeps them: members and hooks in dictionaries of their own."""
        members = {name for kind in KINDS for name in self.__dict__[kind]}
        state = {
            name: value
            for name, value in self.__dict__.items()
            if name not in members and name not in KINDS
        }
        for table in _CALL_HOOKS + _STATE_HOOKS:
            state.setdefault(table, OrderedDict())
        state.setdefault("_is_full_backward_hook", None)
        state["_non_persistent_buffers_set"] = self._non_persistent_buffers_set
        for word in ("_parameters", "_buffers", "_modules"):
            state[word] = getattr(self, word).copy()
        return state

    def _require_init(self, what: str) -> None:
        if "_module_names" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _forget(self, name: str, kept: str) -> None:
        """Make room for `name` as one of `kept`: it is no longer anything else."""
        attributes = self.__dict__
        if name not in attributes[kept]:
            for kind in KINDS:
                attributes[kind].pop(name, None)
            attributes.pop(name, None)

    def _set_module(self, name: str, module: Any) -> None:
        module = _announce(hooks.module_registration, self, name, module)
        self._module_names[name] = True
        self.__dict__[name] = module

    def _check_name(self, what: str, name: Any, kind: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self.__dict__[kind]:
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
        self._check_name("parameter", name, "_parameter_names")
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
        self._parameter_names[name] = True
        self.__dict__[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` the module's buffer `name`: moved and saved with it, but not trained.

        `persistent=False` leaves it out of the state_dict.
        """
        self._require_init("buffer")
        self._check_name("buffer", name, "_buffer_names")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self.__dict__[name] = _announce(hooks.buffer_registration, self, name, tensor)
        self._buffer_names[name] = persistent

    def add_module(self, name: str, module: Any) -> None:
        """Make `module` the child `name`; None reserves the name."""
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._require_init("module")
        self._check_name("module", name, "_module_names")
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
        if name not in module._buffer_names:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    # -- walks --------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The immediate children with their names, each once."""
        seen = set()
        for name in self._module_names:
            module = self.__dict__[name]
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
            names = module._module_names
            if names:
                start = path + "." if path else ""
                attributes = module.__dict__
                pending += [(start + name, attributes[name]) for name in reversed(names)]

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
        return self._named_members(_parameters_of, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of the module and of all below it: what an optimizer is given."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers of the module and of all below it, with their dotted paths."""
        return self._named_members(_buffers_of, prefix, recurse, remove_duplicate)

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


def _parameters_of(module: Any) -> list[tuple[str, Any]]:
    attributes = module.__dict__
    return [(name, attributes[name]) for name in module._parameter_names]


def _buffers_of(module: Any) -> list[tuple[str, Any]]:
    attributes = module.__dict__
    return [(name, attributes[name]) for name in module._buffer_names]
