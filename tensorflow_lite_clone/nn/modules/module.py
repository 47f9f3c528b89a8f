"""Module: the base class of all layers and models."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn.modules import hooks
from tensorflow_lite_clone.nn.modules.conversion import converted, converted_gradient
from tensorflow_lite_clone.nn.modules.hooks import (
    Hookable,
    HookTable,
    _has_any_global_hook,  # noqa: F401
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from tensorflow_lite_clone.nn.modules.registry import KINDS, Registry, typename
from tensorflow_lite_clone.nn.modules.state import (
    _EXTRA_STATE_KEY_SUFFIX,  # noqa: F401
    Stateful,
    _IncompatibleKeys,  # noqa: F401
)
from tensorflow_lite_clone.nn.parameter import Buffer, Parameter
from tensorflow_lite_clone.ops.create.constructors import empty_like
from tensorflow_lite_clone.ops.create.convert import parse_to
from tensorflow_lite_clone.tensor.tensor import Tensor

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# PyTorch's names for what lies in other files here: code in the wild asks for them.
_global_forward_pre_hooks = hooks.forward_pre
_global_forward_hooks = hooks.forward
_global_forward_hooks_with_kwargs = hooks.forward_with_kwargs
_global_forward_hooks_always_called = hooks.forward_always_called
_global_backward_pre_hooks = hooks.backward_pre
_global_backward_hooks = hooks.backward
_global_parameter_registration_hooks = hooks.parameter_registration
_global_buffer_registration_hooks = hooks.buffer_registration
_global_module_registration_hooks = hooks.module_registration


class Module(Registry, Hookable, Stateful):
    """The base class of layers and models, as ``torch.nn.Module``.

    A subclass calls ``super().__init__()``, assigns parameters, buffers and other modules to
    itself, and defines `forward`; calling the module runs it.
    """

    call_super_init = False
    dump_patches = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            name = f"{type(self).__name__}.__init__()"
            if kwargs:
                raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
            given = len(args) + 1
            raise TypeError(f"{name} takes 1 positional argument but {given} were given")
        attributes = self.__dict__  # what it has, and in which order, is as in PyTorch
        attributes["training"] = True
        attributes["_parameters"] = {}
        attributes["_buffers"] = {}
        attributes["_non_persistent_buffers_set"] = set()
        attributes["_backward_pre_hooks"] = HookTable()
        attributes["_backward_hooks"] = HookTable()
        attributes["_is_full_backward_hook"] = None
        attributes["_forward_hooks"] = HookTable()
        attributes["_forward_hooks_with_kwargs"] = OrderedDict()
        attributes["_forward_hooks_always_called"] = OrderedDict()
        attributes["_forward_pre_hooks"] = HookTable()
        attributes["_forward_pre_hooks_with_kwargs"] = OrderedDict()
        attributes["_state_dict_hooks"] = OrderedDict()
        attributes["_state_dict_pre_hooks"] = OrderedDict()
        attributes["_load_state_dict_pre_hooks"] = OrderedDict()
        attributes["_load_state_dict_post_hooks"] = OrderedDict()
        attributes["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input: Any) -> Any:
        """What the module computes; every subclass defines it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # -- attributes ---------------------------------------------------------------------------

    # In no base, as programs reach those of `object` by ``super(Module, self).__setattr__``.

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        # Whether a value is a Parameter is quick to say of parameters alone.
        if isinstance(value, Tensor) and type(value) is not Tensor and isinstance(value, Parameter):
            self._require_init("parameters")
            self._remove(name, kept="_parameters")
            self.register_parameter(name, value)
        elif name in attributes.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._require_init("module")
            self._remove(name, kept="_modules")
            self._set_module(name, value)
        elif name in attributes.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            self._set_module(name, None)
        elif isinstance(value, Buffer) or name in attributes.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            self._require_init("buffer")
            persistent = name not in self._non_persistent_buffers_set
            if isinstance(value, Buffer):
                persistent = value.persistent
            # A subclass may have a `register_buffer` of its own, without that argument.
            self.register_buffer(name, value, **({} if persistent else {"persistent": False}))
        else:
            object.__setattr__(self, name, value)
            if name in hooks.CALL_TABLES:
                hooks.expect_hooks(in_modules=True)

    def __delattr__(self, name: str) -> None:
        for kind in KINDS:
            members = getattr(self, kind)
            if name in members:
                del members[name]
                if kind == "_buffers":
                    self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        # Children of containers are called "0", "1", ...: no use to a completer.
        members = [name for kind in KINDS for name in self.__dict__.get(kind, ())]
        names = {*object.__dir__(self), *members}
        return sorted(name for name in names if not name[:1].isdigit())

    # -- modes and gradients ------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode (dropout, batch statistics) here and in all modules below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Let all parameters require a gradient, or none."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def share_memory(self) -> Self:
        """Move parameters and buffers to memory that other processes see; returns the module."""
        return self._apply(lambda t: t.share_memory_())

    # -- conversions --------------------------------------------------------------------------

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace what parameters, their gradients and buffers hold by what `fn` makes of it.

        Parameters stay the same objects, so an optimizer goes on with them, but for those that
        leave or enter the device ``meta``; see also `torch.__future__`.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for name, parameter in self._parameters.items():
                if parameter is None:
                    continue
                grad, path = parameter.grad, f"{self._get_name()}.{name}"
                parameter = converted(parameter, fn(parameter), path)
                self._parameters[name] = parameter
                if grad is not None:
                    parameter.grad = converted_gradient(grad, fn(grad), path)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device, a floating dtype, a memory format: the forms of ``Tensor.to``.

        Only floating and complex tensors change dtype. Works in place, returns the module.
        """
        device, dtype, _, memory_format = parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature: some modules may not work with complex "
                "parameters and buffers.",
                stacklevel=level_outside(),
            )

        def convert(t: Tensor) -> Tensor:
            to = dtype if t.is_floating_point() or t.is_complex() else None
            layout = memory_format if t.ndim in (4, 5) else None
            try:
                return t.to(device, to, memory_format=layout)
            except NotImplementedError as error:
                if str(error) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without copying: the values there are arbitrary.

        So modules leave the device ``meta``, where they have no values. Without `recurse` the
        modules below stay where they are.
        """
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast_floats(self, method: str) -> Self:
        return self._apply(lambda t: getattr(t, method)() if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast the floating parameters and buffers to float32."""
        return self._cast_floats("float")

    def double(self) -> Self:
        """Cast the floating parameters and buffers to float64."""
        return self._cast_floats("double")

    def half(self) -> Self:
        """Cast the floating parameters and buffers to float16."""
        return self._cast_floats("half")

    def bfloat16(self) -> Self:
        """Cast the floating parameters and buffers to bfloat16."""
        return self._cast_floats("bfloat16")

    def cpu(self) -> Self:
        """Move to host memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move to a CUDA device, the current one unless told otherwise."""
        return self._apply(lambda t: t.cuda(device))

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module's `forward` in place; the arguments are those of `torch.compile`.

        Unlike with ``torch.compile(module)`` hooks run outside of what is captured.
        """
        self.__dict__["forward"] = late_bound.compile(self.forward, *args, **kwargs)

    # -- printing -----------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What `repr` shows between the parentheses; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        for name, module in self._modules.items():
            lines.append(f"({name}): {_addindent(repr(module), 2)}")
        if not lines or (len(lines) == 1 and not self._modules):
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def _addindent(s_: str, numSpaces: int) -> str:  # noqa: N803  (PyTorch's name)
    """The text with so many more spaces before each line but the first; blank lines are empty."""
    first, *lines = s_.split("\n")
    spaces = numSpaces * " "
    return "\n".join([first, *[spaces + line if line.strip() else "" for line in lines]])
