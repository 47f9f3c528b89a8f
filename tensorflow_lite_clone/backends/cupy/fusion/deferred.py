"""Pointwise kernels that wait for each other, while a graph is captured: chains become one kernel.

A formula's results are arrays at once, but what fills them is put off until something else than a
formula runs. Then all that waits is launched: steps over the same elements as one kernel, which
keeps in registers what nobody holds any more. `outside` goes around what is no formula.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from cupy import ndarray
from cupy.cuda.compiler import CompileException

from tensorflow_lite_clone.backends.cupy.fusion import joining
from tensorflow_lite_clone.backends.cupy.fusion.formula import in_place
from tensorflow_lite_clone.backends.cupy.fusion.joining import Origin, Step, meets, span, window
from tensorflow_lite_clone.backends.cupy.fusion.launch import maker
from tensorflow_lite_clone.backends.cupy.fusion.sums import Sums, by_columns, summed
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.dispatch.raw import Raw

_MOST_STEPS = 128  # that wait
#: Of what calls are given, besides arrays, what holds none
_PLAIN = (
    type(None), bool, int, float, complex, str, slice, type(...), type,
    np.generic, np.dtype, DType, Raw, ModuleType,
)  # fmt: skip


#: Each is called with a step before it is launched, and the steps that it was joined from.
on_joined: list[Callable[[Step, list[Step]], None]] = []


class _Known:
    """Arrays, by where they lie: memory that came from outside may be known under many names."""

    def __init__(self) -> None:
        self._spans: dict[tuple, tuple[int, int]] = {}  # by window

    def add(self, array: Any) -> None:
        """Note an array."""
        self._spans[window(array)] = span(array)

    def clear(self) -> None:
        """Forget all."""
        self._spans.clear()

    def clashes(self, array: Any) -> bool:
        """Whether an array shares elements with one that is known, but not one by one."""
        low, high = span(array)
        near = [known for known, (start, end) in self._spans.items() if start < high and low < end]
        return bool(near) and any([known != window(array) for known in near])


class Product(NamedTuple):
    """A kernel that is no formula and waits, as it may compute more than what it is to fill."""

    result: Any  # (N, C, ...)
    launch: Callable[[bool], Any]  # fills it and, if asked to, gives its moments as parts of them


class Chain(threading.local):
    """What waits in this thread."""

    def __init__(self) -> None:
        self.on = False  # formulas are put off
        self.here: Callable[[], Any] = nullcontext  # a block on the device that is captured
        self.product: Product | None = None  # goes before the steps
        self.steps: list[Step] = []
        self._read = _Known()  # the arrays that steps read
        self._written = _Known()
        self._origins: dict[tuple, Origin] = {}  # by window
        self._again: dict[tuple, Origin] = {}  # those that take the place of what steps read
        self.apart = False  # the kernels that are launched now touch nothing that waits

    def defer(self, step: Step) -> None:
        """Let a formula wait."""
        results = step.results
        self.apart = False
        read, written = self._read, self._written
        if any([written.clashes(value) for value in step.arrays]) or any(
            [written.clashes(value) or read.clashes(value) for value in results]
        ):
            self.flush()
        self._note(step)
        self._forget(list(results))
        self.steps.append(step)
        if len(self.steps) == _MOST_STEPS:
            self.flush()

    def put_off(self, product: Product) -> None:
        """Let a product wait for `moments`, after what waits and touches its arrays is launched."""
        self.product, self.apart = product, False

    def moments(self, x: Any) -> Any:
        """The moments of x per channel if the product that waits gives x, which is launched.

        They are (3, parts, channels): counts, means, sums of squared deviations. Else None.
        """
        product = self.product
        if product is None or window(product.result) != window(x):
            return None
        if any([meets(value, x) for step in self.steps for value in step.results]):
            return None  # written since
        return self._launch_product(True)

    def _launch_product(self, moments: bool) -> Any:
        product, self.product = self.product, None
        if product is None:
            return None
        with self.beside(), self.here():
            return product.launch(moments)

    def _note(self, step: Step) -> None:
        """Note what a step reads and writes."""
        for value in step.arrays:
            self._read.add(value)
        for value in step.results:
            self._written.add(value)

    def flush(self, touched: Sequence[Any] | None = None) -> None:
        """Launch what waits.

        Given the arrays that are touched by the kernels up to the next formula or call, what has
        nothing to do with them may go on waiting.
        """
        self._launch_product(False)
        self.apart = touched is not None
        if not self.steps:
            return
        steps, self.steps = self.steps, []
        if touched is not None:
            steps, self.steps = joining.parted(steps, touched)
        again = {key: own for key, own in self._again.items() if not own.lost([], False)}
        if not self.steps:
            self._again.clear()
        self._read.clear()
        self._written.clear()
        for step in self.steps:
            self._note(step)
        needed = joining.needed_of(steps)
        later: set[Any] = set()  # what the groups that follow read

        def is_held(value: Any) -> bool:
            return id(value) in needed or window(value) in later

        joined = []
        for group in reversed(joining.groups_of(steps)):
            whole = joining.joined(group, is_held, again)
            if whole is None and group[-1].sums is not None and len(group) > 1:
                group = group[:-1]  # what is written now lies otherwise: the caller sums
                whole = joining.joined(group, is_held, again)
            joined.append((whole, group))
            later.update([window(value) for step in group for value in step.arrays])
        with self.here():  # work for another device may be what they have to precede
            for step, group in reversed(joined):
                if step is not None:
                    _launch(step, group)
                    self._forget(list(step.results))
                    self._origins.update(joining.origins_of(step))
        self._forget([value for step in self.steps for value in step.results])

    def sums(self, name: str, body: Callable[..., tuple], arrays: tuple, others: tuple) -> Any:
        """The partial sums per channel, as `Sums` has them, of what `body` gives for the arrays.

        The first array is (N, C, ...). What waits over the same elements is computed on the way: it
        goes on waiting where the arrays to read are no more for that, else it is launched. What
        else the caller's kernels read, `others`, must not wait. None, and nothing is summed, where
        that is not so, or where channels are not next to each other.
        """
        self._launch_product(False)
        read = [*arrays, *[value for value in others if value is not None]]
        if any([self._written.clashes(value) for value in read]):
            return None
        made, sums = summed(body, arrays), Sums()
        walked, form = joining.formed(made, arrays, (), arrays[:1])
        columns = by_columns(walked, form, arrays[0].shape[1])
        if columns is None:
            return None
        step = Step(name, made, walked, columns, arrays, (), sums)
        steps = [*self.steps, step]
        group = next(group for group in joining.groups_of(steps) if group[-1] is step)
        self._forget([])
        reads = {window(value) for one in group for value in one.arrays}
        again = {key: origin for key, origin in self._origins.items() if key in reads}
        alone = joining.joined(group, lambda value: False, again)
        mine = [id(one) for one in group]
        before = {window(v) for one in steps if id(one) not in mine for v in one.results}
        if alone is None or not before.isdisjoint(map(window, read)):
            return None
        used = [alone.operands[symbol.value] for symbol in alone.trace.operands]
        used = [value for value in used if value.__class__ is ndarray]
        whole = [sum([value.shape == step.shape for value in v]) for v in (used, arrays)]
        if whole[0] <= whole[1] and before.isdisjoint(map(window, used)):
            self._again |= again
            with self.beside(), self.here():
                for watch in tuple(on_joined):
                    watch(alone, group)
                try:
                    alone.launch()
                except CompileException:  # the sums of what is there are another kernel
                    self._again.clear()
            return sums.partial
        needed = joining.needed_of(steps)
        if joining.joined(group, lambda value: id(value) in needed, {}) is None:
            return None
        self.steps.append(step)
        self.flush()
        return sums.partial

    @contextmanager
    def beside(self) -> Iterator[None]:
        """A block in which kernels are launched that touch nothing that waits."""
        on, self.on = self.on, False
        try:
            yield
        finally:
            self.on = on

    def _forget(self, written: list[Any], itself: bool = True) -> None:
        """Let go of what cannot be computed again, after these arrays are written."""
        for origins in (self._origins, self._again):
            for key in [key for key, own in origins.items() if own.lost(written, itself)]:
                del origins[key]

    def wrote(self, array: Any) -> None:
        """Note that something else than a formula writes into an array."""
        if self._origins or self._again:
            self._forget([array])

    def drop(self) -> None:
        """Forget what waits."""
        self.on = self.apart = False
        self.product = None
        self.steps.clear()
        self._read.clear()
        self._written.clear()
        self._origins.clear()
        self._again.clear()

    def outside(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `call` gives, which may do anything with arrays, after what waits is launched."""
        if not self.on:
            return call(*args, **kwargs)
        touched = _arrays((getattr(call, "__self__", None), args, kwargs))
        self.flush(touched)
        # What it is called for it may write; what was computed from others, autograd sees to.
        if touched is None:
            self._origins.clear()
        else:
            self._forget(touched, itself=False)
        self.on = False
        try:
            return call(*args, **kwargs)
        finally:
            self.on, self.apart = True, False


chain = Chain()


def around(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which may do anything with arrays; `aware` ones see to it themselves."""
    if getattr(getattr(call, "func", call), "aware", False):
        return call

    def outside(*args: Any, **kwargs: Any) -> Any:
        return chain.outside(call, *args, **kwargs)

    return outside


def writing(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which writes into its first operand."""

    def write(x: Any, *args: Any, **kwargs: Any) -> Any:
        made = chain.outside(call, x, *args, **kwargs)
        chain.wrote(x)
        return made

    return write


def aware(override: Any) -> Any:
    """Mark an override that launches what waits before it touches arrays, and may defer itself."""
    override.aware = True
    return override


def viewing(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call`, which makes views of its first operand and touches no elements, or else copies."""

    def view(x: Any, *args: Any, **kwargs: Any) -> Any:
        on, chain.on = chain.on, False
        try:
            made = call(x, *args, **kwargs)
            views = made if type(made) is tuple else (made,)
            if not (chain.steps or chain.product) or all([_shares(value, x) for value in views]):
                return made
            chain.flush()  # what was copied may not have been filled yet
            return call(x, *args, **kwargs)
        finally:
            chain.on = on

    return view


def backward(node: Any, call: Callable[..., Any], grads: list) -> Any:
    """A node's gradients, for `hooks.around_gradient`: formulas wait, and precede what does not."""
    op: Any = getattr(node, "op", None)
    if (
        op is not None
        and not node.backend.batched
        and (op.fusable_backward if op.joint is not None else not op.shared)
    ):
        return call(grads)
    chain.flush()  # what was saved for it is not among the arguments
    return chain.outside(call, grads)


def deferring(call: Callable[..., Any]) -> Callable[..., Any]:
    """What `launch.formula` gave, put off while the chain is on."""
    made = call.formula  # type: ignore[attr-defined]

    def put_off(*arrays: Any, **parameters: Any) -> Any:
        if not chain.on:
            return call(*arrays, **parameters)
        formed = None if made.refused else made.formed(arrays, parameters)
        if formed is None and made.hands_on(arrays, parameters):
            return call(*arrays, **parameters)
        if formed is None:
            return chain.outside(call, *arrays, **parameters)
        traced, walked, form = formed
        news = [maker(walked.shape, dtype, walked.strides) for dtype in form.results]
        results = [new() for new in news]
        if walked.elements:
            chain.defer(Step(made.name, traced, walked, form, arrays, tuple(results)))
        return tuple(results) if len(results) > 1 else results[0]  # not the tuple of the step

    put_off.formula = made  # type: ignore[attr-defined]
    return put_off


def deferring_in_place(call: Any) -> Callable[..., Any]:
    """What `launch.in_place` makes of a formula, put off while the chain is on."""
    made, write = call.formula, in_place(call)

    def put_off(x: Any, *others: Any, **parameters: Any) -> Any:
        if not chain.on:
            chain.wrote(x)
            return write(x, *others, **parameters)
        formed = None
        if not made.refused and all([value is x or not meets(value, x) for value in others]):
            formed = made.formed((x, *others), parameters, x)
        if formed is None:
            return writing(write)(x, *others, **parameters)
        traced, walked, form = formed
        if walked.elements:
            chain.defer(Step(made.name, traced, walked, form, (x, *others), (x,)))
        return True

    return put_off


def _shares(value: Any, x: Any) -> bool:
    """Whether two arrays lie in the same memory."""
    return value.__class__ is ndarray and value.data.mem.ptr == x.data.mem.ptr


def launching(*launch: Any) -> Callable[[], None]:
    """Launch what waits before any other kernel of ours, for `hooks.on_launch`."""
    if chain.on and not chain.apart:
        chain.flush()
    return lambda: None


def _arrays(value: Any) -> list[Any] | None:
    """The arrays in nested tuples, lists and dicts; None where there may be others."""
    if value.__class__ is ndarray:
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [] if isinstance(value, _PLAIN) else None
    found = []
    for one in value:
        arrays = _arrays(one)
        if arrays is None:
            return None
        found += arrays
    return found


def _launch(step: Step, group: list[Step]) -> None:
    """Launch what a group was joined to, or the group one by one where that does not compile."""
    for watch in tuple(on_joined):
        watch(step, group)
    try:
        step.launch()
    except CompileException as error:
        if len(group) == 1:
            raise
        names = ", ".join([alone.name for alone in group])
        warnings.warn(
            f"a kernel of several formulas ({names}) does not compile, and they run one by one: "
            f"{error}",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
        for alone in group:
            _launch(alone, [alone])
