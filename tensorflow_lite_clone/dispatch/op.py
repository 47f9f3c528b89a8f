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
    """One gradient function to call: for which input, on which saved values and parameters."""

    input: int
    function: Callable[..., Any]
    saved: tuple[int, ...]  # positions in Plan.saves
    parameters: tuple[str, ...]


class Shared(NamedTuple):
    """One gradient function to call for several inputs."""

    inputs: tuple[int, ...]
    function: Callable[..., Any]
    saved: tuple[int, ...]
    parameters: tuple[str, ...]


class Plan(NamedTuple):
    """What to save and what to call when a given set of inputs wants gradients."""

    saves: tuple[int, ...]  # i >= 0: input i; i < 0: output ~i
    steps: tuple[Step, ...]  # empty: the joint `backward` is called with everything saved
    needs: tuple[bool, ...]
    shared: tuple[Shared, ...] = ()
    whole: Shared | None = None  # all that the steps and the shared ones do, at once
    #: Where one call gives all that is wanted: that call, which takes what is saved as it comes.
    single: Step | None = None
    together: Shared | None = None


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
    separate: dict[int, tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]]
    shared: dict[tuple[int, ...], tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...]]]

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
        cls.shared = {}
        if "backward" in vars(cls):
            saved, parameters, _ = _signature(cls.backward, 2)
            wants_needs = "needs" in parameters
            cls.joint = saved, tuple(p for p in parameters if p != "needs"), wants_needs
        else:
            for position, argument in enumerate(cls.inputs):
                function = getattr(cls, f"backward_{argument}", None)
                if function is not None:
                    saved, parameters, _ = _signature(function, 2)
                    cls.separate[position] = function, saved, parameters
            for attribute in vars(cls):
                if not attribute.startswith("backward_"):
                    continue
                arguments = attribute.removeprefix("backward_").split("_and_")
                if not set(arguments) <= set(cls.inputs):
                    raise TypeError(
                        f"'{attribute}' of the op '{cls.name}' names no input: they are "
                        f"{', '.join(cls.inputs) or 'none'}"
                    )
                if len(arguments) > 1:
                    function = getattr(cls, attribute)
                    saved, parameters, _ = _signature(function, 2)
                    positions = tuple(map(cls.inputs.index, arguments))
                    cls.shared[positions] = function, saved, parameters
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
            return Plan(tuple(map(cls._position, cls.joint[0])), (), needs)
        every = tuple(i for i in range(count) if needs[i])
        groups = [(i, *entry) for i, entry in cls.shared.items() if all(needs[j] for j in i)]
        whole = [group for group in groups if group[0] == every]
        together = [group for group in groups if group[0] != every]
        done = {j for i, *_ in together for j in i}
        wanted = [
            (i, *cls.separate[i])
            for i in range(count)
            if needs[i] and i in cls.separate and i not in done
        ]
        names = list(
            dict.fromkeys(name for _, _, saved, _ in (*whole, *wanted, *together) for name in saved)
        )
        places = tuple(map(cls._position, names))
        # The first input's gradient last: it is the largest most often, what the others needed is
        # free by then, and the node that comes next reads it while a cache may hold it.
        steps = tuple(
            Step(i, function, tuple(map(names.index, saved)), parameters)
            for i, function, saved, parameters in reversed(wanted)
        )
        shared = tuple(
            Shared(i, function, tuple(map(names.index, saved)), parameters)
            for i, function, saved, parameters in (*together, *whole)
        )
        all_saved = tuple(range(len(places)))
        if whole:
            once = shared[-1] if shared[-1].saved == all_saved else None
            return Plan(places, steps, needs, shared[:-1], shared[-1], None, once)
        if len(steps) + len(shared) > 1:
            return Plan(places, steps, needs, shared)
        return Plan(places, steps, needs, shared, None, *(steps or (None,)), *shared)

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
