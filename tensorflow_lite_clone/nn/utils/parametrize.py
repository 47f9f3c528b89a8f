"""Parameters that are computed from others each time they are read, as
``torch.nn.utils.parametrize``.

A parametrized module gets a class of its own, in which the parameter's name is a property: reading
it calls the parametrizations, assigning to it goes back through their `right_inverse`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NoReturn

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.nn.modules.container import ModuleDict, ModuleList
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0  # how many blocks of `cached` are open; bitsandbytes counts here, too
_cache: dict[tuple[int, str], Tensor] = {}  # (id of a module, name) -> what it was computed to


@contextmanager
def cached() -> Iterator[None]:
    """Context in which each parametrized tensor is computed once, when it is first read.

    Worth it where a module reads one several times, as recurrent ones do, or is called several
    times between two steps.
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _unchanged(what: str, before: Any, after: Any, names: tuple[str, str], the: str = "") -> None:
    """Raise ValueError where `after` has another dtype or shape than `before`."""
    for word in ("dtype", "shape"):
        old, new = getattr(before, word), getattr(after, word)
        if old != new:
            raise ValueError(
                f"{what.format(word=word)}, unless {the}`unsafe` flag is enabled.\n"
                f"{names[0].format(word=word)}: {old}\n{names[1].format(word=word)}: {new}"
            )


_MAY_NOT_CHANGE = "Registering a parametrization may not change the {word} of the tensor"


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after the other, and what they start from.

    `original` is that start, or `original0`, `original1`, ... if the first parametrization takes
    several tensors (its `right_inverse` then returns a sequence). It is found by applying the
    `right_inverse` of each parametrization that has one to the given tensor, last to first. Unless
    `unsafe`, ValueError if the result has another dtype or shape than the given tensor.
    """

    unsafe: bool
    is_tensor: bool
    ntensors: int
    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        given = original.detach()
        with no_grad():
            new: Any = original
            for module in reversed(list(self)):
                new = _inverted(module, new)
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError(f"{_WANTS_TENSORS} Got {type(new).__name__}")
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\n"
                    f"right_inverse(original).dtype: {new.dtype}"
                )
            original.data = new  # the same object, which an optimizer may hold already
            _register(self, "original", original)
        else:
            self._register_several(original, new)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(
                    f"A parametrization must return a tensor. Got {type(result).__name__}."
                )
            names = ("unparametrized {word}", "parametrized {word}")
            _unchanged(_MAY_NOT_CHANGE, given, result, names)

    def _register_several(self, original: Tensor, new: Sequence[Any]) -> None:
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    f"{_WANTS_TENSORS} Got element {i} of the sequence with type "
                    f"{type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", tensor)

    @property
    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrized one becomes `value`.

        RuntimeError if a parametrization has no `right_inverse`, ValueError if one returns what
        does not fit.
        """
        with no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                new = module.right_inverse(new)
            if self.is_tensor:
                self._set_one(new)
            else:
                self._set_several(new)

    def _set_one(self, new: Any) -> None:
        if not isinstance(new, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
        if new.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {new.dtype} while `original` "
                f"has dtype {self.original.dtype}"
            )
        self.original.data = new

    def _set_several(self, new: Any) -> None:
        expected = "'right_inverse' must return a sequence of tensors"
        if not isinstance(new, Sequence):
            raise ValueError(f"{expected}. Got {type(new).__name__}.")
        if len(new) != self.ntensors:
            raise ValueError(
                f"{expected} of length {self.ntensors}. Got a sequence of length {len(new)}."
            )
        for i, (original, tensor) in enumerate(zip(self._originals, new)):
            if not isinstance(tensor, Tensor):
                raise ValueError(f"{expected}. Got element {i} of type {type(tensor).__name__}.")
            if original.dtype != tensor.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while "
                    f"`original{i}` has dtype {original.dtype}"
                )
            original.data = tensor

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        first, *others = self
        value = first(*self._originals)
        for module in others:
            value = module(value)
        return value


_WANTS_TENSORS = "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...)."


def _inverted(module: Module, value: Any) -> Any:
    """`value` through a parametrization's `right_inverse`, or as it is where there is none."""
    if not hasattr(module, "right_inverse"):
        return value
    try:
        return module.right_inverse(value)
    except NotImplementedError:
        return value


def _refuse_to_pickle(self: Module) -> NoReturn:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _copied(self: Module, memo: dict[int, Any]) -> Module:
    """`__deepcopy__` of a parametrized module, whose `__getstate__` refuses."""
    copy = self.__new__(type(self))
    memo[id(self)] = copy
    copy.__setstate__(deepcopy(self.__dict__, memo))
    return copy


def _give_own_class(module: Module) -> None:
    """Make `module` the only one of a class, which can be given properties."""
    cls = type(module)
    body: dict[str, Any] = {"__getstate__": _refuse_to_pickle}
    if not hasattr(cls, "__deepcopy__"):
        body["__deepcopy__"] = _copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), body)


def _give_property(module: Module, name: str) -> None:
    def read(self: Any) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _cache_enabled:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let `module`'s parameter or buffer of that name be what `parametrization` makes of it.

    A second one is applied to what the first returns. The parameter itself becomes
    ``module.parametrizations[tensor_name].original``. If the parametrization has a
    `right_inverse`, that computes the original from the present value, and assigning to the
    attribute goes through it. Unless `unsafe`, both must keep dtype and shape (ValueError).
    Returns the module; ValueError if it has no tensor of that name.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        entry = module.parametrizations[tensor_name]
        entry.append(parametrization)
        entry.unsafe |= unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        original = getattr(module, tensor_name)
        entry = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        _give_property(module, tensor_name)
        module.parametrizations[tensor_name] = entry
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def _check_next(module: Module, name: str, parametrization: Any) -> None:
    """Raise ValueError if `parametrization` changes what those before it make."""
    value = getattr(module, name)
    result = parametrization(value)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    own = f"module.{name}.{{word}}"
    names = (own, f"parametrization(module.{name}).{{word}}")
    _unchanged(_MAY_NOT_CHANGE, value, result, names, "the ")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    what = "The tensor returned by parametrization.right_inverse must have the same {word} as "
    _unchanged(what + f"module.{name}", value, back, (own, "returned {word}"), "the ")


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether `module` has a parametrization, of the tensor of that name if one is given."""
    entries = getattr(module, "parametrizations", None)
    if not isinstance(entries, ModuleDict):
        return False
    return len(entries) > 0 if tensor_name is None else tensor_name in entries


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make the tensor of that name an ordinary parameter or buffer again; returns the module.

    It keeps its present value, or with `leave_parametrized=False` becomes the original again
    (ValueError if there are several). The last one gives the module its own class back.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entry = module.parametrizations[tensor_name]
    if entry.is_tensor:
        tensor = entry.original
        if leave_parametrized:
            with no_grad():
                tensor.data = getattr(module, tensor_name)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        tensor = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    del module.parametrizations[tensor_name]
    if len(module.parametrizations):
        delattr(type(module), tensor_name)
    else:
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]  # copies keep the class and its properties
    _register(module, tensor_name, tensor)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of `module` without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give `to_module` the parametrizations of `from_module`, and the tensors they start from.

    All of them, or those of the tensor of that name. What `to_module` lacks is made, what it has
    is replaced: both share parametrizations and originals then. Returns `to_module`.
    """
    if not is_parametrized(from_module):
        return to_module
    entries = from_module.parametrizations
    for name in list(entries) if tensor_name is None else [tensor_name]:
        source = entries[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for key in (*source._parameters, *source._buffers):
            setattr(target, key, getattr(source, key))
    return to_module
