"""Formulas on one device: traced once for their operands' dtypes, prepared once for layouts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from cupy import ndarray
from cupy.cuda.compiler import CompileException

from tensorflow_lite_clone.backends.cupy.arrays import strides_of
from tensorflow_lite_clone.backends.cupy.fusion.launch import Plan
from tensorflow_lite_clone.backends.cupy.fusion.layout import Walk, reach, walk, width
from tensorflow_lite_clone.backends.cupy.fusion.source import BLOCK, Form
from tensorflow_lite_clone.backends.cupy.fusion.target import NAMESPACE
from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.fuse.formula import Trace, Unchanged, trace
from tensorflow_lite_clone.fuse.symbol import operands_of
from tensorflow_lite_clone.fuse.target import FLOAT32

_BLOCKS = 264  # that are left of a kernel whose threads take several packs
_MOST_RUNS = 4096  # that are kept of one formula; then it begins anew
#: Classes of what kernels take; arrays of subclasses are more than their strides tell
_SERVED = frozenset([ndarray, *[native.type for native in NATIVE.values()]])
_MOST_FAILURES = 3  # after which a formula that never was pointwise is not traced any more


class Formula:
    """A formula on one device: its traces by dtypes, what runs it by dtypes, shapes and strides."""

    def __init__(
        self,
        name: str,
        body: Callable[..., Any],
        generic: Callable[..., Any],
        kept: tuple,
        like: int | None = None,
    ) -> None:
        self.name, self.body, self.generic, self.kept = name, body, generic, kept
        self.like = like
        self.runs: dict[Any, Any] = {}
        self._traces: dict[Any, Trace | None] = {}
        self._handed_on: set[Any] = set()
        self._failures = 0
        self.refused = False  # it is not pointwise

    def prepare(self, key: Any, arrays: tuple, parameters: dict, out: Any = None) -> Any:
        """What gives the results, the generic form if need be; from now on under `key`.

        With `out` what writes into such an array, None if nothing does.
        """
        if len(self.runs) >= _MOST_RUNS:
            self.runs.clear()
        formed = self.formed(arrays, parameters, out)
        try:
            plan = None if formed is None else Plan(self.name, *formed)
        except CompileException as error:
            warnings.warn(
                f"the formula '{self.name}' does not compile, and runs word by word: {error}",
                RuntimeWarning,
                stacklevel=level_outside(),
            )
            plan = None
            broken = formed[0] if formed else None  # nor may it wait for others in a capture
            self._traces.update({k: None for k, made in self._traces.items() if made is broken})
        if out is None:
            run = self.generic if plan is None else plan.run
        else:
            run = None if plan is None else plan.into
        self.runs[key] = run
        return run

    def formed(
        self, arrays: tuple, parameters: dict, out: Any = None
    ) -> tuple[Trace, Walk, Form] | None:
        """What a plan for these operands (and the result `out`) is made of; None without one."""
        if not all([a is None or isinstance(a, (ndarray, np.generic)) for a in arrays]):
            self.refused = any([isinstance(a, (list, tuple)) for a in arrays])
            return None
        kinds = tuple([None if value is None else value.dtype for value in arrays])
        shapes = tuple([None if value is None else value.shape for value in arrays])
        try:
            made = self._traced(kinds, shapes, parameters)
        except TypeError:  # a parameter that has no hash
            return None
        if made is None:
            return None
        used = [arrays[symbol.value] for symbol in made.operands]
        operands = [value for value in used if value.__class__ is ndarray]
        if not operands or any([value.__class__ not in _SERVED for value in used]):
            return None
        narrow = None if "dtype" in parameters else _narrow(kinds)
        if self.like is not None:
            narrow = kinds[self.like]
        results = tuple(
            [
                narrow if narrow and symbol.dtype == FLOAT32 and place not in self.kept
                else symbol.dtype
                for place, symbol in enumerate(made.results)
            ]
        )  # fmt: skip
        where = None if out is None else (out.shape, strides_of(out))
        if where is not None and (len(results) > 1 or out.dtype != results[0] or _shares(*where)):
            return None
        # Gradients lie as what they are gradients of, not as what they come from.
        leader = int(made.names[0] == "g" and len(operands) > 1)
        each = [value.shape for value in operands]
        walked = walk(each, [strides_of(value) for value in operands], len(results), where, leader)
        if where is not None and walked.shape != out.shape:
            return None
        if len(results) > 1 and any(
            [
                np.broadcast_shapes(*[shapes[symbol.value] for symbol in operands_of((result,))])
                != walked.shape
                for result in made.results
            ]
        ):
            return None
        return made, walked, form_of(walked, arrays, operands, results)

    def hands_on(self, arrays: tuple, parameters: dict) -> bool:
        """Whether all that it gives for such arrays are some of them."""
        if not all([a is None or isinstance(a, (ndarray, np.generic)) for a in arrays]):
            return False
        kinds = tuple([None if value is None else value.dtype for value in arrays])
        shapes = tuple([None if value is None else value.shape for value in arrays])
        try:
            self._traced(kinds, shapes, parameters)
            return (kinds, *_fixed(parameters)) in self._handed_on
        except TypeError:  # a parameter that has no hash
            return False

    def _traced(self, kinds: tuple, shapes: tuple, parameters: dict) -> Trace | None:
        key: Any = (kinds, *_fixed(parameters))
        for known in (key, (key, shapes)):
            if known in self._traces:
                return self._traces[known]
        if len(self._traces) >= _MOST_RUNS:
            self._traces.clear()
        widened = "dtype" not in parameters
        floats = _floats(kinds)
        made: Trace | None = None
        mixed = len(floats) > 1 and any([kind.itemsize == 2 for kind in floats])
        mixed = mixed and self.like is None
        try:
            if not mixed:
                made = trace(self.body, NAMESPACE, kinds, shapes, parameters, widened=widened)
        except Unchanged as found:
            self.refused = not parameters
            if found.whole:
                self._handed_on.add(key)
        except Exception:  # whatever it is, the generic form says it again
            made = None
        if made is None and floats and not mixed:  # complex or whole numbers alone tell less
            self._failures += 1
            known = [entry for entry in self._traces.values() if entry is not None]
            self.refused = self.refused or (self._failures >= _MOST_FAILURES and not known)
        self._traces[(key, shapes) if made is not None and made.by_shape else key] = made
        return made


def form_of(walked: Walk, given: tuple, operands: list, results: tuple) -> Form:
    """The form of a kernel that reads `operands`, the arrays among `given` that a trace uses.

    `results` are the dtypes of what it writes.
    """
    steps = tuple([tuple([step if step in (0, 1) else 2 for step in own]) for own in walked.steps])
    many = width(walked, [value.itemsize for value in (*operands, *results)])
    return Form(
        operands=tuple([None if value is None else value.dtype for value in given]),
        results=results,
        numbers=tuple([isinstance(value, np.generic) for value in given]),
        steps=steps,
        axes=len(walked.sizes),
        width=many,
        packs=_packs(walked, steps[: len(operands)], many),
        wide=reach(walked) >= 1 << 31,
    )


def _packs(walked: Walk, steps: tuple, many: int) -> int:
    """How often a thread takes `many` elements, at places along the outermost axis."""
    varying = len([own for own in steps if own[-1]])
    packs = 4 // max(varying, 1)
    if not walked.flat:
        # What is read once for all of them takes more time where elements are small.
        packs = many // 2 if varying < len(steps) and walked.sizes[-1] >= 4 * many else 1
    return max(1, min(packs, walked.elements // (_BLOCKS * BLOCK * many)))


def _floats(kinds: tuple) -> set:
    return {kind for kind in kinds if kind is not None and kind.kind in "fV"}


def _narrow(kinds: tuple) -> Any:
    """The two-byte float that all floating operands are of, or None."""
    floats = _floats(kinds)
    only = floats.pop() if len(floats) == 1 else None
    return only if only is not None and only.itemsize == 2 else None


def _shares(shape: tuple, steps: tuple) -> bool:
    """Whether several elements share a place in memory."""
    return any([not step and size > 1 for size, step in zip(shape, steps)])


def _fixed(parameters: dict) -> tuple:
    """Parameters as a key; equal numbers of different types, and signed zeros, are told apart."""
    return tuple([(name, type(v), v or repr(v)) for name, v in parameters.items()])


def formula(
    name: str,
    body: Callable[..., Any],
    generic: Any,
    kept: tuple = (),
    like: int | None = None,
) -> Callable[..., Any]:
    """`generic` (over arrays), as one kernel wherever `body`, the same over ``F``, is pointwise.

    Results of float32 at the places `kept` are not rounded for two-byte operands. `like`: results
    of float32 are rounded to the dtype of this operand, whatever the others are of.
    """
    made = Formula(name, body, generic, kept, like)
    runs = made.runs

    def call(*arrays: Any, **parameters: Any) -> Any:
        if made.refused:
            return generic(*arrays, **parameters)
        try:
            key = _key(arrays, parameters)
            run = runs[key]
        except KeyError:
            run = made.prepare(key, arrays, parameters)
        except TypeError:  # a parameter that has no hash
            run = generic
        if parameters and run is not generic:
            return run(*arrays)
        return run(*arrays, **parameters)

    def of_one(x: Any, **parameters: Any) -> Any:
        if parameters:
            return call(x, **parameters)
        try:
            run = runs[x.__class__, x.dtype, x.shape, x.strides]
        except (KeyError, AttributeError):
            return call(x)
        return run(x)

    def of_two(x: Any, y: Any, **parameters: Any) -> Any:
        if parameters:
            return call(x, y, **parameters)
        try:
            run = runs[
                x.__class__, x.dtype, x.shape, x.strides, y.__class__, y.dtype, y.shape, y.strides
            ]
        except (KeyError, AttributeError):
            return call(x, y)
        return run(x, y)

    several = body.__code__.co_flags & 4  # it takes *args
    chosen: Any = {2: of_one, 3: of_two}.get(0 if several else body.__code__.co_argcount, call)
    chosen.formula = made
    return chosen


def in_place(call: Any) -> Callable[..., bool]:
    """``write(x, *operands, **parameters)``: what `formula` gave, of x and the operands, into x.

    It gives False, and does nothing, where that cannot be done element by element.
    """
    made = call.formula
    runs = made.runs

    def write(x: Any, *others: Any, **parameters: Any) -> bool:
        if made.refused:
            return False
        try:
            if len(others) == 1 and not parameters:
                (y,) = others
                key: Any = x.dtype, x.shape, x.strides, y.__class__, y.dtype, y.shape, y.strides
            else:
                key = x.dtype, x.shape, x.strides, *_key(others, parameters)
            run = runs[key]
        except KeyError:
            run = made.prepare(key, (x, *others), parameters, x)
        except (AttributeError, TypeError):  # a parameter that has no hash
            return False
        if run is None:
            return False
        if others:
            memory = x.data.mem.ptr
            for value in others:
                if value.__class__ is ndarray and value.data.mem.ptr == memory and value is not x:
                    return False  # elements might be overwritten before they are read
        run((x, *others), (x,))
        return True

    return write


def _key(arrays: tuple, parameters: dict) -> tuple:
    key: list[Any] = []
    for value in arrays:
        kind = value.__class__
        if kind is ndarray or isinstance(value, np.generic):
            key += (kind, value.dtype, value.shape, value.strides)
        else:
            key.append(kind)
    return (*key, *_fixed(parameters))
