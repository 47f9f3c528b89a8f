"""Tensor: storage + graph pointers. Its mathematics is bound to it from `ops` by `_bind`."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone._tensor_str import tensor_format, tensor_repr
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import (
    SUBCLASSES_DISABLED,
    converted,
    disabling,
    plain_types,
    unconverted,
)
from tensorflow_lite_clone.storage import Storage

_tuple = tuple.__new__


class View:
    """What a tensor that views another one remembers, so that in-place writes keep the graph.

    `last` is the view op that made the tensor, (op, parameters, output number or None), behind
    the `last` of the view that it was taken of, or None where that is `base` (itself no view): so
    a view of a view adds one link, however many lead there. `version` is the memory's version for
    which the tensor's edge is right.
    `restriction` says why a recorded write is refused: "multiple" for one of several views made
    by one call (split, unbind), "no_grad" for a view made while nothing was recorded, "function"
    for an input that a `Function` returned unchanged, or None.
    """

    __slots__ = ("base", "last", "restriction", "version")

    def __init__(
        self, base: Tensor, last: tuple | None, version: int, restriction: str | None
    ) -> None:
        self.base = base
        self.last = last
        self.version = version
        self.restriction = restriction

    @property
    def chain(self) -> tuple:
        """The view ops that lead from `base` to the tensor, the first one first."""
        links: list[tuple] = []
        link = self.last
        while link is not None:
            link, step = link
            links.append(step)
        return tuple(links[::-1])


class Tensor:
    """An n-dimensional array with a place in the autograd graph, as ``torch.Tensor``.

    `_edge` is its place in the graph: the node that made it (a `Leaf` for a leaf that requires a
    gradient) and which of the node's outputs it is, or None when no gradient is wanted; `_view`
    is a `View` or None.
    """

    __slots__ = ("__dict__", "__weakref__", "_edge", "_storage", "_view")

    _storage: Storage
    _edge: tuple[Any, int] | None
    _view: View | None

    # Rarely set, so class-level defaults instead of slots filled in every construction.
    _grad: Tensor | None = None
    _backward_hooks: Any = None
    _post_accumulate_hooks: Any = None
    _retains_grad = False
    name: str | None = None
    __array_priority__ = 1000  # NumPy leaves mixed arithmetic to us

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        from_arguments = cls._legacy_constructor
        return from_arguments(cls, *args, **kwargs)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What `func` gives, its tensors as instances of this subclass.

        It is asked for calls that have instances of a subclass among their arguments, and answers
        NotImplemented where there is one of a class that this one does not derive from. Classes
        that override it begin with ``super().__torch_function__(func, types, args, kwargs)``.
        """
        if not all([issubclass(cls, kind) for kind in types]):
            return NotImplemented
        with disabling(SUBCLASSES_DISABLED):
            result = func(*args, **(kwargs or {}))
            if cls is Tensor or func in unconverted:
                return result
            return converted(result, cls, Tensor)

    @property
    def shape(self) -> Size:
        """The size of every dimension."""
        return _tuple(Size, self._storage.physical.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._storage.physical.ndim

    @property
    def dtype(self) -> DType:
        """The element type."""
        storage = self._storage
        return storage.backend.dtypes[storage.physical.dtype]

    @property
    def device(self) -> Device:
        """The device that holds the elements."""
        return self._storage.backend.device

    @property
    def is_cuda(self) -> bool:
        """Whether the tensor lives on a CUDA device."""
        return self._storage.backend.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        """Whether the tensor lives in host memory."""
        return self._storage.backend.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        """Whether the tensor is on the device ``meta``: it has no elements."""
        return self._storage.backend.device.type == "meta"

    @property
    def _version(self) -> int:
        return self._storage.current_version()

    @property
    def _cdata(self) -> int:
        """A number that no other tensor has; pyro compares them."""
        return id(self)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        storage = self._storage
        if storage.backend.batched:
            return storage.backend.text_of(storage.array)
        return tensor_repr(self)

    def __format__(self, spec: str) -> str:
        return tensor_format(self, spec)


plain_types.add(Tensor)


_new = object.__new__


def new_tensor(storage: Storage) -> Tensor:
    """A tensor over `storage`, outside of any graph."""
    tensor = _new(Tensor)
    tensor._storage = storage
    tensor._edge = None
    tensor._view = None
    return tensor
