"""When the parameters of modules are gathered and given up, and their gradients reduced.

Forward: before a module runs, its parameters are gathered, and afterwards given up. Backward:
hooks on the module's outputs gather them again. Its gradients are reduced as soon as all that this
backward pass will give have arrived. Its parameters are given up when the pass comes to a module
that ran before it: nodes run in the reverse order of their making, so all of its nodes have run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd import engine
from tensorflow_lite_clone.autograd.mode import is_grad_enabled
from tensorflow_lite_clone.autograd.node import next_sequence_number
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.distributed.fsdp._group import Options, ParameterGroup, Streams
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_leaves, tree_map


def in_backward() -> bool:
    """Whether a backward pass runs: a forward then is one that a checkpoint repeats."""
    return engine.current.walk is not None


def cast(tree: Any, dtype: DType | None) -> Any:
    """The tree with its floating-point tensors in a dtype."""
    if dtype is None:
        return tree
    return tree_map(
        lambda x: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x, tree
    )


class Root:
    """What the cut modules of one model share, from its first forward on."""

    def __init__(self, state: State, states: list[State]) -> None:
        self.state = state
        self.states = states
        self.streams = Streams(state.group.options.device)
        self.order: list[State] = []  # in which modules ended in this forward
        self.open: list[State] = []  # gathered in this backward pass
        self.queued = False  # whether the end of the backward pass will be told
        self.entry: State | None = None  # the module that was called from outside

    def enter(self, state: State) -> None:
        """The forward of a module begins."""
        if self.entry not in (None, state) and self.state is not state:
            return
        self.entry = state
        if self.queued:  # an error ended the last backward pass
            self.queued = False
            self.close()
        self.streams.begin()

    def leave(self, state: State) -> None:
        """The forward of a module has ended."""
        if state not in self.order:
            self.order.append(state)
        if self.entry is state:
            self.entry = None
            if not is_grad_enabled():
                self.forget()

    def forget(self) -> None:
        """No backward pass will come for what has run so far."""
        self.order.clear()
        for state in self.states:
            state.first = state.last = None

    def begin_backward(self, state: State) -> None:
        """The backward pass comes to a module."""
        for other in list(self.open):
            if other is not state and other.is_behind(state):
                other.finish_backward()
        self.reopen(state)

    def reopen(self, state: State) -> None:
        """The backward pass needs a module."""
        if not self.queued:
            self.queued = True
            self.streams.begin()
            engine.queue_callback(self.end_backward)
        if state not in self.open:
            self.open.append(state)

    def end_backward(self) -> None:
        """The backward pass has ended."""
        self.queued = False
        for state in list(self.open):
            state.finish_backward()
        self.close()
        self.streams.join()
        self.forget()

    def close(self) -> None:
        """Give up what was gathered for nothing."""
        self.open.clear()
        for state in self.states:
            if state.reshard_after_backward:
                state.group.release()

    def before(self, state: State) -> list[State]:
        """The module that ended just before another one in forward, on a GPU."""
        if not self.streams.apart or state not in self.order:
            return []
        place = self.order.index(state)
        return self.order[place - 1 : place] if place else []


class State:
    """One module that is cut, and the hooks around its forward and backward."""

    def __init__(self, module: Module, group: ParameterGroup) -> None:
        self.module = module
        self.group = group
        self.root: Root | None = None
        self.reshard_after_forward: bool | None = None  # None: unless it is the root's module
        self.reshard_after_backward = True
        self.unshard_in_backward = True
        self.sync = True
        self.forward_prefetch: list[State] = []
        self.backward_prefetch: list[State] | None = None  # None: the one before
        self.first: int | None = None  # numbers of nodes: when its forwards began
        self.last: int | None = None  # and ended
        self.cast_root_inputs = False
        group.arrived = self._arrived

    @property
    def options(self) -> Options:
        """How the module is cut and calculates."""
        return self.group.options

    # -- forward ------------------------------------------------------------------------------

    def before_forward(self, module: Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The hook before the module's forward."""
        root = self.root or self._become_root()
        if in_backward():
            root.reopen(self)
        else:
            root.enter(self)
            number = next_sequence_number()
            self.first = number if self.first is None else min(self.first, number)
        self.gather(self.forward_prefetch)
        if self.options.cast_inputs or (self.cast_root_inputs and root.state is self):
            args = cast(args, self.options.param_dtype)
            kwargs = cast(kwargs, self.options.param_dtype)
        return args, kwargs

    def after_forward(self, module: Module, args: Any, output: Any) -> Any:
        """The hook after the module's forward."""
        root = self.root
        assert root is not None
        output = cast(output, self.options.output_dtype)
        if is_grad_enabled():
            for value in tree_leaves(output):
                if isinstance(value, Tensor) and value.requires_grad:
                    value.register_hook(self._before_backward)
        if in_backward():
            return output
        self.last = next_sequence_number()
        if self.is_resharded_after_forward() or not is_grad_enabled():
            self.group.release()
        root.leave(self)
        return output

    def is_resharded_after_forward(self) -> bool:
        """Whether whole parameters are dropped between forward and backward."""
        if self.reshard_after_forward is None:
            return self.root is None or self.root.state is not self
        return self.reshard_after_forward

    def _become_root(self) -> Root:
        states = [state for module in self.module.modules() if (state := state_of(module))]
        root = Root(self, states)
        for state in states:  # also those that have run by themselves before
            state.root = root
        return root

    def gather(self, prefetch: list[State]) -> None:
        """Gather this module's parameters, and begin with those of others."""
        streams = self.streams
        self.group.start_gather(streams)
        self.group.finish_gather(streams)
        for other in prefetch:
            if other.unshard_in_backward or not in_backward():
                other.group.start_gather(streams)

    @property
    def streams(self) -> Streams:
        """Those of the model."""
        return (self.root or self._become_root()).streams

    # -- backward -----------------------------------------------------------------------------

    def _before_backward(self, grad: Any) -> None:
        root = self.root
        assert root is not None
        root.begin_backward(self)
        if self.unshard_in_backward:
            prefetch = self.backward_prefetch
            self.gather(root.before(self) if prefetch is None else prefetch)

    def is_behind(self, state: State) -> bool:
        """Whether the backward pass is through with this module when it comes to another."""
        return None not in (self.first, state.last) and self.first > state.last  # type: ignore[operator]

    def _arrived(self) -> None:
        walk: Any = engine.current.walk
        for member in self.group.members:
            edge = member.whole._edge if member.whole is not None else None
            if edge is not None and walk.missing.get(edge[0], 0):
                return
        root = self.root
        assert root is not None
        root.reopen(self)  # unless its output was a tensor that hooks see
        if self.sync:
            self.group.reduce(root.streams)

    def finish_backward(self) -> None:
        """The backward pass is through with this module."""
        root = self.root
        assert root is not None
        root.open.remove(self)
        if self.sync:
            self.group.reduce(root.streams)
        if self.reshard_after_backward:
            self.group.release()


def state_of(module: Module) -> State | None:
    """The state of a module that is cut, None for others."""
    return module.__dict__.get("_sharding")


def attach(module: Module, group: ParameterGroup) -> State:
    """Let a module's calls gather the parameters of a group."""
    state = State(module, group)
    module.__dict__["_sharding"] = state
    module.register_forward_pre_hook(state.before_forward, prepend=True, with_kwargs=True)
    module.register_forward_hook(state.after_forward)
    module.register_state_dict_pre_hook(lambda *_: group.release())
    return state


def around(state: State, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs as the module's forward does."""

    def method(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_forward(state.module, args, kwargs)
        return state.after_forward(state.module, args, function(*args, **kwargs))

    return method
