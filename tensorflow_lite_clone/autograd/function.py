"""`autograd.Function`: operations whose gradient the user writes over Tensors."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow_lite_clone.autograd.apply import edges_of
from tensorflow_lite_clone.autograd.function_node import FunctionCtx, FunctionNode, SavedTensor
from tensorflow_lite_clone.autograd.hooks import move_retained
from tensorflow_lite_clone.autograd.inplace import check_inplace, record_in_base
from tensorflow_lite_clone.autograd.mode import mode, no_grad
from tensorflow_lite_clone.autograd.node import next_sequence_number
from tensorflow_lite_clone.core.errors import NotStrided, level_outside
from tensorflow_lite_clone.core.late_bound import apply_recorded, apply_transformed
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.tensor import Tensor, View, new_tensor


class Function:
    """Base of operations with a hand-written gradient.

    Subclasses define static methods ``forward(ctx, *args)`` (or ``forward(*args)`` with
    ``setup_context(ctx, inputs, output)``) and ``backward(ctx, *grad_outputs)``, which returns one
    gradient, or None, per argument of ``forward``; they are called through `apply`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=level_outside(),
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; nothing inside is recorded."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of forward's arguments from those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward
    #: Whether `func.vmap` may map over the function by mapping over its forward and backward.
    generate_vmap_rule = False

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of forward's outputs from those of its arguments.

        Where it is not defined, they are derived from ``backward``.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """What `func.vmap` computes: outputs and the dimensions in which the samples are.

        `info` has the number of samples (``batch_size``) and ``randomness``; `in_dims` says in
        which dimension of each argument the samples are, None where there are none.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    #: Called with (ctx, inputs, output) when forward takes no ctx.
    setup_context: Callable[..., None] | None = None

    @classmethod
    def _gradient(cls) -> Callable[..., Any]:
        """The one of ``backward`` and ``vjp`` that the class defines."""
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is Function.backward:
            return cls.vjp
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
            "should only implement one of them."
        )

    @classmethod
    def _pushes(cls) -> bool:
        """Whether the class defines ``jvp``."""
        return cls.jvp is not Function.jvp

    @classmethod
    def _bound(cls, args: tuple, kwargs: dict) -> tuple:
        """All arguments by position, defaults included; TypeError for unknown keywords."""
        forward: Any = cls.forward
        code = getattr(forward, "__code__", None)
        if code is None:  # a partial function, say
            return args
        names = code.co_varnames[cls.setup_context is None : code.co_argcount]
        defaults = forward.__defaults__ or ()
        values = dict(zip(names[len(names) - len(defaults) :], defaults))
        for name, value in kwargs.items():
            if name not in names[len(args) :]:
                raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
            values[name] = value
        bound = list(args)
        for name in names[len(args) :]:
            if name not in values:
                raise TypeError(f"forward() missing a required argument: '{name}'")
            bound.append(values[name])
        return tuple(bound)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` and record one node whose gradient is ``backward``."""
        if kwargs or cls.setup_context is not None:
            args = cls._bound(args, kwargs)
        result = apply_recorded.function(cls, args)
        if result is not NotImplemented:
            return result
        if mode.transforms:
            if cls.setup_context is None:
                raise RuntimeError(
                    "In order to use an autograd.Function with functorch transforms (vmap, grad, "
                    "jvp, jacrev, ...), it must override the setup_context staticmethod. For more "
                    "details, please see "
                    "https://pytorch.org/docs/main/notes/extending.func.html"
                )
            return apply_transformed(cls, args)
        return cls._run(args, cls.forward)

    @classmethod
    def _run(cls, args: tuple, forward: Callable[..., Any]) -> Any:
        """Call `forward`, set up the context, and record a node."""
        context = FunctionCtx()
        tensors = [argument for argument in args if isinstance(argument, Tensor)]
        edges, mask = edges_of(tuple(tensors))
        recorded = bool(mask) and mode.grad
        context.needs_input_grad = tuple(
            [isinstance(argument, Tensor) and argument.requires_grad for argument in args]
        )
        outside, mode.grad = mode.grad, False
        try:  # an interrupt can come between a call that enters a block and the block
            if cls.setup_context is None:
                output = forward(context, *args)
            else:
                output = forward(*args)
                cls.setup_context(context, args, output)
        finally:
            mode.grad = outside
        single = not isinstance(output, tuple)
        outputs = [output] if single else list(output)
        made = {id(value): index for index, value in enumerate(outputs)}
        if context._dirty:
            _check_dirty(context, tensors, made, recorded)
        inputs = {id(tensor) for tensor in tensors}
        for index, value in enumerate(outputs):
            identity = id(value)
            if identity in inputs and identity not in context._dirty:
                alias = new_tensor(value._storage)  # an input handed through unchanged
                if recorded:
                    base = value if value._view is None else value._view.base
                    alias._view = View(base, None, value._version, "function")
                if identity in context._nondifferentiable:
                    context._nondifferentiable.add(id(alias))
                outputs[index] = alias
        if recorded and any([isinstance(value, Tensor) for value in outputs]):
            _record(cls, context, args, edges, mask, outputs, made)
        return outputs[0] if single else tuple(outputs)


def _check_dirty(context: FunctionCtx, tensors: list, made: dict[int, int], recorded: bool) -> None:
    """Count the writes into dirty inputs; RuntimeError where PyTorch forbids them."""
    if not context._dirty <= made.keys():
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. "
            "The inputs that are modified inplace must all be outputs of the Function."
        )
    for tensor in tensors:
        if id(tensor) in context._dirty:
            check_inplace(tensor, recorded)
            tensor._storage.bump()


def _facts_of(x: Tensor) -> tuple[Any, Any, Any]:
    """A tensor's shape, native dtype and backend."""
    try:
        storage = x._storage
    except NotStrided:  # a sparse tensor, which has them of its values
        return tuple(x.shape), *_facts_of(x._elements)[1:]  # type: ignore[attr-defined]
    return storage.physical.shape, storage.physical.dtype, storage.backend


def _record(
    cls: type[Function],
    context: FunctionCtx,
    args: tuple,
    edges: tuple,
    mask: int,
    outputs: list,
    made: dict[int, int],
) -> None:
    node = object.__new__(FunctionNode)
    node.function = cls
    node.context = context
    node.edges = edges
    node.mask = mask
    node.parameters = {}
    node.sequence = next_sequence_number()
    node.slots = [_facts_of(x) if isinstance(x, Tensor) else None for x in args]

    def held(tensors: tuple) -> list:
        saved: list[Any] = []
        for tensor in tensors:
            output = None if tensor is None else made.get(id(tensor))
            if output is not None and id(outputs[output]) in context._nondifferentiable:
                output = None
            saved.append(None if tensor is None else SavedTensor(tensor, output))
        return saved

    node.saved = held(context._saved)
    forward = context._saved_forward
    node.saved_forward = None if forward is None else held(forward)
    node.versions = []
    context._saved, context._saved_forward = (), None
    context._node = weakref.ref(node)  # a strong reference would be a cycle
    facts = [_facts_of(v) if isinstance(v, Tensor) else (None, None, None) for v in outputs]
    node.shapes, node.dtypes, node.backends = zip(*facts)
    node.backend = next(backend for backend in node.backends if backend is not None)
    for index, value in enumerate(outputs):
        if not isinstance(value, Tensor) or id(value) in context._nondifferentiable:
            continue
        if value.dtype.kind in "fc":
            _place(value, node, index, id(value) in context._dirty)
    for hook in hooks.on_node:
        hook(node)


def _place(output: Tensor, node: FunctionNode, index: int, dirty: bool) -> None:
    """Make `output` number `index` of `node`'s outputs."""
    before, view = output._edge, output._view
    if dirty and view is not None:
        part = new_tensor(output._storage)
        part._edge = (node, index)
        record_in_base(view, part)
        return
    output._edge = (node, index)
    if dirty and output._retains_grad:
        move_retained(output, before)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that cannot itself be differentiated: doing so raises."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            results = backward(ctx, *grads)
        if not mode.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return results
        return _OnceDifferentiableError.guard(results)

    return wrapper


class _OnceDifferentiableError(Function):
    """Hands gradients through; differentiating them again is the error."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*values: Tensor) -> Any:
        return tuple(value.detach() for value in values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """There is nothing to keep."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )

    @classmethod
    def guard(cls, results: Any) -> Any:
        """`results` with this error as their gradient."""
        single = not isinstance(results, tuple)
        values: Iterable[Any] = (results,) if single else results
        guarded = []
        for value in values:
            if isinstance(value, Tensor):
                (value,) = cls.apply(value.detach().requires_grad_())
            guarded.append(value)
        return guarded[0] if single else tuple(guarded)
