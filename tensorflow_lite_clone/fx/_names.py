"""What PyTorch calls functions and types of this package, in the text of graphs."""

from __future__ import annotations

import builtins
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone._bind.overridable import IN_PYTHON, NOT_IN_PYTHON
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.interception import interceptors
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.ops.namespaces import OpOverloadPacket
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.tensor.parameter import Parameter

PACKAGE = __name__.partition(".")[0]
_VISION = f"{PACKAGE}.vision"
#: Classes that are elsewhere than where PyTorch's are.
_TYPES = {
    Tensor: "torch.Tensor",
    Size: "torch.Size",
    DType: "torch.dtype",
    Device: "torch.device",
    Parameter: "torch.nn.parameter.Parameter",
}


def torch_path(module: str) -> str:
    """The name of a module where PyTorch has it: `torch.nn` for `tensorflow_lite_clone.nn`."""
    if module.startswith(_VISION):
        return "torchvision" + module.removeprefix(_VISION)
    if module == PACKAGE or module.startswith(PACKAGE + "."):
        return "torch" + module.removeprefix(PACKAGE)
    return module


#: Where PyTorch has functions of its face: place of the face -> module, and how names begin.
_COMPILED = {
    "torch.linalg.": ("torch._C._linalg.", "linalg_"),
    "torch.fft.": ("torch._C._fft.", "fft_"),
    "torch.special.": ("torch._C._special.", "special_"),
}
_FUNCTIONAL = IN_PYTHON | frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod chain_matmul "
    "einsum".split()
)
_ELSEWHERE = {
    "torch.nn.functional.logsigmoid": "torch._C._nn.log_sigmoid",
    "torch.nn.functional.threshold": "torch.nn.functional._threshold",
}


def _home(name: str) -> str:
    """Where PyTorch has a function of its face."""
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    place, _, own = name.rpartition(".")
    if place == "torch.nn.functional":
        return f"torch._C._nn.{own}" if own in NOT_IN_PYTHON else name
    if place == "torch" and own in _FUNCTIONAL:
        return f"torch.functional.{own}"
    module, beginning = _COMPILED.get(place + ".", (place + ".", ""))
    return module + beginning + own


@functools.cache
def _names_of_functions() -> dict[Any, str]:
    """Functions that can be overridden, and what PyTorch calls them."""
    names: dict[Any, str] = {}
    for interceptor in interceptors():
        names.setdefault(interceptor.function, _home(interceptor.name))
    return names


def torch_name(value: Any) -> str | None:
    """The full name of a function or class of this package in PyTorch; None for all others."""
    try:
        known = _TYPES.get(value) or _names_of_functions().get(value)
    except TypeError:  # not hashable
        return None
    if known is not None:
        return known
    if isinstance(value, OpOverloadPacket):
        return f"torch.ops.{value}"
    module = getattr(value, "__module__", None) or ""
    path = torch_path(module).replace("torch._ops", "torch.ops")
    if path == "torch" or path.startswith("torch."):
        name = getattr(value, "__name__", None)
        return None if name is None else f"{path}.{name}"
    return None


def qualified_name(func: Callable[..., Any]) -> str:
    """The full name of a function: ``torch.relu``, ``math.sqrt``, ``len``, ``package.f``.

    A lambda is called what it is assigned to in its source; RuntimeError where that is not found.
    """
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    known = torch_name(func)
    if known is not None:
        return known
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    return f"{func.__module__}.{name}"


def type_name(kind: Any) -> str:
    """A type as annotations write it: ``int``, ``torch.Tensor``, ``list[int]``."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return torch_name(kind) or f"{kind.__module__}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    if isinstance(kind, types.FunctionType):
        return kind.__name__
    return repr(kind).replace(f"{Tensor.__module__}.{Tensor.__qualname__}", "torch.Tensor")


def function_name(func: Any) -> str:
    """The ``__name__`` that a function has in PyTorch."""
    known = _names_of_functions().get(func) if isinstance(func, types.FunctionType) else None
    return func.__name__ if known is None else known.rpartition(".")[2]
