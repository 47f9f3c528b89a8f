"""`autograd.Function`: operations whose gradient the user writes over Tensors."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_edge, edges_of, recording, wrap
from tensorflow_lite_clone.autograd.hooks import move_retained
from tensorflow_lite_clone.autograd.inplace import check_inplace, record_in_base
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.node import SeveralNode, creation_hooks, next_sequence_number
from tensorflow_lite_clone.autograd.saved import active as saved_hooks
from tensorflow_lite_clone.autograd.saved import pack_all
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, View, new_tensor


class FunctionCtx:
    """What ``forward`` and ``backward`` of a `Function` share; also any attribute set on it."""

    needs_input_grad: tuple[bool, ...] = ()

    def __init__(self) -> None:
        self._saved: tuple[Tensor | None, ...] = ()
        self._node: Callable[[], FunctionNode | None] | None = None
        self._nondifferentiable: set[int] = set()
        self._dirty: set[int] = set()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or other tensors for ``backward``."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but got {type(tensor).__name__}"
                )
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`; RuntimeError once the graph was freed."""
        if self._node is None:
            return self._saved
        node = self._node()
        return () if node is None else node.unpack()

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that have no gradient, such as indices."""
        self._nondifferentiable.update(map(id, outputs))

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Declare inputs that ``forward`` wrote to and returns."""
        self._dirty.update(map(id, inputs))

    def set_materialize_grads(self, value: bool) -> None:
        """Whether ``backward`` gets zeros (the default) or None for outputs nobody used."""
        self._materialize = value


class _SavedTensor:
    """A saved tensor as storage + place in the graph, so that outputs make no cycle.

    `output` is its number if it is an output of the function.
    """

    __slots__ = ("edge", "output", "storage", "version")

    def __init__(self, tensor: Tensor, output: int | None) -> None:
        self.edge = current_edge(tensor)
        self.output = output
        self.version = tensor._storage.current_version()
        held = [tensor._storage]
        if saved_hooks:
            pack_all(held)
        self.storage: Any = held[0]

    def restored(self, node: FunctionNode) -> Tensor:
        """The tensor at its place in the graph; RuntimeError if it was written to since."""
        storage = self.storage
        if type(storage) is not Storage:
            storage = storage.storage()  # unpack
        elif storage.current_version() != self.version:
            name = storage.backend.dtypes[storage.array.dtype].short_name
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: [torch.{name}Tensor {list(storage.array.shape)}], saved by "
                f"{node.name()}, is at version {storage.current_version()}; expected version "
                f"{self.version} instead. Hint: enable anomaly detection to find the operation "
                "that failed to compute its gradient, with "
                "torch.autograd.set_detect_anomaly(True, check_nan=False)."
            )
        tensor = new_tensor(storage)
        tensor._edge = self.edge if self.output is None else (node, self.output)
        return tensor


class FunctionNode(SeveralNode):
    """The node of a `Function` call."""

    __slots__ = ("context", "function", "slots")

    context: Any
    function: Any
    slots: list[Any]

    makes_new_gradients = False

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def unpack(self) -> tuple[Tensor | None, ...]:
        """The saved tensors at their places in the graph."""
        if self.saved is None:
            self._unpack((0,), False)  # raises
        entries: list[Any] = self.saved or []
        return tuple([None if entry is None else entry.restored(self) for entry in entries])

    def __getattr__(self, name: str) -> Any:
        if name == "context":
            raise AttributeError(name)
        return getattr(self.context, name)  # in PyTorch the context is the node

    def gradients(self, grads: list, create_graph: bool, needed: Any = None) -> Any:
        given: list[Tensor | None] = []
        for index, g in enumerate(grads):
            if g is None:
                if self.context._materialize and self.shapes[index] is not None:
                    zeros = self.backend.F.zeros(self.shapes[index], dtype=self.dtypes[index])
                    g = wrap(zeros, self.backend)
            elif not create_graph:
                g = wrap(g, self.backend)
            given.append(g)
        results = self.function._gradient()(self.context, *given)
        if not isinstance(results, tuple):
            results = (results,)
        count = len(self.slots)
        if len(results) > count and all(extra is None for extra in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(results)})"
            )
        values: list[Any] = []
        for slot, result in zip(self.slots, results, strict=True):
            if slot is None:
                if result is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different than None at "
                        f"position {len(values) + 1}, but the corresponding forward input was not "
                        "a Variable"
                    )
                continue
            if result is not None and not isinstance(result, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(result).__name__})")
            values.append(result)
        self._check(values)
        if create_graph:
            return values
        return [None if value is None else value._storage.array for value in values]

    def _check(self, values: list) -> None:
        """Raise RuntimeError for gradients that cannot be reduced to their input's shape."""
        for position, (edge, value) in enumerate(zip(self.edges, values, strict=True)):
            if edge is None or value is None:
                continue
            shape = edge[0].shape_of(edge[1])
            dtype = edge[0].backend.dtypes[edge[0].dtype_of(edge[1])]
            given = value._storage.array.shape
            problem = f"Function {self.name()} returned an invalid gradient at index {position} - "
            if given != shape and not _reducible(given, shape):
                raise RuntimeError(
                    f"{problem}got {list(given)} but expected shape compatible with {list(shape)}"
                )
            if value.dtype.kind == "c" and dtype.kind != "c":
                raise RuntimeError(f"{problem}got {value.dtype} but expected {dtype}")


def _reducible(given: tuple, shape: tuple) -> bool:
    """Whether `given` is a shape to which `shape` could have been broadcast."""
    offset = len(given) - len(shape)
    return offset >= 0 and all(
        [have == want or want == 1 for have, want in zip(given[offset:], shape)]
    )


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
            stacklevel=2,
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
        context = FunctionCtx()
        if kwargs or cls.setup_context is not None:
            args = cls._bound(args, kwargs)
        tensors = [argument for argument in args if isinstance(argument, Tensor)]
        edges, mask = edges_of(tuple(tensors))
        recorded = bool(mask) and mode.grad
        context.needs_input_grad = tuple(
            [isinstance(argument, Tensor) and argument.requires_grad for argument in args]
        )
        with recording(False):
            if cls.setup_context is None:
                output = cls.forward(context, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(context, args, output)
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
                    alias._view = View(base, (), value._version, "function")
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
    node.slots = [True if isinstance(argument, Tensor) else None for argument in args]
    saved: list[Any] = []
    for tensor in context._saved:
        if tensor is None:
            saved.append(None)
            continue
        output = made.get(id(tensor))
        if output is not None and id(outputs[output]) in context._nondifferentiable:
            output = None
        saved.append(_SavedTensor(tensor, output))
    node.saved = saved
    node.versions = []
    context._saved = ()
    context._node = weakref.ref(node)  # a strong reference would be a cycle
    first = next(value for value in outputs if isinstance(value, Tensor))
    node.backend = first._storage.backend
    node.shapes = tuple(
        [v._storage.array.shape if isinstance(v, Tensor) else None for v in outputs]
    )
    node.dtypes = tuple(
        [v._storage.array.dtype if isinstance(v, Tensor) else None for v in outputs]
    )
    for index, value in enumerate(outputs):
        if not isinstance(value, Tensor) or id(value) in context._nondifferentiable:
            continue
        if value.dtype.kind in "fc":
            _place(value, node, index, id(value) in context._dirty)
    for hook in creation_hooks:
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
        with recording(False):
            results = backward(ctx, *grads)
        if not mode.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return results
        return _OnceDifferentiableError.guard(results)

    return wrapper


class _OnceDifferentiableError(Function):
    """Hands gradients through; differentiating them again is the error."""

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> Any:
        return tuple(value.detach() for value in values)

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
