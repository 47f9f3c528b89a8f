"""A tensor's side of the graph: ``requires_grad``, ``grad``, ``detach``, hooks."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_node
from tensorflow_lite_clone.autograd.inplace import rebuild
from tensorflow_lite_clone.autograd.node import Handle, Leaf, ListHandle
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor


def _get_requires_grad(self: Tensor) -> bool:
    """Whether gradients are computed for this tensor."""
    return current_node(self) is not None


@public("method")
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether operations on this tensor are to be recorded; returns the tensor.

    Raises RuntimeError for integer tensors and when switching off a non-leaf.
    """
    node = current_node(self)
    if node is None:
        if requires_grad:
            if self.dtype.kind not in "fc":
                raise RuntimeError(
                    "only Tensors of floating point dtype can require gradients"
                )
            self._edge = (Leaf(self), 0)
    elif not requires_grad:
        if not isinstance(node, Leaf):
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        self._edge = None
    return self


def _set_requires_grad(self: Tensor, requires_grad: bool) -> None:
    requires_grad_(self, requires_grad)


def _is_leaf(self: Tensor) -> bool:
    """Whether the tensor was not made by a recorded operation."""
    node = current_node(self)
    return node is None or isinstance(node, Leaf)


def _grad_fn(self: Tensor) -> Any:
    """The node that made this tensor; None for leaves."""
    node = current_node(self)
    return None if isinstance(node, Leaf) else node


def _get_grad(self: Tensor) -> Tensor | None:
    """The gradient that backward passes accumulated; None before the first."""
    return self._grad


def _set_grad(self: Tensor, grad: Tensor | None) -> None:
    if grad is None:
        self._grad = None
        return
    if not isinstance(grad, Tensor):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {type(grad)}"
        )
    if grad is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.dtype is not self.dtype:
        raise RuntimeError(
            f"assigned grad has data of a different type: expected {self.dtype}, got {grad.dtype}"
        )
    if grad._storage.backend is not self._storage.backend:
        raise RuntimeError(
            f"assigned grad has data located on a different device: expected {self.device}, got "
            f"{grad.device}"
        )
    if grad.shape != self.shape:
        raise RuntimeError(
            f"assigned grad has data of a different size: expected {list(self.shape)}, got "
            f"{list(grad.shape)}"
        )
    self._grad = grad


def _delete_grad(self: Tensor) -> None:
    self._grad = None


@public("torch", "method")
def detach(input: Tensor) -> Tensor:
    """A tensor over the same memory and version counter, outside of the graph."""
    return new_tensor(input._storage)


@public("torch", "method")
def detach_(input: Tensor) -> Tensor:
    """Take the tensor itself out of the graph, as a leaf that requires no gradient."""
    if input._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets."
        )
    input._edge = None
    return input


def _get_data(self: Tensor) -> Tensor:
    """The values outside of the graph; writes through it are not counted by this tensor."""
    storage = self._storage
    return new_tensor(Storage(storage.array, storage.backend))


def _set_data(self: Tensor, data: Tensor) -> None:
    if not isinstance(data, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
    self._storage = Storage(data._storage.array, data._storage.backend)
    if self._edge is not None and isinstance(self._edge[0], Leaf):
        self._edge[0].adopt(self)


@public("method")
def set_(self: Tensor, source: Tensor) -> Tensor:
    """Make this tensor share `source`'s memory, shape and dtype."""
    rebuild(self, new_tensor(source._storage))
    return self


@public("method")
def retain_grad(self: Tensor) -> None:
    """Let backward passes fill ``.grad`` of this non-leaf tensor too."""
    node = current_node(self)
    if node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if isinstance(node, Leaf) or self._retains_grad:
        return
    self._retains_grad = True
    reference, index = weakref.ref(self), self._edge[1]  # type: ignore[index]  # has a node

    def keep(grads: list) -> None:
        tensor = reference()
        g = grads[index]
        if tensor is None or g is None:
            return
        if tensor._grad is None:
            tensor._grad = g if g._edge is not None else g.clone()
        else:
            tensor._grad = tensor._grad + g

    keep.last = True  # type: ignore[attr-defined]  # after the tensor's own hooks
    _pre_hooks(node).append(keep)


def _pre_hooks(node: Any) -> list:
    if node.pre_hooks is None:
        node.pre_hooks = []
    return node.pre_hooks


@public("method")
def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> ListHandle:
    """Call ``hook(grad)`` when this tensor's gradient is computed; it may return another one."""
    node = current_node(self)
    if node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    index = self._edge[1]  # type: ignore[index]  # has a node

    def edit(grads: list) -> None:
        if grads[index] is not None:
            replaced = hook(grads[index])
            if replaced is not None:
                if not isinstance(replaced, Tensor):
                    raise TypeError(
                        f"expected Variable, but hook returned '{type(replaced).__name__}'"
                    )
                if replaced.shape != grads[index].shape:
                    raise RuntimeError(
                        f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value"
                    )
                grads[index] = replaced

    hooks = _pre_hooks(node)
    handle = ListHandle(hooks, edit)
    hooks.sort(key=lambda entry: getattr(entry, "last", False))
    return handle


@public("method")
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> Handle:
    """Call ``hook(tensor)`` after a backward pass has accumulated into this leaf's ``.grad``."""
    node = current_node(self)
    if not isinstance(node, Leaf):
        if node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._post_accumulate_hooks is None:
        self._post_accumulate_hooks = {}
    return Handle(self._post_accumulate_hooks, hook)


@public("method")
def _is_view(self: Tensor) -> bool:
    return self._base is not None


for _name, _accessor in {
    "requires_grad": property(_get_requires_grad, _set_requires_grad),
    "is_leaf": property(_is_leaf),
    "grad_fn": property(_grad_fn),
    "grad": property(_get_grad, _set_grad, _delete_grad),
    "data": property(_get_data, _set_data),
    "output_nr": property(lambda self: 0 if self._edge is None else self._edge[1]),
    "retains_grad": property(lambda self: self._retains_grad),
}.items():
    export(_accessor, "property", name=_name)
