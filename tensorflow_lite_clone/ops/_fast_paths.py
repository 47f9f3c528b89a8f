"""Public functions of one tensor whose usual calls run the op in the function itself.

`reduction` and `along_dim` put a text in front of a function, from which `forwarder` makes one with
the same parameters: what the text does not serve is done as if it were not there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.apply import NAMES
from tensorflow_lite_clone.autograd.call_template import ROW_MAJOR, call_text
from tensorflow_lite_clone.core.forwarding import forwarder, parameters_of
from tensorflow_lite_clone.core.signature import checked
from tensorflow_lite_clone.core.templates import fill
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.reduce._arguments import axes_of
from tensorflow_lite_clone.tensor import Parameter

#: Serves tensors with elements, of a class of ours, that autocast does not cast.
_USUAL = """
kind = input.__class__
if (kind is Tensor or kind is Parameter) and {usual}:
    input_storage = input._storage
    input_array = input_storage.physical
    shape = input_array.shape
    if (
        input_array.size
        and input_array.dtype.kind not in refuses
        {fits}
        and not autocast
        and input_storage.__class__ is not LazyStorage
    ):
        backend = input_storage.backend
        axis = {axis}
        {call}
"""


def reduction(op: type[Op], refuses: str, *, whole: bool = False) -> Any:
    """Serve the usual calls of a reduction, ``(input, dim, keepdim)``, without detours.

    All others go to the decorated function: those with more arguments, of tensors without elements
    or of a kind in `refuses`, and with `whole` those with a `dim`.
    """
    usual = "keepdim.__class__ is bool" + " and dim is None" * whole
    parameters = {"keepdims": "keepdim", "shape": "shape"}
    return partial(_usual_calls, op, refuses, usual, "", "axes_of(dim, len(shape))", parameters)


def along_dim(op: type[Op], refuses: str) -> Any:
    """Serve the usual calls, ``(input, dim)``, of an op along one dim without detours.

    All others go to the decorated function: with more arguments, of tensors without elements or
    dimensions, or of a kind in `refuses`.
    """
    fits = "and -len(shape) <= dim < len(shape)"
    axis = "dim if dim >= 0 else dim + len(shape)"
    return partial(_usual_calls, op, refuses, "dim.__class__ is int", fits, axis, {})


def _usual_calls(
    op: type[Op],
    refuses: str,
    usual: str,
    fits: str,
    axis: str,
    parameters: dict[str, str],
    function: Callable[..., Any],
) -> Any:
    """`function` behind the text for usual calls: those with `input`, `dim` and `keepdim` alone."""
    general = autocasts(function.__name__)(checked(function))

    def body() -> str:
        own = parameters_of(general)
        defaults = dict(zip(own.positional, own.defaults)) | own.keyword_defaults
        others = [
            f"{name} {'is' if value is None else '=='} {value}"
            for name, value in defaults.items()
            if name not in ("input", "dim", "keepdim")
        ]
        call = call_text(
            ("input",), ROW_MAJOR, parameters={"axis": "axis"} | parameters, calls="calls"
        )
        text = fill(
            _USUAL,
            usual=" and ".join([usual, "not rest", "not more", *others]),
            fits=fits,
            axis=axis,
            call=call,
        )
        return text.replace("{", "{{").replace("}", "}}") + "\n{inner}"

    names = dict(op=op, calls=op.calls, refuses=refuses, Parameter=Parameter)
    names |= dict(autocast=autocast, axes_of=axes_of)
    return forwarder(general, body, lambda _: NAMES | names)
