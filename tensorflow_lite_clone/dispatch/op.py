"""What an op is: one final class with a generic forward and its gradient.

A forward is written over a namespace ``F`` (see `raw.py`), takes arrays positionally and static
parameters as keywords, and is pure. A gradient is either one function for all inputs,

    def backward(F, g, SAVED..., *, PARAMETERS..., needs): return gx, gy

or one function per differentiable input, named after forward's argument,

    def backward_x(F, g, SAVED..., *, PARAMETERS...): return gx

Beside those of its inputs an op may have some for several of them: ``backward_w_and_b`` returns
gw, gb. One that is for all inputs that are wanted is called where all gradients lead somewhere, the
others where any of theirs does.

SAVED are names of forward's inputs, or ``out`` (``out0``, ``out1``, ... with several outputs).
The gradient's signature is the save policy: what it names is kept for backward, nothing else,
and with per-input gradients only what the wanted gradients name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any, NamedTuple, TypeGuard

from tensorflow_lite_clone.dispatch.costs import Cost, free
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.dispatch.result_layout import row_major

#: name -> op or composite
TABLE: dict[str, type[Op] | Callable[..., Any]] = {}
#: primitive -> the op that it is: the one of its name, or the only one; None where several are
OF_PRIMITIVES: dict[str, type[Op] | None] = {}


class Step(NamedTuple):
    """One gradient function to call: for which inputs, on which saved values and parameters."""

    inputs: tuple[int, ...]  # of several the function returns as many gradients
    function: Callable[..., Any]
    saved: tuple[int, ...] | None  # positions in Plan.saves; None: all, as they come
    parameters: tuple[str, ...]


class Plan(NamedTuple):
    """What to save and what to call when a given set of inputs wants gradients."""

    saves: tuple[int, ...]  # i >= 0: input i; i < 0: output ~i
    needs: tuple[bool, ...]
    steps: tuple[Step, ...] = ()  # empty: the joint `backward` is called with everything saved
    whole: Step | None = None  # all that the steps do, at once
    single: Step | None = None  # the step or the whole that gives all that is wanted by itself


class _Plans(dict):
    """Plans by mask of wanting inputs, made when first asked for."""

    def __init__(self, op: type[Op]) -> None:
        super().__init__()
        self.op = op

    def __missing__(self, mask: int) -> Plan:
        plan = self[mask] = self.op.make_plan(mask)
        return plan


class Op:
    """Base of all ops; a subclass that defines `forward` enters the table under `name`."""

    name: str
    label: Any  # the word in ``<LabelBackward0>``, or a function that makes it from the node
    view = False  # the output shares the first input's memory
    nondifferentiable: tuple[int, ...] = ()  # positions of outputs that never have a gradient
    auxiliary_outputs: tuple[int, ...] = ()  # saved outputs that a recorded backward gets as None
    recomputable = (
        False  # saved outputs that were written to since are calculated again from inputs
    )
    layout_agnostic = False  # it takes inputs as they lie, and PyTorch's result lies as they do
    layout: Any = row_major  # the `Rule` by which results lie; None: as they are made
    primitive: str | None = None  # the op is this primitive: forward is its call and nothing else
    cost = Cost()  # what it counts otherwise than by what it calls; a primitive has its record's
    c: Mapping[str, str] = {}  # as `Primitive.c`, where CUDA has a function for the op itself
    fusable_backward = (
        False  # a joint `backward` that touches arrays only by one composite of its own
    )
    stride_dependent = False  # what a view shows depends on its input's strides (as_strided)
    #: Optional ``write(F, x, *arrays, **parameters)``, the op in x's own memory: its in-place form.
    write: Callable[..., None] | None = None
    mutates: tuple[int, ...] = ()  # positions of inputs that an override may write to
    allows_overlapping_writes = False  # `write` may write several elements into one place in memory
    #: Inputs in which the gradients are constant, or constant between steps, and which PyTorch's
    #: gradient function takes: a recorded gradient requires one by them, and that is zeros.
    constant_in: tuple[str, ...] = ()
    #: Inputs and outputs that PyTorch's one function for all gradients takes: each recorded
    #: gradient requires one where any of these does, even if it depends on others alone.
    joined: tuple[str, ...] = ()
    anchors: tuple[tuple[int, bool], ...]  # positions of both, and whether the first kind
    calls: dict  # backend -> resolved callable
    plans: dict[int, Plan]
    inputs: tuple[str, ...]
    variadic: bool
    differentiable: bool
    joint: tuple[tuple[str, ...], tuple[str, ...], bool] | None
    #: The gradient functions by the inputs that they are for, with what they save and take.
    separate: dict[tuple[int, ...], tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]]
    shared: bool  # whether one of these is for several inputs

    forward: Callable[..., Any]
    backward: Callable[..., Any]

    def __init_subclass__(cls) -> None:
        if "forward" not in vars(cls):
            return
        cls.name = vars(cls).get("name") or _snake(cls.__name__)
        cls.label = vars(cls).get("label") or _camel(cls.name)
        if cls.name in TABLE:
            raise ValueError(f"an op named '{cls.name}' is registered already")
        for attribute, value in list(vars(cls).items()):
            if attribute in ("forward", "write") or attribute.startswith("backward"):
                setattr(cls, attribute, staticmethod(value))
        if "cost" not in vars(cls) and cls.primitive is not None:
            flops = PRIMITIVES[cls.primitive].flops
            cls.cost = Cost(flops) if flops is free else cls.cost._replace(flops=flops)
        cls.calls = {}
        cls.plans = _Plans(cls)
        cls.inputs, _, cls.variadic = _signature(cls.forward, 1)
        cls.joint = None
        cls.separate = {}
        if "backward" in vars(cls):
            saved, parameters, _ = _signature(cls.backward, 2)
            wants_needs = "needs" in parameters
            cls.joint = saved, tuple(p for p in parameters if p != "needs"), wants_needs
        else:
            names = [f"backward_{argument}" for argument in cls.inputs]
            names += [name for name in vars(cls) if name.startswith("backward_")]
            for name in dict.fromkeys(names):
                function = getattr(cls, name, None)
                if function is None:
                    continue
                arguments = name.removeprefix("backward_").split("_and_")
                if not set(arguments) <= set(cls.inputs):
                    raise TypeError(
                        f"'{name}' of the op '{cls.name}' names no input: they are "
                        f"{', '.join(cls.inputs) or 'none'}"
                    )
                saved, parameters, _ = _signature(function, 2)
                positions = tuple(map(cls.inputs.index, arguments))
                cls.separate[positions] = function, saved, parameters
        cls.shared = any([len(inputs) > 1 for inputs in cls.separate])
        cls.differentiable = cls.joint is not None or bool(cls.separate)
        cls.anchors = tuple([(cls._position(name), True) for name in cls.constant_in]) + tuple(
            [(cls._position(name), False) for name in cls.joined]
        )
        TABLE[cls.name] = cls
        if cls.primitive is not None:
            other = OF_PRIMITIVES.get(cls.primitive, cls)
            if cls.primitive == cls.name or other is cls:
                OF_PRIMITIVES[cls.primitive] = cls
            elif other is not None and other.name != cls.primitive:
                OF_PRIMITIVES[cls.primitive] = None

    @classmethod
    def make_plan(cls, mask: int) -> Plan:
        """The plan for the inputs whose bits are set in `mask`."""
        count = max(len(cls.inputs), mask.bit_length())
        needs = tuple(bool(mask >> i & 1) for i in range(count))
        if cls.joint is not None:
            return Plan(tuple(map(cls._position, cls.joint[0])), needs)
        fitting = {
            inputs: entry
            for inputs, entry in cls.separate.items()
            if all([needs[i] for i in inputs])
        }
        every = tuple(i for i in range(count) if needs[i])
        at_once = fitting.pop(every, None) if len(every) > 1 else None
        in_groups = {i for inputs in fitting if len(inputs) > 1 for i in inputs}
        entries = [
            (inputs, *entry)
            for inputs, entry in fitting.items()
            if len(inputs) > 1 or inputs[0] not in in_groups
        ]
        if at_once is not None:
            entries.insert(0, (every, *at_once))
        names = list(dict.fromkeys([name for _, _, saved, _ in entries for name in saved]))
        all_saved = tuple(range(len(names)))

        def step(inputs: Any, function: Any, saved: Any, parameters: Any) -> Step:
            places = tuple(map(names.index, saved))
            return Step(inputs, function, None if places == all_saved else places, parameters)

        # The first input's gradient last: it is the largest most often, what the others needed is
        # free by then, and the node that comes next reads it while a cache may hold it.
        steps = [step(*entry) for entry in reversed(entries)]
        whole = steps.pop() if at_once is not None else None
        single = whole or (steps[0] if len(steps) == 1 else None)
        if single is not None and single.saved is not None:
            single = None
        return Plan(tuple(map(cls._position, names)), needs, tuple(steps), whole, single)

    @classmethod
    def _position(cls, name: str) -> int:
        if name in cls.inputs:
            return cls.inputs.index(name)
        if name == "out":
            return ~0
        if name.startswith("out") and name[3:].isdigit():
            return ~int(name[3:])
        raise TypeError(
            f"the gradient of '{cls.name}' asks for '{name}', which is neither an input "
            f"{cls.inputs} nor an output"
        )


def composite(body: Callable[..., Any]) -> Callable[..., Any]:
    """Enter ``body(F, *arrays, **parameters)`` into the table as ``F.<its name>``.

    A composite has no gradient of its own: on arrays a device may override it with one fused
    kernel; on Tensors its body is inlined and every order of derivative follows.
    """
    name = body.__name__
    if name in TABLE:
        raise ValueError(f"an op named '{name}' is registered already")
    TABLE[name] = body
    return body


def is_op(entry: Any) -> TypeGuard[type[Op]]:
    """Whether an entry of the table is an op; the others are composites."""
    return isinstance(entry, type)


@cache
def multiplies_matrices(entry: type[Op] | Callable[..., Any]) -> bool:
    """Whether the generic form of an entry of the table is composed of matrix products.

    It is when its body, a function of the package that the body calls, or an entry that it names
    says ``F.matmul``. The body's text decides, so that no list of such entries can be forgotten.
    """
    return _multiplies(entry.forward if is_op(entry) else entry, set())


def _multiplies(function: Any, seen: set[Any]) -> bool:
    if function in seen:
        return False
    seen.add(function)
    function = unwrap(function)
    names = _names(function.__code__)
    if "matmul" in names:
        return True
    for name in names:
        called = TABLE[name] if name in TABLE else function.__globals__.get(name)
        if isinstance(called, type) and issubclass(called, Op):
            called = called.forward
        over_arrays = isinstance(called, FunctionType) and called.__code__.co_varnames[:1] == ("F",)
        if over_arrays and _multiplies(called, seen):
            return True
    return False


def _names(code: CodeType) -> set[str]:
    """The names that a function and the functions inside of it use."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _signature(function: Callable[..., Any], skip: int) -> tuple[tuple[str, ...], tuple, bool]:
    """Positional names after the first `skip`, keyword-only names, whether it takes ``*args``."""
    code = function.__code__
    positional, keywords = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    return (
        names[skip:positional],
        names[positional : positional + keywords],
        bool(code.co_flags & 4),
    )


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
