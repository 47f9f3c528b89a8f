"""What the host keeps and a replay does not run: snapshots of it, checks, and how to go back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import is_, itemgetter
from typing import Any

from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.compiler.reads import ReadSet, is_foreign, is_unchanged, names_of
from tensorflow_lite_clone.compiler.signature import SCALARS, UnstableError, UnsuitableError
from tensorflow_lite_clone.compiler.trace import Trace
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.nn.modules.hooks import CALL_TABLES
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor

_TABLES = frozenset(vars(Module()))  # they change together with a module's attributes
_slot: Any = Tensor._storage  # the descriptor that the class below hides


class _ReadProbe(Tensor):
    """Stands in for a leaf's old gradient during a capture and notes whether anybody reads it."""

    __slots__ = ()

    __torch_function__ = disabled

    @property
    def _storage(self) -> Storage:  # type: ignore[override]
        vars(self)["was_read"] = True
        return _slot.__get__(self)


def _read_probe(tensor: Tensor) -> Tensor:
    made = object.__new__(_ReadProbe)
    _slot.__set__(made, tensor._storage)
    made._edge, made._view = tensor._edge, tensor._view
    vars(made)["was_read"] = False
    return made


class Gradients:
    """The ``.grad`` of leaves across a captured step.

    `absent`: leaves that must have none before a replay; `kept`: those that must have the storage
    that was captured, which the step reads or accumulates into; `left`: what the step leaves.
    A gradient that the step replaces without having looked at it may be anything before.
    """

    def __init__(self, leaves: list[Tensor]) -> None:
        self._leaves = leaves
        self._before = [leaf._grad for leaf in leaves]
        self._probes: list[Any] = [None if g is None else _read_probe(g) for g in self._before]
        for leaf, g in zip(leaves, self._probes):
            leaf._grad = g
        self.absent: list[Tensor] = []
        self.kept: list[tuple[Tensor, Storage]] = []
        self.left: list[tuple[Tensor, Tensor | None]] = []

    def finish(self) -> None:
        """Look at what the captured step left, and take the watches away."""
        for leaf, before, probe in zip(self._leaves, self._before, self._probes):
            after = leaf._grad
            if before is None:
                self.absent.append(leaf)
                if after is not None:
                    self.left.append((leaf, after))
                continue
            if probe.was_read:
                self.kept.append((leaf, before._storage))
            if after is probe:
                leaf._grad = before
            elif after is None or _slot.__get__(after) is not before._storage:
                self.left.append((leaf, after))

    def restore(self) -> None:
        """Put back what was there before."""
        for leaf, before in zip(self._leaves, self._before):
            leaf._grad = before

    def forget(self) -> None:
        """Let go of what was there before, once nothing will be put back."""
        self._before, self._probes = [], []

    def is_valid(self) -> bool:
        """Whether the leaves are as a replay wants them."""
        for leaf in self.absent:
            if leaf._grad is not None:
                return False
        for leaf, storage in self.kept:
            g = leaf._grad
            if g is None or g._storage is not storage:
                return False
        return True

    def copy_out(self, other: Gradients) -> None:
        """Copy what this step left, and `other` does not work on, out of the shared memory."""
        touched = {id(leaf) for leaf, _ in (*other.left, *other.kept)}
        for leaf, g in self.left:
            if g is not None and leaf._grad is g and id(leaf) not in touched:
                backend = g._storage.backend
                leaf._grad = wrap(backend.F.copy(g._storage.array), backend)


class _OptimizerGuard:
    """The state of one optimizer: which tensors it keeps, and its groups' settings."""

    def __init__(self, optimizer: Optimizer, backend: Any) -> None:
        self.optimizer = optimizer
        self.state, self.groups = optimizer.state, optimizer.param_groups
        self.keys = {param: tuple(entries) for param, entries in optimizer.state.items()}
        self.host = [
            (entries, name, value, _host_copy(value))
            for entries in optimizer.state.values()
            for name, value in entries.items()
            if backend is not None
            and not (isinstance(value, Tensor) and value._storage.backend is backend)
        ]
        self.params = [(group, group["params"], list(group["params"])) for group in self.groups]
        self.settings = [
            (group, {name: group[name] for name in group if name != "params"})
            for group in self.groups
        ]
        self._kept = list(self._tensors())
        self._hooks = self._count_hooks()
        self.checks: list[tuple[dict, Any, Any]] = []
        self.objects: list[tuple[dict, str, Any]] = []

    def _tensors(self) -> Iterable[Any]:
        """Everything in the state, and all parameters: replays hold their memory."""
        params = [group["params"] for group in self.groups]
        return chain(chain.from_iterable(map(dict.values, self.state.values())), *params)

    def _tensors_are_fewer(self) -> bool:
        return sum(map(len, self.state.values())) != sum(map(len, self.keys.values()))

    def _count_hooks(self) -> int:
        optimizer = self.optimizer
        before, after = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
        return len(before) + len(after)

    def check(self, live: list[Any]) -> None:
        """Fix what a replay relies on; UnsuitableError where the step has changed host values."""
        optimizer = self.optimizer
        now = {param: tuple(entries) for param, entries in optimizer.state.items()}
        if now != self.keys:
            raise UnstableError("an optimizer has made new state while it was captured")
        for entries, name, value, copy in self.host:
            if entries.get(name) is not value or _host_copy(value) != copy:
                raise UnsuitableError("an optimizer counts its steps on the host")
        for group, settings in self.settings:
            for name, value in settings.items():
                if not _same(group.get(name), value):
                    raise UnsuitableError(f"it changes an optimizer's '{name}'")
            frozen = [name for name in settings if not _is_live(group, name, live)]
            plain = [name for name in frozen if _is_plain(group[name])]
            if plain:
                getter = itemgetter(*plain)
                self.checks.append((group, getter, getter(group)))
            self.objects += [(group, n, group[n]) for n in frozen if n not in plain]

    def is_valid(self) -> bool:
        optimizer = self.optimizer
        if optimizer.state is not self.state or optimizer.param_groups is not self.groups:
            return False
        if len(self.groups) != len(self.params):
            return False
        for group, params, copy in self.params:
            if group["params"] is not params or len(params) != len(copy):
                return False
        if len(optimizer.state) != len(self.keys) or self._count_hooks() != self._hooks:
            return False
        if not all(map(is_, self._tensors(), self._kept)) or self._tensors_are_fewer():
            return False
        for group, getter, values in self.checks:
            if getter(group) != values:
                return False
        for group, name, value in self.objects:
            if group[name] is not value:
                return False
        return True

    def storages(self) -> set[Storage]:
        """The memory of the optimizer's state."""
        tensors = [t for state in self.state.values() for t in state.values()]
        return {(t._storage.root or t._storage) for t in tensors if isinstance(t, Tensor)}

    def restore(self) -> None:
        for param in list(self.state):
            if param not in self.keys:
                del self.state[param]
                continue
            for name in [name for name in self.state[param] if name not in self.keys[param]]:
                del self.state[param][name]
        for entries, name, value, copy in self.host:
            entries[name] = value
            if isinstance(value, Tensor):
                value._storage.backend.write(
                    value._storage.array, value._storage.backend.asarray(copy, value.dtype)
                )
        for group, settings in self.settings:
            group.update(settings)


def _host_copy(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all([_same(x, y) for x, y in zip(a, b)])
    return a.__class__ in SCALARS and bool(a == b)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all([_is_plain(entry) for entry in value])
    return value.__class__ in SCALARS


def _is_live(group: dict[str, Any], name: str, live: list[Any]) -> bool:
    """Whether a live number is read from this setting: tried out by changing it for a moment."""
    value = group[name]
    if isinstance(value, tuple) and value and all([type(entry) is float for entry in value]):
        trial: Any = tuple([_perturbed(entry) for entry in value])
    elif type(value) is float or type(value) is int:
        trial = _perturbed(value)
    else:
        return False
    group[name] = trial
    try:
        return any([number.consumed and _has_other_value(number) for number in live])
    finally:
        group[name] = value


def _perturbed(value: float) -> float:
    changed = 0.37 * value + 0.11  # stays between 0 and 1 for what has to lie there
    return changed if changed != value else value + 1.0


def _has_other_value(number: Any) -> bool:
    try:
        return bool(number.read() != float(number))
    except (ArithmeticError, ValueError):
        return True


class _AttributeGuard:
    """A module's attributes, or one of the dictionaries of its members, children and hooks."""

    def __init__(self, space: dict[str, Any], what: str = "") -> None:
        self.space = space
        self.values = dict(space)
        self.what = what  # of a dictionary that must not change at all

    def is_valid(self) -> bool:
        space, values = self.space, self.values
        if space.keys() != values.keys():
            return False
        return all([is_unchanged(space[name], value) for name, value in values.items()])

    def check(self, read: set[int]) -> None:
        """UnsuitableError for changes other than to tensors that nobody has read (see `read`).

        What a replay writes is in the memory of the one that it left there.
        """
        space, values = self.space, self.values
        for name in {**values, **space}:
            now, value = space.get(name), values.get(name)
            if is_unchanged(now, value):
                continue
            if self.what:
                raise UnsuitableError(f"it replaces the {self.what} '{name}' of a module")
            new = value is None and name not in values
            old = isinstance(value, Tensor) and id(value._storage.physical) not in read
            if not (isinstance(now, Tensor) and (new or old)):
                raise UnsuitableError("it changes attributes of a module")
        self.values = dict(space)

    def restore(self) -> None:
        for name in [name for name in self.space if name not in self.values]:
            del self.space[name]
        self.space.update(self.values)


class GuardSet:
    """Everything a function reads besides its arguments, as far as it is known, before it runs.

    These are the attributes of the modules that `trace` has seen called, the leaves of graphs, what
    the code of the function and of these modules names, and the optimizers that stepped. What a
    capture on `backend` changes is checked and can be put back; None if there is none.
    """

    def __init__(self, function: Any, trace: Trace, backend: Any = None) -> None:
        self._reads = reads = ReadSet()
        reads.modules.update(trace.modules)
        reads.function(function)
        for value in trace.callables:
            reads.function(value)
        for leaf in trace.leaves.values():
            reads.value(leaf, frozenset(), 0)
        self._attributes: list[_AttributeGuard] = []
        self.members: list[tuple[Tensor, Any, Any]] = []
        done: set[int] = set()
        while len(done) < len(reads.modules):  # their code may name others
            for key, module in list(reads.modules.items()):
                if key not in done:
                    done.add(key)
                    self._add(module)
        self._flatten()
        self.optimizer_guards = [_OptimizerGuard(one, backend) for one in trace.optimizers.values()]

    def _flatten(self) -> None:
        spaces = [attributes.space for attributes in self._attributes]
        self._spaces = list(filter(None, spaces))
        self._empty = [space for space in spaces if not space]  # most tables of hooks
        self._flat = list(chain.from_iterable(map(dict.values, self._spaces)))
        self._lengths = list(map(len, self._spaces))

    def _add(self, module: Module) -> None:
        attributes = vars(module)
        self._attributes.append(_AttributeGuard(attributes))
        for what, table in (("parameter", "_parameters"), ("buffer", "_buffers")):
            self._attributes.append(_AttributeGuard(attributes[table], what))
            for tensor in attributes[table].values():
                if tensor is not None:
                    self.members.append((tensor, tensor._storage.array, tensor._edge))
        self._attributes.append(_AttributeGuard(module._modules, "child"))
        for table in CALL_TABLES:
            self._attributes.append(_AttributeGuard(attributes[table], "hook"))
        forward: Any = module.forward
        own = not is_foreign(forward)
        names = names_of(type(module)) if own else frozenset()
        for child in module._modules.values():
            self._reads.value(child, names, 2)
        for name, value in attributes.items():
            if value.__class__ not in SCALARS and name not in _TABLES:
                self._reads.value(value, names, 2)
        if own:
            self._reads.value(type(module), names, 2)
            self._reads.function(getattr(forward, "__func__", forward))

    def parameters(self) -> list[Tensor]:
        """All tensors whose gradients the function may touch by name: members, optimizers'."""
        found = [member[0] for member in self.members]
        for guard in self.optimizer_guards:
            for _, _, params in guard.params:
                found += params
        return found

    def tensors(self) -> list[Tensor]:
        """Members, and all tensors that are read by name."""
        return [kept[0] for kept in (*self.members, *self._reads.tensors)]

    def is_valid(self) -> bool:
        """Whether everything is as it was."""
        same = all(map(is_, chain.from_iterable(map(dict.values, self._spaces)), self._flat))
        if not same or any(self._empty) or list(map(len, self._spaces)) != self._lengths:
            # That was fast, but strict.
            for attributes in self._attributes:
                if not attributes.is_valid():
                    return False
        for tensor, array, edge in self.members:
            if tensor._storage.array is not array or tensor._edge is not edge:
                return False
        if not self._reads.is_valid():
            return False
        for guard in self.optimizer_guards:  # noqa: SIM110  all() would cost more
            if not guard.is_valid():
                return False
        return True

    def check(self, live: list[Any], read: set[int]) -> None:
        """After a capture: UnsuitableError when it has changed what a replay cannot change.

        `read` are the ids of the arrays that it has read.
        """
        for attributes in self._attributes:
            attributes.check(read)
        self._flatten()
        self._reads.check()
        for guard in self.optimizer_guards:
            guard.check(live)

    def restore(self) -> None:
        """Put back attributes, variables, lists and dicts, and optimizers' host values."""
        for attributes in self._attributes:
            attributes.restore()
        self._reads.restore()
        for guard in self.optimizer_guards:
            guard.restore()
