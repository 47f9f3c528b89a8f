"""Which public functions are recorded, and how a graph spells a call of one."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import FrameType
from typing import Any

from tensorflow_lite_clone.autograd import gradients
from tensorflow_lite_clone.compiler.dynamo.pending import Snapshot
from tensorflow_lite_clone.core import interception
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.tensor import Tensor

#: Methods and properties that are answered without values.
_METADATA = """
    __len__ device dim dtype element_size get_device is_complex is_conj is_contiguous is_cpu is_cuda
    is_floating_point is_inference is_leaf is_meta is_neg is_nested is_same_size is_signed is_sparse
    itemsize layout nbytes ndim ndimension nelement numel requires_grad result_type shape size
    storage_offset stride
""".split()
#: Those that are not about a tensor's values, of which one outside of all graphs has its own.
_UNRELATED = """
    _assert grad grad_fn register_hook register_post_accumulate_grad_hook requires_grad_
""".split()
_BRANCH, _METHOD = "Data-dependent branching", "Unsupported Tensor method"
#: Those that are never recorded, with the reason.
_REFUSED = {
    "__bool__": _BRANCH,
    "is_nonzero": _BRANCH,
    "item": "Unsupported Tensor.item() call with capture_scalar_outputs=False",
    "backward": "Unsupported Tensor.backward() call",
    **dict.fromkeys(("__repr__", "__str__", "__format__"), "A tensor is printed"),
    **dict.fromkeys(
        """__array__ __complex__ __contains__ __deepcopy__ __dlpack__ __float__ __index__ __int__
        __reduce_ex__ _version allclose data_ptr equal grad grad_fn is_pinned is_set_to is_shared
        numpy pin_memory register_hook register_post_accumulate_grad_hook requires_grad_ resize_
        retain_grad set_ share_memory_ storage tolist type untyped_storage""".split(),
        _METHOD,
    ),
}
#: Operators, by the methods that Python calls for them.
_OPERATORS: dict[str, Any] = {
    f"__{name.strip('_')}__": getattr(operator, name)
    for name in """abs add and_ eq floordiv ge getitem gt iadd iand ifloordiv ilshift imatmul imod
    imul invert ior ipow irshift isub itruediv ixor le lshift lt matmul mod mul ne neg or_ pos pow
    rshift setitem sub truediv xor""".split()
}
#: Those that it calls for the right operand.
_REFLECTED: dict[str, Any] = {
    f"__r{name.strip('_')}__": getattr(operator, name)
    for name in "add and_ floordiv lshift matmul mod mul or_ pow rshift sub truediv xor".split()
}
_REFLECTED["__rdiv__"] = operator.truediv

_ANSWERS: dict[str, Callable[[Snapshot], Any]] = {
    "shape": lambda snapshot: Size(snapshot.shape),
    "ndim": lambda snapshot: len(snapshot.shape),
    "dim": lambda snapshot: len(snapshot.shape),
    "dtype": lambda snapshot: snapshot.dtype,
    "device": lambda snapshot: snapshot.device,
    "requires_grad": lambda snapshot: snapshot.requires_grad,
    "is_leaf": lambda snapshot: snapshot.is_leaf,
    "is_cpu": lambda snapshot: snapshot.device.type == "cpu",
    "is_cuda": lambda snapshot: snapshot.device.type == "cuda",
    "is_meta": lambda snapshot: snapshot.device.type == "meta",
    "get_device": lambda snapshot: -1 if snapshot.device.index is None else snapshot.device.index,
}


def _found(names: Any) -> dict[Any, str]:
    """What modes see as the functions of these names, and the names."""
    found: dict[Any, str] = {}
    for name in names:
        for member in (vars(Tensor).get(name), EXPORTS["torch"].get(name)):
            if isinstance(member, property):
                found[member.__get__] = name
            elif member is not None:
                found[member] = name
    return found


@functools.cache
def kinds() -> dict[Any, str]:
    """Functions that are not simply recorded: "metadata", "unrelated", or a reason to refuse them.

    Those of the first kind need no values. Those of the second concern no graph if none of their
    arguments is pending.
    """
    found = {function: _REFUSED[name] for function, name in _found(_REFUSED).items()}
    found.update(dict.fromkeys((gradients.backward, gradients.grad), "Unsupported backward pass"))
    found.update(dict.fromkeys(_found(_UNRELATED), "unrelated"))
    for name in ("grad", "requires_grad"):
        member = vars(Tensor)[name]
        found[member.__set__] = found[member.__delete__] = "unrelated"
    found.update(dict.fromkeys(metadata(), "metadata"))
    return found


@functools.cache
def metadata() -> dict[Any, str]:
    """Functions that need no values, and their names."""
    return _found(_METADATA)


@functools.cache
def _properties() -> dict[Any, str]:
    """What modes see as the getters of properties, and their names."""
    return {
        member.__get__: name
        for name, member in vars(Tensor).items()
        if isinstance(member, property)
    }


def answer(
    function: Any, look: Callable[[Tensor], Snapshot | None], args: tuple, kwargs: dict[str, Any]
) -> Any:
    """What one of the functions that need no values says of tensors that ``look(tensor)``s so.

    That is None for those that have values.
    """
    known = _ANSWERS.get(metadata()[function])
    if known is not None:
        snapshot = look(args[0])
        if snapshot is not None:
            return known(snapshot)
    shown: list[Any] = []
    for each in args:
        snapshot = look(each) if isinstance(each, Tensor) else None
        shown.append(each if snapshot is None else snapshot.meta())
    return function(*shown, **kwargs)


@functools.lru_cache(maxsize=256)
def applied(kind: Any) -> Callable[..., Any]:
    """The call of a `Function` of the program, as a function that a graph can name."""

    def autograd_function_apply(*args: Any) -> Any:
        return kind.apply(*args)

    autograd_function_apply.__module__ = kind.__module__
    return autograd_function_apply


def allow_in_graph(fn: Any) -> Any:
    """Let graphs hold calls of a function as they are, in place of what it does; also a decorator.

    The function is called with tensors on the device ``meta`` when a call is recorded.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    interception.add(fn, f"{fn.__module__}.{fn.__name__}")
    return fn


def disallow_in_graph(fn: Any) -> Any:
    """Let graphs end before calls of a public function; also a decorator."""
    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("disallow_in_graph expects a callable")
    kinds()[fn] = "a function that is disallowed in graphs is called"
    return fn


def spelling(
    function: Any, frame: FrameType, args: tuple, kwargs: dict[str, Any]
) -> tuple[str, Any, tuple] | None:
    """The kind of node that a call is, its target and its arguments; None if it is none.

    `frame` is that of the function, which Python has called by a name of its own.
    """
    name = frame.f_code.co_name
    kind = getattr(function, "__name__", "")
    if kind in ("__set__", "__delete__"):
        return None
    if kind == "__get__":
        return "call_function", getattr, (args[0], _properties()[function])
    if name in _OPERATORS:
        return "call_function", _OPERATORS[name], args
    if name in _REFLECTED:
        return "call_function", _REFLECTED[name], args[::-1]
    if vars(Tensor).get(kind) is function:
        return "call_method", kind, args
    return "call_function", function, args
