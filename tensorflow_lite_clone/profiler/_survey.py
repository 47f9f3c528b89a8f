"""What one run of a model shows beside time: shapes, devices, memory, copies, operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from math import prod
from typing import Any
from weakref import WeakSet

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.function_node import SavedTensor
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.profiler._part import Part
from tensorflow_lite_clone.profiler._watch import Watch
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.trace import Observer
from tensorflow_lite_clone.utils._op_costs import flops_of


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors in tuples, lists and mappings, or in the attributes of other objects in them."""
    found: list[Tensor] = []
    seen: set[int] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, Mapping):
                stack += reversed(list(value.values()))
            elif isinstance(value, (list, tuple, set)):
                stack += reversed(list(value))
            elif hasattr(value, "__dataclass_fields__"):
                stack += reversed(list(vars(value).values()))
    return found


class Survey(Observer):
    """Context in which one run of a watched model fills the facts of its parts."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._calls = 0
        model = watch.root.module
        fixed = [memory_of(t) for t in chain(model.parameters(), model.buffers())]
        #: The memory that was seen already, so that none counts twice.
        self._given: WeakSet[Storage] = WeakSet(fixed)
        self._kept: WeakSet[Storage] = WeakSet(fixed)

    def registrations(self) -> Iterable[Any]:
        """Follow calls of the model and its modules."""
        parts = [self._watch.root, *self._watch.parts.values()]
        return chain.from_iterable(map(self._hooks_of, parts))

    def _hooks_of(self, part: Part) -> list[Any]:
        def called(module: Any, args: tuple) -> None:
            if self._watch.in_forward():
                part.calls += 1
                if part.order is None:
                    part.order = self._calls
                self._calls += 1

        def done(module: Any, args: tuple, kwargs: dict, output: Any) -> None:
            if self._watch.in_forward():
                self._done(part, tensors_in((args, kwargs)), tensors_in(output))

        return [
            part.module.register_forward_pre_hook(called),
            part.module.register_forward_hook(done, with_kwargs=True),
        ]

    def inputs(self, tensors: Iterable[Tensor]) -> None:
        """These tensors are the caller's, whose memory is not the model's."""
        for tensor in tensors:
            self._given.add(memory_of(tensor))
            self._kept.add(memory_of(tensor))

    def _done(self, part: Part, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        part.takes |= {tensor.device: None for tensor in inputs}
        part.gives |= {tensor.device: None for tensor in outputs}
        if part.calls == 1:
            part.shape = [tuple(tensor.shape) for tensor in outputs]
        for tensor in outputs:
            part.memory += self._new(tensor._storage, self._given)

    def on_node(self, node: Any) -> None:
        """A node of the graph was made: what it saved belongs to the module that runs."""
        if not self._watch.in_forward():
            return
        for value in node.saved or ():
            storage = value.storage if isinstance(value, SavedTensor) else value
            if isinstance(storage, Storage):  # and not what user's hooks made of it
                self._watch.stack[-1].saved += self._new(storage, self._kept)

    def on_wait(self, what: str, size: int) -> None:
        """Bytes are copied between the host and a device, if `size` is not 0."""
        if size and self._watch.is_here():
            self._watch.stack[-1].copies += 1
            self._watch.stack[-1].copied += size

    def on_op(self, op: Any, backend: Any, arrays: tuple, parameters: Any, result: Any) -> None:
        """Count what a product costs in the forward pass."""
        if op.cost.product and self._watch.in_forward():
            self._watch.stack[-1].flops += flops_of(op, arrays, parameters, result)

    def _new(self, storage: Storage, seen: WeakSet[Storage]) -> int:
        """Bytes of the memory that `storage` is (part of), 0 if it was seen."""
        root = storage.root or storage
        if root in seen:
            return 0
        seen.add(root)
        return prod(root.array.shape) * root.backend.dtypes[root.array.dtype].itemsize


def memory_of(tensor: Tensor) -> Storage:
    """The storage that has a tensor's memory, also if the tensor is a view."""
    return tensor._storage.root or tensor._storage


def choose_gpus(parts: list[Part]) -> set[Device]:
    """Let parts that have to do with a GPU be timed there, too; gives these GPUs.

    If that is one GPU for all parts that have seen a tensor, all are timed there.
    """
    for part in parts:
        part.gpu = _gpu_of(part)
    gpus = {part.gpu for part in parts if part.takes or part.gives}
    if len(gpus) == 1:
        for part in parts:
            (part.gpu,) = gpus
    return {part.gpu for part in parts if part.gpu is not None}


def _gpu_of(part: Part) -> Device | None:
    """The first GPU on which a part's outputs, inputs or own parameters are."""
    module = part.module
    own = [] if module is None else [*module.parameters(False), *module.buffers(False)]
    for device in chain(part.gives, part.takes, [tensor.device for tensor in own]):
        if backends.load(device).events is not None:
            return device
    return None
