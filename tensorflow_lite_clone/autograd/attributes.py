"""A tensor's side of the graph: ``requires_grad``, ``grad``, ``detach``, hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import current_node
from tensorflow_lite_clone.autograd.hooks import Handle, hooks_at, retain
from tensorflow_lite_clone.autograd.node import Leaf
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.interception import try_overrides
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor

_ONLY_LEAVES = "you can only change requires_grad flags of leaf variables."
_DETACH = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation "
    "use var_no_grad = var.detach()."
)


def _get_requires_grad(self: Tensor) -> bool:
    """Whether gradients are computed for this tensor."""
    return current_node(self) is not None


@public("method", flat=True)
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether operations on this tensor are to be recorded; returns the tensor.

    Raises RuntimeError for integer tensors and when switching off a non-leaf.
    """
    node = current_node(self)
    if node is None:
        if requires_grad:
            if self.dtype.kind not in "fc":
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            leaf = vars(self).pop("_frozen", None)  # with the hooks it had
            if leaf is None:
                leaf = Leaf(self)
            else:
                leaf.adopt(self)
            self._edge = (leaf, 0)
    elif not requires_grad:
        if not isinstance(node, Leaf):
            raise RuntimeError(_ONLY_LEAVES + _DETACH)
        vars(self)["_frozen"] = node
        self._edge = None
    return self


def _set_requires_grad(self: Tensor, requires_grad: bool) -> None:
    node = current_node(self)
    if node is not None and not isinstance(node, Leaf):
        raise RuntimeError(_ONLY_LEAVES + ("" if requires_grad else _DETACH))
    if requires_grad and self.dtype.kind not in "fc":
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
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
    g = self._grad
    if g is None and self._edge is not None and not self._retains_grad:
        node = current_node(self)
        if node is not None and type(node) is not Leaf:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). If you indeed "
                "want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() "
                "on the non-leaf Tensor.",
                stacklevel=level_outside(),
            )
    return g


def _set_grad(self: Tensor, grad: Tensor | None) -> None:
    if grad is None:
        self._grad = None
        return
    if not isinstance(grad, Tensor):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {type(grad)}"
        )
    elements = grad._values() if grad.is_sparse else grad
    have, wanted = elements._storage, self._storage
    if (
        have.backend is wanted.backend
        and have.physical.dtype is wanted.physical.dtype
        and grad.shape == wanted.physical.shape
        and grad is not self
    ):
        self._grad = grad
        return
    if grad is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if grad.dtype is not self.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad.dtype}' to a tensor with dtype "
            f"'{self.dtype}'. The gradient must match the tensor's dtype."
        )
    if have.backend is not wanted.backend:
        raise RuntimeError(
            f"assigned grad has data located on a different device: expected {self.device}, got "
            f"{grad.device}"
        )
    if grad.shape != self.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size "
            f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same "
            "size"
        )
    self._grad = grad


def _delete_grad(self: Tensor) -> None:
    self._grad = None


@public("torch", "method", flat=True)
def detach(input: Tensor) -> Tensor:
    """A tensor over the same memory and version counter, outside of the graph."""
    try:
        return new_tensor(input._storage)
    except AttributeError:
        result: Tensor = try_overrides(detach, input)
        if result is NotImplemented:
            raise
        return result


@public("torch", "method", flat=True)
def detach_(input: Tensor) -> Tensor:
    """Take the tensor itself out of the graph, as a leaf that requires no gradient."""
    if input._view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using "
            "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
            "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
            "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
            "function in torch/optim/optimizer.py as the solution."
        )
    input._edge = None
    return input


def _get_base(self: Tensor) -> Tensor | None:
    """The tensor that this one is a view of, None for one that owns its memory."""
    view = self._view
    return None if view is None else view.base


def _get_data(self: Tensor) -> Tensor:
    """The values outside of the graph; writes through it are not counted by this tensor."""
    storage = self._storage
    return new_tensor(Storage(storage.array, storage.backend))


@public("torch")
def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Whether `input` may become ``from_`` by ``input.data = from_``."""
    return input.is_meta is from_.is_meta


def _set_data(self: Tensor, data: Tensor) -> None:
    if not isinstance(data, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
    source = data._storage
    if source.array is self._storage.array:  # ``x.data += 1``: the write has happened
        return
    if not _has_compatible_shallow_copy_type(self, data):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
            f"incompatible tensor type: they are on {self.device} and {data.device}."
        )
    version = self._storage.current_version()
    self._storage = Storage(source.array, source.backend)
    self._storage.version = version
    if self._edge is not None and isinstance(self._edge[0], Leaf):
        self._edge[0].adopt(self)


@public("method")
def retain_grad(self: Tensor) -> None:
    """Let backward passes fill ``.grad`` of this non-leaf tensor too."""
    node = current_node(self)
    if node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if isinstance(node, Leaf) or self._retains_grad:
        return
    self._retains_grad = True
    retain(self, self._edge)


@public("method")
def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> Handle:
    """Call ``hook(grad)`` when this tensor's gradient is computed; it may return another one.

    Where other outputs of the same operation have gradients and this one has none, the hook gets
    None.
    """
    node = current_node(self)
    if node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return Handle(hooks_at(node).tensor, (self._edge[1], hook))  # type: ignore[index]


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
    return self._view is not None


for _name, _accessor in {
    "requires_grad": property(_get_requires_grad, _set_requires_grad),
    "is_leaf": property(_is_leaf),
    "grad_fn": property(_grad_fn),
    "grad": property(_get_grad, _set_grad, _delete_grad),
    "data": property(_get_data, _set_data),
    "_base": property(_get_base),
    "output_nr": property(lambda self: 0 if self._edge is None else self._edge[1]),
    "retains_grad": property(lambda self: self._retains_grad),
}.items():
    export(_accessor, "property", name=_name)
