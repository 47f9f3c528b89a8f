"""Who takes part where tensors are not over arrays of a device: `func.vmap`, `python_dispatch`.

Both stand above autograd and ops, whose edges ask them: an interpreter is entered as an attribute
of `interpreters`, and until then an `Interpreter`, which takes no part, is in its place. What ops
do in between is the affair of the interpreter's backend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Backend


class Interpreter:
    """What is done to tensors, and in place of formulas; a subclass defines what it takes part in.

    Methods that give a result may decline by returning NotImplemented.
    """

    #: Whether there are tensors that `lower` changes: it is asked for no others.
    lowers = False

    def lift(self, inputs: tuple) -> tuple | None:
        """Inputs of several backends (tensors or None), on one; None if nothing can be done."""
        return None

    def lower(self, tensor: Any) -> Any:
        """The tensor that programs hold in place of one over the interpreter's own arrays."""
        return tensor

    def lift_variable(self, tensor: Any) -> Any:
        """A tensor that becomes a variable, so that each sample has a derivative of its own."""
        return tensor

    def drawing_backend(self, backend: Backend) -> Any:
        """On what random numbers are made, in place of a device's backend."""
        return backend

    def lift_drawn(self, tensor: Any) -> Any:
        """A tensor in whose shape numbers are drawn."""
        return tensor

    def check_draw(self, tensor: Any) -> None:
        """RuntimeError if no numbers may be drawn into a tensor."""

    def run_per_sample(self, function: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """What a function that reads values gives, called with one sample after the other."""
        return NotImplemented

    def root_gradient(self, output: Any) -> Any:
        """The gradient of a result of one element, with which a backward pass begins."""
        return NotImplemented

    def gradient(self, node: Any, grads: list, needed: Any) -> Any:
        """The gradients of a node's inputs, in a backward pass over Tensors without recording."""
        return NotImplemented

    def update(self, step: Callable[..., Any], lists: tuple, numbers: dict[str, Any]) -> Any:
        """An optimizer's step in place; None where it was done."""
        return NotImplemented


class _Interpreters:
    """The interpreters by what they are for."""

    vmap = Interpreter()
    dispatch = Interpreter()

    def lift(self, inputs: tuple) -> tuple | None:
        """Inputs that one of the interpreters has brought to one backend, or None."""
        lifted = self.dispatch.lift(inputs)
        return self.vmap.lift(inputs) if lifted is None else lifted


interpreters = _Interpreters()
