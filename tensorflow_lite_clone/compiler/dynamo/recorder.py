"""Records what a function does with tensors, and computes it when it is asked for values.

While a function runs, calls of public functions come here and are written down, and give `Pending`
tensors. When a value is needed (`x.item()`, ``if x > 0``, ``print(x)``, the end of the function),
what was written down is handed to the backend as a graph, or to what the backend made of the same
calls before, and pending tensors become what that returns. So all else that the function does
happens at every call.
"""

from __future__ import annotations

import sys
import traceback
import warnings
import weakref
from collections.abc import Iterable
from types import FrameType
from typing import Any

from tensorflow_lite_clone._subclasses.fake_tensor import FakeTensor
from tensorflow_lite_clone.amp.autocast_mode import _enter_autocast
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.saved import active as saved_hooks
from tensorflow_lite_clone.compiler.dynamo import calls
from tensorflow_lite_clone.compiler.dynamo.ambient import Ambient, Surroundings, change
from tensorflow_lite_clone.compiler.dynamo.callsite import site_of
from tensorflow_lite_clone.compiler.dynamo.errors import Unsupported
from tensorflow_lite_clone.compiler.dynamo.pending import (
    FAKES,
    Snapshot,
    Unsettled,
    pend,
    settle,
)
from tensorflow_lite_clone.compiler.dynamo.steps import (
    Input,
    Segment,
    State,
    Step,
    Value,
    replaced,
    value,
)
from tensorflow_lite_clone.compiler.function import inside
from tensorflow_lite_clone.compiler.signature import UnsuitableError
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import active_modes, state
from tensorflow_lite_clone.tensor import Tensor

_PACKAGE = __name__.partition(".")[0]
_HOME = f"{_PACKAGE}.compiler.dynamo.function"  # whose frames are not the program's
_MACHINERY = f"{_PACKAGE}.nn.modules.hooks"  # calls a module's forward


class Recorder:
    """A mode of public functions that records one call of a compiled function.

    `cache` is what is kept from call to call, see `function.Cache`.
    """

    def __init__(self, cache: Any, sources: Any) -> None:
        self.cache = cache
        self.sources = sources
        self._depth = len(saved_hooks)
        self._eager = False  # no more is recorded in this call
        self._kinds = calls.kinds()
        self._begin(None)

    def _begin(self, site: Any) -> None:
        """Record from a place of the function's code on."""
        self._site = site
        self._ambient, self._surroundings = Ambient.now(), Surroundings()
        self._root = self.cache.root(site, self._ambient)
        self._segment: Segment | None = None

    def __enter__(self) -> Recorder:
        active_modes.append(None)
        state.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        state.modes.remove(self)
        active_modes.pop()

    # ---- calls come here

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self._called(func, args, kwargs or {}, sys._getframe(3))

    def _called(self, func: Any, args: tuple, kwargs: dict[str, Any], frame: FrameType) -> Any:
        """What a call gives, of a function that runs in a frame."""
        kind = self._kinds.get(func)
        if kind == "unrelated" and any([isinstance(each, Unsettled) for each in args]):
            kind = "a pending tensor is asked for what it gets by its graph"
        if self._eager or kind == "unrelated":
            return func(*args, **kwargs)
        if kind == "metadata":
            return self._metadata(func, args, kwargs)
        if mode.transforms or mode.dispatch_modes or len(saved_hooks) != self._depth:
            kind = "a transform, a mode or hooks on saved tensors see each operation"
        if kind is None:
            segment = self._segment
            if segment is None:
                segment = self._segment = Segment(self, self._root, self._ambient)
            if not segment.ambient.holds():
                self._follow(segment, Ambient.now())
            try:
                key = (func, segment.describe(args, kwargs))
            except UnsuitableError as error:
                kind = str(error)
            else:
                step = segment.state.following.get(key)
                if step is not None:
                    segment.fakes = None
                    return _advance(segment, step)
                step = self._extend(segment, key, args, kwargs, frame)
                if isinstance(step, Step):
                    return _advance(segment, step)
                kind = step
        self.break_graph(kind, frame, (*args, *kwargs.values()))
        return func(*args, **kwargs)

    def apply(self, function: Any, args: tuple) -> Any:
        """Record a call of a `Function` of the program as one, or NotImplemented in another."""
        if self not in state.modes:
            return NotImplemented
        place = state.modes.index(self)
        del state.modes[place]
        try:
            return self._called(calls.applied(function), args, {}, sys._getframe(2))
        finally:
            state.modes.insert(place, self)

    def _metadata(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Answer what is known of a tensor without its values."""
        segment = self._segment
        if segment is None:
            segment = self._segment = Segment(self, self._root, self._ambient)
        if args:
            segment.touched.add(id(args[0]))
        return calls.answer(func, segment.look, args, kwargs)

    def _follow(self, segment: Segment, now: Ambient) -> None:
        """Record that gradients or autocast were switched since the last call, if they were."""
        while segment.ambient != now:
            outer = segment.blocks[-1][0] if segment.blocks else None
            function, arguments, after = change(segment.ambient, now, outer)
            if arguments is None:
                arguments = (value(segment.blocks.pop()[1]),)
            elif function is _enter_autocast:
                segment.blocks.append((segment.ambient, segment.state.count))
            key = (function, arguments)
            step = segment.state.following.get(key)
            if step is None:
                step = Step("call_function", function, arguments, {}, segment.ambient)
                step.leaves, step.results = [((), segment.state.count)], None
                step.after = State(segment.state.count + 1)
                segment.state.following[key] = step
            segment.path.append(step)
            segment.state, segment.ambient = step.after, after

    # ---- calls not known

    def _extend(
        self, segment: Segment, key: tuple, args: tuple, kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        """Learn a call that has not followed here before: a Step, or why there is none."""
        if self.cache.full(self._site):
            self._eager = True
            return "recompile_limit reached"
        func, caller = key[0], frame.f_back
        if frame.f_code.co_filename == "<interception>":  # as the program has written them
            args, kwargs = frame.f_locals["args"], frame.f_locals["kwargs"]
        spelled = calls.spelling(func, frame, args, kwargs)
        if spelled is None:
            return "it is about no values"
        form, target, args = spelled
        first = segment.state.count
        looks = dict(segment.snapshots)
        looks.update([(n, Snapshot.of(tensor)) for n, tensor in enumerate(segment.new, first)])
        taken, named = segment.values_of((args, kwargs))
        step = Step(form, target, taken, named, segment.ambient)
        try:
            fakes = self._fakes(segment)
            for number, _ in enumerate(segment.new, first):
                fakes[number] = looks[number].fake()
            versions = {number: fake._version for number, fake in fakes.items()}
            result = _evaluate(step, fakes)
        except Exception as error:
            segment.fakes = None  # which may have changed
            cause = error.__cause__ or error
            return f"{type(cause).__name__}: {cause}"
        written = any([fakes[number]._version != version for number, version in versions.items()])
        reason = self._read_result(segment, step, result, fakes, written)
        if reason is not None:
            segment.fakes = None
            return reason
        if written:
            step.writes = [
                number
                for number, fake in fakes.items()
                if number in versions
                and fake._version != versions[number]
                and number not in segment.waiting
            ]
            for number, snapshot in looks.items():
                seen = Snapshot.of(fakes[number])
                if seen != snapshot:
                    step.changed.append((number, seen))
        names = self.sources.find(segment.new, caller)
        ordered = sorted(
            zip(range(first, first + len(names)), segment.new, names),
            key=lambda each: (
                id(each[1]) not in segment.touched and (each[2] is None or not each[2].by_attribute)
            ),
        )
        for number, _, source in ordered:
            name = f"L_stack{number}_" if source is None else source.name
            step.inputs.append((number, Input(name, looks[number])))
        self._look_at_caller(step, caller, written)
        if step.fresh and not written and step.leaves == [((), number) for number, _ in step.fresh]:
            step.single = step.fresh[0]
        segment.state.following[key] = step
        return step

    def _fakes(self, segment: Segment) -> dict[int, Any]:
        """What stands for the values so far, made by the calls so far where that is not there."""
        if segment.fakes is None:
            fakes: dict[int, Any] = {}
            for step in segment.path:
                fakes.update([(number, given.snapshot.fake()) for number, given in step.inputs])
                if step.results is not None:
                    result = _evaluate(step, fakes)
                    fakes.update([(number, _at(result, path)) for path, number in step.leaves])
            segment.fakes = fakes
        return segment.fakes

    def _read_result(
        self,
        segment: Segment,
        step: Step,
        result: Any,
        fakes: dict[int, Any],
        written: bool,
    ) -> str | None:
        """Note what a call gave; why it cannot be recorded, or None."""
        numbers = {id(fake): number for number, fake in fakes.items()}
        count = segment.state.count + len(segment.new)
        leaves: list[tuple[tuple, Any]] = []
        step.rebuild = _flatten(result, (), leaves)
        step.results = results = []
        found = False
        for path, leaf in leaves:
            if not isinstance(leaf, Tensor):
                results.append(leaf)
                continue
            found = True
            number = numbers.get(id(leaf))
            if number is None:
                if leaf.requires_grad and leaf.is_leaf:
                    return "it makes a leaf that requires a gradient"
                if type(leaf) is not FakeTensor:
                    return "its result is no plain tensor"
                number = numbers[id(leaf)] = count
                fakes[number] = leaf
                step.fresh.append((number, Snapshot.of(leaf)))
                count += 1
            results.append(value(number))
            step.leaves.append((path, number))
        step.after = State(count)
        if found or (result is None and written):
            return None
        return "its result is no tensor"

    def _look_at_caller(self, step: Step, caller: FrameType | None, written: bool) -> None:
        """Note where the call stands, and what variables its result is assigned to."""
        outer = caller
        while outer is not None:
            if outer.f_globals.get("__name__") == _HOME:
                step.auxiliary_outputs = []
                break
            site = site_of(outer)
            step.auxiliary_outputs = site.names
            step.renames = written and not site.discarded
            if not site.returned and outer.f_globals.get("__name__") != _MACHINERY:
                break
            outer = outer.f_back
        step.stack = caller and user_stack(caller)

    # ---- graphs run here

    def need(self, segment: Segment) -> None:
        """A pending tensor is read."""
        if segment is not self._segment:
            raise RuntimeError("the graph that computes this tensor has failed")
        frame: FrameType | None = sys._getframe(3)
        self.break_graph("a value is needed outside of recorded calls", frame)

    def break_graph(
        self, reason: str, frame: FrameType | None = None, values: Iterable[Any] = ()
    ) -> None:
        """Compute what was recorded, because of what is to happen now in a frame.

        Unsupported if the function has to be one graph. Of the `values` pending ones come first
        among the results of the graph.
        """
        frame = outside(frame or sys._getframe(1))
        if self._eager:
            self.cache.refuse(self._site)
        elif self.cache.fullgraph:
            raise Unsupported(described(reason, frame), user_stack(frame) if frame else [])
        self._run(reason, frame, values)
        self._begin(None if frame is None else (frame.f_code, frame.f_lasti))

    def abandon(self) -> None:
        """Compute nothing more."""
        if self._segment is not None:
            self._segment.let_go()
            self._segment = None

    def finish(self, result: Any) -> None:
        """Compute what the function returns, and all else that is pending."""
        if self._segment is not None:
            self._follow(self._segment, Ambient.now())
            self._run(None, None, (result,))

    def _run(self, reason: str | None, frame: FrameType | None, values: Iterable[Any]) -> None:
        segment = self._segment
        if segment is None:
            return
        if not segment.path:
            self._segment = None
            return
        live = _live(segment, values)
        segment.let_go()
        compiled = segment.state.compiled.get(tuple(live))
        with suspended(self):
            try:
                with self._surroundings.restored():
                    if compiled is None:
                        stack = [] if frame is None else user_stack(frame)
                        compiled = self.cache.compile(segment, live, self._site, reason, stack)
                    results = compiled(*segment.inputs.values())
            finally:
                self._segment = None
        for pending, result in zip(live.values(), results, strict=True):
            settle(pending, result)


def _advance(segment: Segment, step: Step) -> Any:
    """Take a known call as done: what it gives."""
    count = segment.state.count
    for number, given in step.inputs:
        segment.inputs[number] = segment.new[number - count]
        segment.snapshots[number] = given.snapshot
    segment.path.append(step)
    segment.state = step.after
    if step.single is not None:
        number, snapshot = step.single
        tensor = pend(segment, number)
        segment.waiting[number] = weakref.ref(tensor)
        segment.snapshots[number] = snapshot
        return tensor
    made: dict[int, Any] = {}
    for number, snapshot in step.fresh:
        tensor = made[number] = pend(segment, number)
        segment.waiting[number] = weakref.ref(tensor)
        segment.snapshots[number] = snapshot
    for number, snapshot in step.changed:
        segment.snapshots[number] = snapshot
    for number in step.writes:
        segment.write(number)
    assert step.results is not None
    found = [
        (made[each.number] if each.number in made else segment.tensor(each.number))
        if each.__class__ is Value
        else each
        for each in step.results
    ]
    return step.rebuild(iter(found))


def _evaluate(step: Step, fakes: dict[int, Any]) -> Any:
    """What a call gives for fakes."""
    args, kwargs = replaced((step.args, step.kwargs), fakes.__getitem__)
    function = getattr(Tensor, step.target) if step.form == "call_method" else step.target
    with warnings.catch_warnings(), step.ambient.again():
        warnings.simplefilter("ignore")  # the graph warns
        return FAKES.run(function, args, kwargs)


def _at(result: Any, path: tuple) -> Any:
    for index in path:
        result = result[index]
    return result


def _flatten(result: Any, path: tuple, leaves: list[tuple[tuple, Any]]) -> Any:
    """Append the leaves of a result with the ways to them, and give what rebuilds it of others."""
    kind = type(result)
    if (isinstance(result, tuple) and kind is not Size) or kind is list:
        parts = [_flatten(entry, (*path, place), leaves) for place, entry in enumerate(result)]
        if hasattr(kind, "_fields"):
            return lambda source: kind(*[part(source) for part in parts])
        return lambda source: kind([part(source) for part in parts])
    if isinstance(result, dict):
        pairs = [(name, _flatten(each, (*path, name), leaves)) for name, each in result.items()]
        return lambda source: kind([(name, part(source)) for name, part in pairs])
    leaves.append((path, result))
    return next


def _live(segment: Segment, values: Iterable[Any]) -> dict[int, Any]:
    """The pending tensors that somebody holds, by their numbers; those among `values` first."""
    live: dict[int, Any] = {}
    leaves: list[tuple[tuple, Any]] = []
    for each in values:
        _flatten(each, (), leaves)
    for _, leaf in leaves:
        number = segment.number(leaf) if isinstance(leaf, Unsettled) else None
        if number in segment.waiting:
            live[number] = leaf
    for number, reference in segment.waiting.items():
        tensor = reference()
        if tensor is not None:
            live.setdefault(number, tensor)
    return live


class suspended:  # noqa: N801  a block, such as contextlib's
    """A block in which a recorder sees nothing."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        self._inside = inside.recorder, inside.active
        inside.recorder, inside.active = None, False
        modes = state.modes
        self._place = modes.index(self._recorder) if self._recorder in modes else None
        if self._place is not None:
            del modes[self._place]
        active_modes.pop()

    def __exit__(self, *error: object) -> None:
        active_modes.append(None)
        if self._place is not None:
            state.modes.insert(self._place, self._recorder)
        inside.recorder, inside.active = self._inside


def outside(frame: FrameType | None) -> FrameType | None:
    """The first frame of a program, from `frame` outwards."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
    return frame


def user_stack(frame: FrameType) -> traceback.StackSummary:
    """Where a frame stands: the frames of a program that lead there, the innermost last."""
    found = []
    outer: FrameType | None = frame
    while outer is not None:
        if outer.f_globals.get("__name__", "") == _HOME:
            break
        if not outer.f_globals.get("__name__", "").startswith(_PACKAGE):
            found.append((outer, outer.f_lineno))
        outer = outer.f_back
    return traceback.StackSummary.extract(reversed(found))


def described(reason: str, frame: FrameType | None) -> str:
    """The text of an error about a reason and a place."""
    where = "" if frame is None else "".join(user_stack(frame).format())
    return f"{reason}\n\nfrom user code:\n{where}" if where else reason
