"""What the host keeps and a replay does not run: snapshots of it, checks, and how to go back."""

from __future__ import annotations

import types
from operator import itemgetter
from typing import Any

from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.compiler.signature import SCALARS, UnstableError, UnsuitableError
from tensorflow_lite_clone.compiler.trace import Trace
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor

_slot: Any = Tensor._storage  # the descriptor that the class below hides


class _Watched(Tensor):
    """Stands in for a leaf's old gradient during a capture and notes whether anybody reads it."""

    __slots__ = ()

    @property
    def _storage(self) -> Storage:  # type: ignore[override]
        vars(self)["was_read"] = True
        return _slot.__get__(self)


def _watched(tensor: Tensor) -> Tensor:
    made = object.__new__(_Watched)
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
        self._watched: list[Any] = [None if g is None else _watched(g) for g in self._before]
        for leaf, g in zip(leaves, self._watched):
            leaf._grad = g
        self.absent: list[Tensor] = []
        self.kept: list[tuple[Tensor, Storage]] = []
        self.left: list[tuple[Tensor, Tensor | None]] = []

    def settle(self) -> None:
        """Look at what the captured step left, and take the watches away."""
        for leaf, before, watched in zip(self._leaves, self._before, self._watched):
            after = leaf._grad
            if before is None:
                self.absent.append(leaf)
                if after is not None:
                    self.left.append((leaf, after))
                continue
            if watched.was_read:
                self.kept.append((leaf, before._storage))
            if after is watched:
                leaf._grad = before
            elif after is None or _slot.__get__(after) is not before._storage:
                self.left.append((leaf, after))

    def restore(self) -> None:
        """Put back what was there before."""
        for leaf, before in zip(self._leaves, self._before):
            leaf._grad = before

    def hold(self) -> bool:
        """Whether the leaves are as a replay wants them."""
        for leaf in self.absent:
            if leaf._grad is not None:
                return False
        for leaf, storage in self.kept:
            g = leaf._grad
            if g is None or g._storage is not storage:
                return False
        return True

    def move_out(self, other: Gradients) -> None:
        """Copy what this step left, and `other` does not work on, out of the shared memory."""
        touched = {id(leaf) for leaf, _ in (*other.left, *other.kept)}
        for leaf, g in self.left:
            if g is not None and leaf._grad is g and id(leaf) not in touched:
                backend = g._storage.backend
                leaf._grad = wrap(backend.F.copy(g._storage.array), backend)


class _Holder:
    """The state of one optimizer: which tensors it keeps, and its groups' settings."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.state, self.groups = optimizer.state, optimizer.param_groups
        self.keys = {param: tuple(entries) for param, entries in optimizer.state.items()}
        self.host = [
            (entries, name, value, _host_copy(value))
            for entries in optimizer.state.values()
            for name, value in entries.items()
            if not (isinstance(value, Tensor) and value._storage.backend.graphs is not None)
        ]
        self.params = [(group, group["params"], list(group["params"])) for group in self.groups]
        self.settings = [
            (group, {name: group[name] for name in group if name != "params"})
            for group in self.groups
        ]
        self.checks: list[tuple[dict, Any, Any]] = []
        self.objects: list[tuple[dict, str, Any]] = []

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

    def hold(self) -> bool:
        optimizer = self.optimizer
        if optimizer.state is not self.state or optimizer.param_groups is not self.groups:
            return False
        if len(self.groups) != len(self.params):
            return False
        for group, params, copy in self.params:
            if group["params"] is not params or len(params) != len(copy):
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
        trial: Any = tuple([_other(entry) for entry in value])
    elif type(value) is float or type(value) is int:
        trial = _other(value)
    else:
        return False
    group[name] = trial
    try:
        return any([number.consumed and _reads_otherwise(number) for number in live])
    finally:
        group[name] = value


def _other(value: float) -> float:
    changed = 0.37 * value + 0.11  # stays between 0 and 1 for what has to lie there
    return changed if changed != value else value + 1.0


def _reads_otherwise(number: Any) -> bool:
    try:
        return bool(number.read() != float(number))
    except (ArithmeticError, ValueError):
        return True


class Surroundings:
    """Everything a function reads besides its arguments, as far as it is known, before it runs.

    These are the members and plain attributes of the modules that `trace` has seen called, the
    globals and closure variables that the function names, and the optimizers that stepped.
    """

    def __init__(self, function: Any, trace: Trace) -> None:
        self._plain: list[tuple[dict, Any, Any, tuple]] = []
        self.members: list[tuple[dict, str, Tensor, Any, Any]] = []
        self._names: list[tuple[dict, str, Any]] = []
        self._cells: list[tuple[Any, Any]] = []
        self._tensors: list[tuple[Tensor, Any]] = []
        for module in trace.modules.values():
            attributes = vars(module)
            names = tuple([n for n, value in attributes.items() if value.__class__ in SCALARS])
            getter = itemgetter(*names)  # `training` is always among them
            self._plain.append((attributes, getter, getter(attributes), names))
            for name in (*module._parameter_names, *module._buffer_names):
                tensor = attributes[name]
                if tensor is not None:
                    array = tensor._storage.array
                    self.members.append((attributes, name, tensor, array, tensor._edge))
        self._read_code(function)
        self.holders = [_Holder(optimizer) for optimizer in trace.optimizers.values()]

    def _read_code(self, function: Any) -> None:
        if isinstance(function, Module):
            function = function.forward
        owner = getattr(function, "__self__", None)
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is None:
            return
        spaces = [function.__globals__]
        if owner is not None and not isinstance(owner, Module) and hasattr(owner, "__dict__"):
            spaces.append(vars(owner))
        for space in spaces:
            for name in code.co_names:
                if name in space and not isinstance(space[name], types.ModuleType):
                    self._names.append((space, name, space[name]))
                    self._add_tensor(space[name])
        for cell in function.__closure__ or ():
            try:
                self._cells.append((cell, cell.cell_contents))
            except ValueError:  # not assigned yet
                continue
            self._add_tensor(cell.cell_contents)

    def _add_tensor(self, value: Any) -> None:
        if isinstance(value, Tensor):
            self._tensors.append((value, value._storage.array))

    def parameters(self) -> list[Tensor]:
        """All tensors whose gradients the function may touch by name: members, optimizers'."""
        found = [member[2] for member in self.members]
        for holder in self.holders:
            for _, _, params in holder.params:
                found += params
        return found

    def hold(self) -> bool:
        """Whether everything is as it was."""
        try:
            for attributes, getter, values, _ in self._plain:
                if getter(attributes) != values:
                    return False
            for attributes, name, tensor, array, edge in self.members:
                if (
                    attributes[name] is not tensor
                    or tensor._storage.array is not array
                    or tensor._edge is not edge
                ):
                    return False
        except KeyError:
            return False
        for tensor, array in self._tensors:
            if tensor._storage.array is not array:
                return False
        for space, name, value in self._names:
            now = space.get(name, self)
            if now is not value and (now.__class__ not in SCALARS or now != value):
                return False
        for cell, value in self._cells:
            try:
                now = cell.cell_contents
            except ValueError:
                return False
            if now is not value and (now.__class__ not in SCALARS or now != value):
                return False
        for holder in self.holders:  # noqa: SIM110  all() would cost more
            if not holder.hold():
                return False
        return True

    def check(self, live: list[Any]) -> None:
        """After a capture: UnsuitableError when it has changed what a replay cannot change."""
        for attributes, getter, values, _ in self._plain:
            if getter(attributes) != values:
                raise UnsuitableError("it changes attributes of a module")
        for space, name, value in self._names:
            now = space.get(name)
            if now is not value and not _same(now, value):
                raise UnsuitableError(f"it changes the variable '{name}'")
        for cell, value in self._cells:
            if cell.cell_contents is not value and not _same(cell.cell_contents, value):
                raise UnsuitableError("it changes a variable of the function around it")
        for attributes, name, tensor, _, _ in self.members:
            if attributes.get(name) is not tensor:
                raise UnsuitableError(f"it replaces the member '{name}' of a module")
        for holder in self.holders:
            holder.check(live)

    def restore(self) -> None:
        """Put back plain attributes, members, variables and optimizers' host values."""
        for attributes, _, values, names in self._plain:
            attributes.update(zip(names, values if len(names) > 1 else (values,)))
        for attributes, name, tensor, _, _ in self.members:
            attributes[name] = tensor
        for space, name, value in self._names:
            if value.__class__ in SCALARS:
                space[name] = value
        for cell, value in self._cells:
            if value.__class__ in SCALARS:
                cell.cell_contents = value
        for holder in self.holders:
            holder.restore()
