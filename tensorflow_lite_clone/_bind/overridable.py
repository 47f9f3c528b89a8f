"""Which functions can be overridden by ``__torch_function__``, and what they are called."""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from tensorflow_lite_clone.core.forwarding import MISSING, Parameters, inner_parameters
from tensorflow_lite_clone.core.interception import Passed, add
from tensorflow_lite_clone.core.public import EXPORTS, SHARED
from tensorflow_lite_clone.core.signature import classes
from tensorflow_lite_clone.core.torch_function import (
    overloaded_arguments,
    unconverted,
)

#: Places of the face, and what PyTorch calls them.
PLACES = {
    "torch": "torch",
    "functional": "torch.nn.functional",
    "linalg": "torch.linalg",
    "fft": "torch.fft",
    "special": "torch.special",
}

#: Functions of the face that ask nobody: they are about no tensor, or make one of other data.
NEVER = frozenset(
    """
    are_deterministic_algorithms_enabled broadcast_shapes compiled_with_cxx11_abi cond fill
    from_dlpack from_file from_numpy frombuffer get_deterministic_debug_mode
    get_float32_matmul_precision get_num_interop_threads get_num_threads get_rng_state
    init_num_threads initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled
    is_deterministic_algorithms_warn_only_enabled is_storage is_tensor is_vulkan_available
    is_warn_always_enabled manual_seed range seed set_anomaly_enabled set_default_tensor_type
    set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
    set_num_interop_threads set_num_threads set_rng_state set_warn_always to_dlpack typename
    use_deterministic_algorithms while_loop
    """.split()
)
#: Methods that ask nobody: they say what a tensor is to Python, or call others that ask.
NEVER_METHODS = frozenset(
    """
    __array_namespace__ __class_getitem__ __copy__ __delitem__ __hash__ __init_subclass__
    __iter__ __new__ __torch_function__ _legacy_constructor _make_subclass as_subclass render
    """.split()
)
#: Functions that ask modes alone: they make a tensor of data, which may be tensors.
MODES_ALONE = frozenset("as_tensor asarray tensor".split())
#: Functions that take tensors for numbers, and ask modes and what is neither.
DUCKS_ALONE = frozenset(
    """
    arange bartlett_window blackman_window eye hamming_window hann_window kaiser_window randint
    randperm scalar_tensor tril_indices triu_indices
    """.split()
)
#: Functions that PyTorch has in Python: modes and types get all arguments of these, defaults too.
IN_PYTHON = frozenset(
    """
    cdist einsum lobpcg lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique
    unique_consecutive unravel_index
    """.split()
)
#: Functions of `torch.nn.functional` that it has not, beside those that `torch` has as well.
NOT_IN_PYTHON = frozenset(
    """
    avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot
    scaled_dot_product_attention softplus softshrink
    """.split()
)
#: The parameters of PyTorch's functions where those here have others; before a star by position.
PARAMETERS = {
    "l1_loss": "input target size_average reduce reduction",
    "layer_norm": "input normalized_shape weight bias eps",
    "log_softmax": "input dim _stacklevel dtype",
    "softmax": "input dim _stacklevel dtype",
    "softmin": "input dim _stacklevel dtype",
    "split": "tensor split_size_or_sections * dim",
    "tensordot": "a b dims out",
    "unravel_index": "indices * shape",
    "threshold": "input threshold value inplace",
}
#: Functions of `torch.nn.functional` that call the method of their name.
METHODS = frozenset({"sigmoid", "tanh"})

#: Operators that PyTorch knows as the method of another name, for modes and types to compare with.
OPERATORS = {
    "__abs__": "abs", "__add__": "add", "__div__": "div", "__iadd__": "add_", "__idiv__": "div_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_", "__imul__": "mul_",
    "__ipow__": "pow_", "__isub__": "sub_", "__itruediv__": "div_", "__matmul__": "matmul",
    "__mod__": "remainder", "__mul__": "mul", "__pow__": "pow", "__radd__": "add",
    "__rand__": "bitwise_and", "__rmul__": "mul", "__ror__": "bitwise_or",
    "__rtruediv__": "__rdiv__", "__rxor__": "bitwise_xor", "__sub__": "sub",
    "__truediv__": "div", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge",
    "__ne__": "ne", "__neg__": "neg", "__pos__": "positive",
}  # fmt: skip
#: Operators beside these: a TypeError lets Python ask the other operand.
OTHER_OPERATORS = frozenset(
    """
    __and__ __eq__ __floordiv__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__
    __or__ __rdiv__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ __rshift__
    __rsub__ __xor__
    """.split()
)


@functools.cache
def builtins() -> frozenset[FunctionType]:
    """The functions of the face that are builtins in PyTorch, not written in Python."""
    return frozenset(
        function
        for place in PLACES
        for name, function in EXPORTS[place].items()
        if isinstance(function, FunctionType)
        if not (place == "torch" and name in IN_PYTHON)
        if not (place == "functional" and name not in SHARED | NOT_IN_PYTHON)
    )


def overloaded_ducks(args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """`overloaded_arguments` that are no tensors."""
    tensor = classes["Tensor"]
    return [value for value in overloaded_arguments(args, kwargs) if not isinstance(value, tensor)]


def add_all(members: dict[str, Any]) -> None:
    """Let what `public` collected be intercepted, and the `members` of the class of tensors."""
    unconverted.update([members[name].__get__ for name in ("_base", "grad")])
    for place, called in PLACES.items():
        for name, function in EXPORTS[place].items():
            if place != "torch":
                reported, passed = None, None
                if place == "functional" and name in METHODS:
                    reported = members[name]
                elif place == "functional" and name not in SHARED | NOT_IN_PYTHON:
                    passed = _passed(name)
                add(function, f"{called}.{name}", reported, passed=passed)
            elif name not in NEVER:
                asked = overloaded_ducks if name in DUCKS_ALONE else overloaded_arguments
                add(
                    function,
                    f"{called}.{name}",
                    asked=None if name in MODES_ALONE else asked,
                    passed=_passed(name) if name in IN_PYTHON else None,
                )
    for name, member in members.items():
        called = f"torch.Tensor.{name}"
        if isinstance(member, property):
            add(member.fget, f"{called}.__get__", member.__get__)
            add(member.fset, f"{called}.__set__", member.__set__)
            add(member.fdel, f"{called}.__delete__", member.__delete__)
        elif name not in NEVER_METHODS:
            reported = members[OPERATORS.get(name, name)]
            operator = name in OPERATORS or name in OTHER_OPERATORS
            add(member, called, reported, operator=operator)


def _passed(name: str) -> Passed:
    """All arguments of a function, by name where they have defaults; operands of einsum apart."""
    names = tuple(PARAMETERS.get(name, "").split())

    def bound(function: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        return _bound(inner_parameters(function), args, kwargs, names)

    return one_by_one if name == "einsum" else bound


def _bound(
    own: Parameters, args: tuple, kwargs: dict[str, Any], names: tuple[str, ...]
) -> tuple[tuple, dict[str, Any]]:
    """All arguments of a call: those without defaults by position, others by keyword.

    `names` are the parameters that count, in order, without any all; those before a star, if
    there is one, are by position. Arguments that do not fit are given back as they are.
    """
    defaults = own.all_defaults()
    names = names or (*own.positional, *own.keywords)
    values = {**dict(zip(own.positional, args)), **kwargs}
    if "*" in names:
        count = names.index("*")
        required = list(names[:count])
        names = (*required, *names[count + 1 :])
    else:
        required = [name for name in names if defaults.get(name, MISSING) is MISSING]
    if not {*required} <= {*values} <= {*names}:
        return args, kwargs
    positional = (*[values.pop(name) for name in required], *args[len(own.positional) :])
    rest = [name for name in names if name not in required]
    return positional, {name: values.get(name, defaults[name]) for name in rest}


def one_by_one(function: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """An equation and operands, which may be given as a list."""
    if len(args) == 2 and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])
    return args, kwargs
