"""Hooks around a module's forward and backward; what a module's call does when there are some.

Every module has PyTorch's tables of hooks. To look into them costs 0.1 microseconds, a third of the
call of an `Identity`, so calls do it only while `_expected`: from the first entry in any table on,
and not after the last hook of all modules is gone where no single module has had one.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.autograd.mode import is_grad_enabled
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.handles import RemovableHandle
from tensorflow_lite_clone.nn.modules.notes import add_layer_note
from tensorflow_lite_clone.tensor.tensor import Tensor

Hooks = OrderedDict[int, Callable[..., Any]]

_expected = False  # whether calls look for hooks
_in_modules = False  # whether a module's own table has ever had an entry


def expect_hooks(in_modules: bool) -> None:
    """Let calls look into the tables from now on."""
    global _expected, _in_modules  # noqa: PLW0603  (there is one process)
    _in_modules = _in_modules or in_modules
    _expected = True


class HookTable(OrderedDict):
    """A module's hooks around calls by number; programs put some there themselves."""

    _in_modules = True

    def __setitem__(self, number: Any, hook: Any) -> None:
        super().__setitem__(number, hook)
        expect_hooks(self._in_modules)

    def __reduce__(self) -> Any:
        # Files go to PyTorch, too; see `complete_tables` for the way back.
        return OrderedDict, (), None, None, iter(self.items())


class _GlobalTable(HookTable):
    """Hooks around the calls of all modules."""

    _in_modules = False


#: The tables around a module's call, those that say more of some hooks, those around its state.
CALL_TABLES = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks")
_MARKS = tuple(
    "_forward_hooks_with_kwargs _forward_hooks_always_called _forward_pre_hooks_with_kwargs".split()
)
_STATE_TABLES = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def complete_tables(attributes: dict[str, Any]) -> None:
    """Give a copy or an unpickled module the tables that it lacks, and notice the hooks it has."""
    for name in (*_MARKS, *_STATE_TABLES):
        attributes.setdefault(name, OrderedDict())
    for name in CALL_TABLES:
        if attributes.get(name):
            expect_hooks(in_modules=True)
        elif type(attributes.get(name)) is not HookTable:
            attributes[name] = HookTable()
    attributes.setdefault("_is_full_backward_hook", None)


def add_hook(
    owner: Any, table: str, hook: Callable[..., Any], prepend: bool = False, marks: tuple = ()
) -> RemovableHandle:
    """Add `hook` to the table of that name, and its number to the tables named by `marks`."""
    tables: list[Any] = [owner.__dict__.setdefault(name, OrderedDict()) for name in (table, *marks)]
    if table in CALL_TABLES:
        expect_hooks(in_modules=True)
    hooks = tables[0]
    handle = RemovableHandle(hooks, extra_dict=tables[1:])
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    for mark in tables[1:]:
        mark[handle.id] = True
    return handle


class Hookable:
    """The part of `Module` that is called, and the hooks around the call."""

    _backward_pre_hooks: Hooks
    _backward_hooks: Hooks
    _is_full_backward_hook: bool | None
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    forward: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if _expected and has_hooks(self):
                return call_hooked(self, args, kwargs)
            if kwargs or len(args) != 1:
                return self.forward(*args, **kwargs)
            return self.forward(args[0])
        except Exception as error:
            add_layer_note(error, self, args, kwargs)
            raise

    _call_impl = __call__  # PyTorch's name for it, which wrappers call

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before forward; what it returns replaces the arguments.

        `with_kwargs`: ``hook(module, args, kwargs)``, which returns None or ``(args, kwargs)``.
        `prepend`: before the hooks that are there already.
        """
        marks = ("_forward_pre_hooks_with_kwargs",) if with_kwargs else ()
        return add_hook(self, "_forward_pre_hooks", hook, prepend, marks)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after forward; what it returns replaces the output.

        `with_kwargs`: ``hook(module, args, kwargs, output)``. `always_call`: also if forward
        raised (the output is then None).
        """
        marks: tuple = ("_forward_hooks_with_kwargs",) if with_kwargs else ()
        if always_call:
            marks += ("_forward_hooks_always_called",)
        return add_hook(self, "_forward_hooks", hook, prepend, marks)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward.

        `grad_output` is a tuple with a gradient (or None) per output; so is what the hook
        returns, if it returns anything, and that replaces it.
        """
        return add_hook(self, "_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward.

        Both are tuples, with an entry per positional argument and per output; a tuple that the
        hook returns replaces `grad_input`.
        """
        self._claim_backward_hooks(full=True)
        return add_hook(self, "_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """PyTorch's deprecated form, which here sees the same gradients as the full one."""
        self._claim_backward_hooks(full=False)
        return add_hook(self, "_backward_hooks", hook)

    def _claim_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self.__dict__["_is_full_backward_hook"] = full


# -- hooks of all modules -------------------------------------------------------------------------

forward_pre: Hooks = _GlobalTable()
forward: Hooks = _GlobalTable()
forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
forward_always_called: OrderedDict[int, bool] = OrderedDict()
backward_pre: Hooks = _GlobalTable()
backward: Hooks = _GlobalTable()
parameter_registration: Hooks = OrderedDict()
buffer_registration: Hooks = OrderedDict()
module_registration: Hooks = OrderedDict()
_global_is_full_backward_hook: bool | None = None


def _add_global(table: Hooks, hook: Callable[..., Any], *marks: OrderedDict) -> RemovableHandle:
    handle = RemovableHandle(table, extra_dict=marks)
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the forward of every module."""
    return _add_global(forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the forward of every module."""
    marks = [forward_with_kwargs] * with_kwargs + [forward_always_called] * always_call
    return _add_global(forward, hook, *marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward of every module."""
    return _add_global(backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after the backward of every module."""
    _claim_global_backward_hooks(full=True)
    return _add_global(backward, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """PyTorch's deprecated form, which here sees the same gradients as the full one."""
    _claim_global_backward_hooks(full=False)
    return _add_global(backward, hook)


def _claim_global_backward_hooks(full: bool) -> None:
    global _global_is_full_backward_hook  # noqa: PLW0603  (there is one process)
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` at `register_parameter`; it may return another."""
    return _add_global(parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` at `register_buffer`; it may return another."""
    return _add_global(buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, child)`` at `register_module`; it may return another."""
    return _add_global(module_registration, hook)


def _has_any_global_hook() -> bool:
    return bool(forward_pre or forward or backward_pre or backward)


# -- the call -------------------------------------------------------------------------------------


def has_hooks(module: Any) -> bool:
    """Whether there is anything to do around the call of a module."""
    global _expected  # noqa: PLW0603
    _expected = _in_modules  # before the look: another thread may add a hook after it
    if forward_pre or forward or backward_pre or backward:
        _expected = True
        return True
    return bool(
        module._forward_pre_hooks
        or module._forward_hooks
        or module._backward_pre_hooks
        or module._backward_hooks
    )


def call_hooked(module: Any, args: tuple, kwargs: dict) -> Any:
    """Run `module.forward` with the hooks of all modules and its own around it."""
    output = None
    called: set[int] = set()
    always = {**forward_always_called, **module._forward_hooks_always_called}
    try:
        args, kwargs = _before_forward(module, args, kwargs)
        around_backward = None
        pre_hooks = (*backward_pre.values(), *module._backward_pre_hooks.values())
        full_hooks = (*backward.values(), *module._backward_hooks.values())
        if pre_hooks or full_hooks:
            around_backward = BackwardHooks(module, pre_hooks, full_hooks)
            args = around_backward.mark_inputs(args)
        output = module.forward(*args, **kwargs)
        for number, run in _after_forward(module, args, kwargs):
            called.add(number)
            replacement = run(output)
            if replacement is not None:
                output = replacement
        if around_backward is not None:
            output = around_backward.mark_outputs(output)
        return output
    except Exception:
        for number, run in _after_forward(module, args, kwargs):
            if number not in always or number in called:
                continue
            try:
                replacement = run(output)
            except Exception as error:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error!s}",
                    stacklevel=level_outside(),
                )
            else:
                if replacement is not None:
                    output = replacement
        raise


def _before_forward(module: Any, args: tuple, kwargs: dict) -> tuple[Any, dict]:
    with_kwargs = module._forward_pre_hooks_with_kwargs
    hooks = (*forward_pre.items(), *module._forward_pre_hooks.items())
    for number, hook in hooks:
        if number in with_kwargs:
            result = hook(module, args, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {result}."
                )
            args, kwargs = result
        else:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)
    return args, kwargs


def _after_forward(module: Any, args: tuple, kwargs: dict) -> list[tuple[int, Callable]]:
    """The forward hooks, numbered, as functions of the output alone."""
    with_kwargs = {**forward_with_kwargs, **module._forward_hooks_with_kwargs}
    # All at once: another thread may register a global one while they are gone through.
    hooks = (*forward.items(), *module._forward_hooks.items())

    def bind(number: int, hook: Callable[..., Any]) -> Callable[[Any], Any]:
        if number in with_kwargs:
            return lambda output: hook(module, args, kwargs, output)
        return lambda output: hook(module, args, output)

    return [(number, bind(number, hook)) for number, hook in hooks]


# -- around the backward --------------------------------------------------------------------------


class _InputMark(Function):
    """The identity around a module's inputs: its backward is the end of the module's."""

    @staticmethod
    def forward(ctx: Any, hooks: BackwardHooks, *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.hooks = hooks
        ctx.mark_non_differentiable(*[x for x in inputs if not x.requires_grad])
        return inputs  # as tensors of their own

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        return (None, *ctx.hooks.leave(grads))


class _OutputMark(Function):
    """The identity around a module's outputs: its backward is the start of the module's."""

    @staticmethod
    def forward(ctx: Any, hooks: BackwardHooks, *outputs: Tensor) -> tuple[Tensor, ...]:
        ctx.hooks = hooks
        ctx.mark_non_differentiable(*[y for y in outputs if not y.requires_grad])
        ctx.set_materialize_grads(False)  # hooks see None for an output that nobody used
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        return (None, *ctx.hooks.enter(grads))


class BackwardHooks:
    """One call of a module whose backward has hooks: two identities that tell when it runs."""

    def __init__(self, module: Any, pre_hooks: tuple, hooks: tuple) -> None:
        self.module = module
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.inputs = 0
        self.input_positions: list[int] = []
        self.outputs = 0
        self.output_positions: list[int] = []
        self.grad_outputs: tuple | None = None
        self.hidden = False  # the outputs are in something whose gradients nobody sees

    def mark_inputs(self, args: tuple) -> tuple:
        self.inputs = len(args)
        args, self.input_positions = self._mark(_InputMark, args)
        return args

    def mark_outputs(self, output: Any) -> Any:
        values = output if isinstance(output, tuple) else (output,)
        if not isinstance(output, tuple | Tensor):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(output)}",
                stacklevel=level_outside(),
            )
            self.hidden = True
            return output
        self.outputs = len(values)
        values, self.output_positions = self._mark(_OutputMark, values)
        return values if isinstance(output, tuple) else values[0]

    def _mark(self, mark: type[Function], values: tuple) -> tuple[tuple, list[int]]:
        positions = [i for i, x in enumerate(values) if isinstance(x, Tensor)]
        if not is_grad_enabled() or not any(values[i].requires_grad for i in positions):
            return values, []
        marked = mark.apply(self, *(values[i] for i in positions))
        replaced = list(values)
        for position, x in zip(positions, marked):
            replaced[position] = x
        if type(values) is tuple:
            return tuple(replaced), positions
        return type(values)(*replaced), positions  # a named tuple

    def enter(self, grads: tuple) -> tuple:
        """Run the pre hooks on the gradients that arrive; returns those that go on."""
        grad_outputs = _spread(grads, self.output_positions, self.outputs)
        for hook in self.pre_hooks:
            result = hook(self.module, grad_outputs)
            if result is not None:
                grad_outputs = _checked(result, self.outputs, "pre hook", "grad_output")
        self.grad_outputs = grad_outputs
        if self.hooks and not self.input_positions:
            self._leave_without_inputs()
        return tuple(grad_outputs[i] for i in self.output_positions)

    def leave(self, grads: tuple) -> tuple:
        """Run the full hooks on the gradients that leave; returns those that go on."""
        if self.hidden or self.grad_outputs is None:
            return grads  # these came past the outputs, as those of an LSTM's states do
        grad_inputs = _spread(grads, self.input_positions, self.inputs)
        for hook in self.hooks:
            result = hook(self.module, grad_inputs, self.grad_outputs)
            if result is not None:
                grad_inputs = _checked(result, self.inputs, "hook", "grad_input")
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.input_positions)

    def _leave_without_inputs(self) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. See https://docs.pytorch.org/docs/main/"
            "generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for "
            "more details.",
            stacklevel=level_outside(),
        )
        nothing = (None,) * self.inputs
        for hook in self.hooks:
            result = hook(self.module, nothing, self.grad_outputs)
            if result is not None and any(g is not None for g in result):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None


def _spread(grads: tuple, positions: list[int], length: int) -> tuple:
    spread: list[Any] = [None] * length
    for position, grad in zip(positions, grads):
        spread[position] = grad
    return tuple(spread)


def _checked(grads: Any, expected: int, hook: str, what: str) -> tuple:
    if len(grads) != expected:
        raise RuntimeError(
            f"Backward {hook} returned an invalid number of {what}, got {len(grads)}, "
            f"but expected {expected}"
        )
    return tuple(grads)
