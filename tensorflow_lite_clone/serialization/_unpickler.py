"""The machine that reads pickles of strangers: no name is looked up that is not in the list.

It knows the opcodes that make containers, numbers and text, and of those that call something only
calls of listed functions (Python's documentation of `pickletools` describes the opcodes). Its
memory is bounded by the pickle's length: every piece that an opcode announces must be there, and
what listed functions copy is counted.
"""

from __future__ import annotations

import math
import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.serialization import _rebuild
from tensorflow_lite_clone.serialization._foreign import Foreign, Sightings
from tensorflow_lite_clone.serialization._safe import (
    BLOCKED,
    CALLABLE,
    COPYING,
    DEFAULT,
    Keys,
    added,
)
from tensorflow_lite_clone.tensor import Tensor

_LONGEST_LINE = 1000
_ERRORS = (
    TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, struct.error,
    RecursionError,
)  # fmt: skip
_MARK = object()
_OPCODES: dict[int, Callable[[Any], None]] = {}
_Handler = Callable[[Any], None]


class Source:
    """A file of known length, of which nothing is read beyond its end."""

    def __init__(self, file: Any, size: int) -> None:
        self._file = file
        self.left = self.size = size

    def read(self, count: int) -> bytes:
        """`count` bytes; EOFError when there are fewer."""
        if count > self.left:
            raise EOFError("Ran out of input")
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError("Ran out of input")
        self.left -= count
        return data

    def line(self) -> str:
        """The text up to the next end of a line."""
        data = bytearray()  # not every file has a `readline` that takes a limit
        while (byte := self.read(1)) != b"\n":
            data += byte
            if len(data) > _LONGEST_LINE:
                raise pickle.UnpicklingError("a name is too long")
        return data.decode("utf-8")


def on(*opcodes: bytes) -> Callable[[_Handler], _Handler]:
    """Let a function do what these opcodes say."""

    def register(handler: _Handler) -> _Handler:
        for opcode in opcodes:
            _OPCODES[opcode[0]] = handler
        return handler

    return register


class WeightsUnpickler:
    """Reads one pickle from `source`.

    `persistent_load` is given the names of storages; `room` is how many bytes the tensors of the
    file may have, for those that must be copied. `encoding` is that of the text that Python 2
    wrote, or "bytes" to leave it as it is.
    """

    def __init__(
        self,
        source: Source,
        persistent_load: Any = None,
        room: int = 0,
        encoding: str = "utf-8",
    ) -> None:
        self.source = source
        self.read = source.read
        self.persistent_load = persistent_load
        self.encoding = encoding
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.keys = Keys()
        self.added = added()
        self.away = False  # whether a storage is being loaded
        self.foreign = Sightings()
        self.budget = 1_000_000 + 16 * source.size + room

    def load(self) -> Any:
        """The object; UnpicklingError, EOFError or RuntimeError when it is not to be had."""
        try:
            while True:
                opcode = self.read(1)[0]
                if opcode == pickle.STOP[0]:
                    return self.pop()
                handler = _OPCODES.get(opcode)
                if handler is None:
                    raise pickle.UnpicklingError(f"Unsupported operand {opcode}")
                handler(self)
        except _ERRORS as error:
            if self.away:  # the error of a `map_location`
                raise
            raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error

    # -- the stack ----------------------------------------------------------------------------

    def pop(self) -> Any:
        """The topmost value."""
        value = self.stack.pop()
        if value is _MARK:
            raise pickle.UnpicklingError("unexpected MARK found")
        return value

    def top(self, kinds: Any) -> Any:
        """The topmost value, which must be one of these types, and stays."""
        value = self.stack[-1]
        if type(value) not in kinds:
            raise pickle.UnpicklingError(f"Can not add items to {type(value).__name__}")
        return value

    def pop_to_mark(self) -> list[Any]:
        """The values above the last mark."""
        stack = self.stack
        place = len(stack) - 1
        while stack[place] is not _MARK:  # IndexError without a mark
            place -= 1
            if place < 0:
                raise pickle.UnpicklingError("no MARK found")
        values = stack[place + 1 :]
        del stack[place:]
        return values

    def number(self, form: str) -> Any:
        """The next bytes as a number in one of struct's formats."""
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def sized(self, form: str) -> bytes:
        """The next bytes, behind their number in one of struct's formats."""
        count = self.number(form)
        if count < 0:
            raise pickle.UnpicklingError("a negative length")
        return self.read(count)

    def old_text(self, data: bytes) -> str | bytes:
        """What Python 2 wrote as text."""
        return data if self.encoding == "bytes" else data.decode(self.encoding)

    # -- names and calls ----------------------------------------------------------------------

    def find(self, module: str, name: str) -> Any:
        """What a name stands for; UnpicklingError when it is not in the list."""
        if (module, name) in NAME_MAPPING:
            module, name = NAME_MAPPING[module, name]
        elif module in IMPORT_MAPPING:
            module = IMPORT_MAPPING[module]
        full = f"{module}.{name}"
        foreign = self.foreign.look_up(module, name)
        if foreign is not None:
            return foreign
        if (module, name) in DEFAULT:
            return DEFAULT[module, name]
        if module.partition(".")[0] in BLOCKED:
            raise pickle.UnpicklingError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked. "
                f"Unsupported global: GLOBAL {full} was not an allowed global by default."
            )
        if full in self.added:
            return self.added[full]
        word = name if module == "builtins" else full
        raise pickle.UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{word}])` or the "
            f"`torch.serialization.safe_globals([{word}])` context manager to allowlist this "
            "global if you trust this class/function."
        )

    def is_added(self, value: Any) -> bool:
        """Whether a user has put this function or class on the list."""
        return any([value is entry for entry in self.added.values()])

    def spend(self, amount: int) -> None:
        """Count what is copied."""
        self.budget -= amount
        if self.budget < 0:
            raise pickle.UnpicklingError("the pickle copies more than it contains")

    def call(self, function: Any, arguments: Any) -> Any:
        """What a listed function gives."""
        if type(arguments) is not tuple:
            raise pickle.UnpicklingError("arguments must be a tuple")
        if type(function) is Foreign:
            return function
        if self.is_added(function):
            return function(*arguments)
        if not any([function is entry for entry in CALLABLE]):
            name = getattr(function, "__name__", f"of type {type(function).__name__}")
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {name}")
        if function in COPYING:
            self.spend(sum([len(a) for a in arguments if hasattr(a, "__len__")]))
        elif function in (_rebuild.rebuild_tensor_v2, _rebuild.rebuild_tensor_v3):
            if len(arguments) > (7 if function is _rebuild.rebuild_tensor_v3 else 6):
                sizes = _rebuild.whole_numbers("sizes", arguments[2])
                self.spend(16 * math.prod(sizes))  # conjugated late in PyTorch, a copy here
        elif function is _rebuild.rebuild_sparse_tensor:
            _, (indices, *_) = arguments
            if isinstance(indices, Tensor):  # they are all looked at, and may show one many times
                self.spend(indices.numel())
        elif function is _rebuild.rebuild_from_type:
            make, cls, values, state = arguments
            made = self.call(make, values)
            return _rebuild.rebuild_from_type(lambda: made, cls, (), state)
        return function(*arguments)

    def build(self, value: Any, state: Any) -> None:
        """Give an object its state."""
        if type(value) is OrderedDict:
            if type(state) is not dict:
                raise pickle.UnpicklingError("an OrderedDict's attributes must be a dict")
            _rebuild.take_attributes(value, state)
        elif self.is_added(type(value)):
            if hasattr(type(value), "__setstate__"):
                value.__setstate__(state)
                return
            slots: Any = {}
            if isinstance(state, tuple) and len(state) == 2:
                state, slots = state[0], state[1] or {}
            if state:
                vars(value).update({name: state[name] for name in _rebuild.attribute_names(state)})
            for name in _rebuild.attribute_names(slots):
                setattr(value, name, slots[name])
        elif type(value) is not Foreign:
            raise pickle.UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {type(value)}"
            )

    def put(self, target: Any, items: list[Any]) -> None:
        """Enter keys and values, which alternate, into a dictionary."""
        if len(items) % 2:
            raise pickle.UnpicklingError("odd number of items for SETITEMS")
        keys = items[::2]
        self.keys.weigh(keys)
        for key, value in zip(keys, items[1::2], strict=True):
            target[key] = value


@on(pickle.PROTO)
def _proto(vm: WeightsUnpickler) -> None:
    version = vm.read(1)[0]
    if version > pickle.HIGHEST_PROTOCOL:
        raise pickle.UnpicklingError(f"unsupported pickle protocol: {version}")


@on(pickle.FRAME)
def _frame(vm: WeightsUnpickler) -> None:
    vm.read(8)


@on(pickle.GLOBAL)
def _global(vm: WeightsUnpickler) -> None:
    module = vm.source.line()
    vm.stack.append(vm.find(module, vm.source.line()))


@on(pickle.STACK_GLOBAL)
def _stack_global(vm: WeightsUnpickler) -> None:
    name, module = vm.pop(), vm.pop()
    if type(name) is not str or type(module) is not str:
        raise pickle.UnpicklingError("STACK_GLOBAL requires str")
    vm.stack.append(vm.find(module, name))


@on(pickle.REDUCE)
def _reduce(vm: WeightsUnpickler) -> None:
    arguments = vm.pop()
    vm.stack[-1] = vm.call(vm.stack[-1], arguments)


@on(pickle.NEWOBJ)
def _newobj(vm: WeightsUnpickler) -> None:
    arguments, cls = vm.pop(), vm.pop()
    if not isinstance(cls, type) or not vm.is_added(cls):
        name = getattr(cls, "__name__", f"of type {type(cls).__name__}")
        raise pickle.UnpicklingError(f"Trying to create new object of unrecognized class {name}")
    vm.stack.append(cls.__new__(cls, *arguments))


@on(pickle.BUILD)
def _build(vm: WeightsUnpickler) -> None:
    state = vm.pop()
    vm.build(vm.stack[-1], state)


@on(pickle.BINPERSID)
def _persistent(vm: WeightsUnpickler) -> None:
    if vm.persistent_load is None:
        raise pickle.UnpicklingError("there are no storages here")
    name = vm.pop()
    if type(name) is not tuple:
        raise pickle.UnpicklingError("persistent_load id must be tuple")
    vm.away = True
    vm.stack.append(vm.persistent_load(name))
    vm.away = False


@on(pickle.MARK)
def _mark(vm: WeightsUnpickler) -> None:
    vm.stack.append(_MARK)


@on(pickle.POP)
def _pop(vm: WeightsUnpickler) -> None:
    vm.stack.pop()


@on(pickle.POP_MARK)
def _pop_mark(vm: WeightsUnpickler) -> None:
    vm.pop_to_mark()


@on(pickle.EMPTY_TUPLE)
def _empty_tuple(vm: WeightsUnpickler) -> None:
    vm.stack.append(())


@on(pickle.TUPLE)
def _tuple(vm: WeightsUnpickler) -> None:
    vm.stack.append(tuple(vm.pop_to_mark()))


@on(pickle.TUPLE1)
def _tuple1(vm: WeightsUnpickler) -> None:
    vm.stack.append((vm.pop(),))


@on(pickle.TUPLE2)
def _tuple2(vm: WeightsUnpickler) -> None:
    last, first = vm.pop(), vm.pop()
    vm.stack.append((first, last))


@on(pickle.TUPLE3)
def _tuple3(vm: WeightsUnpickler) -> None:
    last, middle, first = vm.pop(), vm.pop(), vm.pop()
    vm.stack.append((first, middle, last))


@on(pickle.EMPTY_LIST)
def _empty_list(vm: WeightsUnpickler) -> None:
    vm.stack.append([])


@on(pickle.APPEND)
def _append(vm: WeightsUnpickler) -> None:
    item = vm.pop()
    vm.top((list,)).append(item)


@on(pickle.APPENDS)
def _appends(vm: WeightsUnpickler) -> None:
    items = vm.pop_to_mark()
    vm.top((list,)).extend(items)


@on(pickle.EMPTY_DICT)
def _empty_dict(vm: WeightsUnpickler) -> None:
    vm.stack.append({})


@on(pickle.SETITEM)
def _setitem(vm: WeightsUnpickler) -> None:
    value, key = vm.pop(), vm.pop()
    vm.put(_dictionary(vm), [key, value])


@on(pickle.SETITEMS)
def _setitems(vm: WeightsUnpickler) -> None:
    items = vm.pop_to_mark()
    vm.put(_dictionary(vm), items)


def _dictionary(vm: WeightsUnpickler) -> Any:
    value = vm.stack[-1]
    if type(value) in (dict, OrderedDict):
        return value
    if isinstance(value, dict) and vm.is_added(type(value)):
        return value
    raise pickle.UnpicklingError(f"Can not set items of {type(value).__name__}")


@on(pickle.EMPTY_SET)
def _empty_set(vm: WeightsUnpickler) -> None:
    vm.stack.append(set())


@on(pickle.ADDITEMS)
def _additems(vm: WeightsUnpickler) -> None:
    items = vm.pop_to_mark()
    vm.keys.weigh(items)
    vm.top((set,)).update(items)


@on(pickle.NONE)
def _none(vm: WeightsUnpickler) -> None:
    vm.stack.append(None)


@on(pickle.NEWTRUE)
def _true(vm: WeightsUnpickler) -> None:
    vm.stack.append(True)


@on(pickle.NEWFALSE)
def _false(vm: WeightsUnpickler) -> None:
    vm.stack.append(False)


@on(pickle.LONG1)
def _long1(vm: WeightsUnpickler) -> None:
    vm.stack.append(int.from_bytes(vm.sized("<B"), "little", signed=True))


@on(pickle.LONG4)
def _long4(vm: WeightsUnpickler) -> None:
    vm.stack.append(int.from_bytes(vm.sized("<i"), "little", signed=True))


def _numbers() -> None:
    def reads(form: str) -> _Handler:
        return lambda vm: vm.stack.append(vm.number(form))

    def reads_text(form: str) -> _Handler:
        return lambda vm: vm.stack.append(vm.sized(form).decode("utf-8", "surrogatepass"))

    def reads_old_text(form: str) -> _Handler:
        return lambda vm: vm.stack.append(vm.old_text(vm.sized(form)))

    def reads_bytes(form: str, kind: Any = bytes) -> _Handler:
        return lambda vm: vm.stack.append(kind(vm.sized(form)))

    for opcode, form in {
        pickle.BININT: "<i",
        pickle.BININT1: "<B",
        pickle.BININT2: "<H",
        pickle.BINFLOAT: ">d",
    }.items():
        on(opcode)(reads(form))
    for opcode, form in {
        pickle.BINUNICODE: "<I",
        pickle.SHORT_BINUNICODE: "<B",
        pickle.BINUNICODE8: "<Q",
    }.items():
        on(opcode)(reads_text(form))
    for opcode, form in {pickle.BINSTRING: "<i", pickle.SHORT_BINSTRING: "<B"}.items():
        on(opcode)(reads_old_text(form))
    for opcode, form in {
        pickle.BINBYTES: "<I",
        pickle.SHORT_BINBYTES: "<B",
        pickle.BINBYTES8: "<Q",
    }.items():
        on(opcode)(reads_bytes(form))
    on(pickle.BYTEARRAY8)(reads_bytes("<Q", bytearray))


def _memory() -> None:
    def gets(form: str) -> _Handler:
        return lambda vm: vm.stack.append(vm.memo[vm.number(form)])

    def puts(form: str) -> _Handler:
        return lambda vm: vm.memo.__setitem__(vm.number(form), vm.stack[-1])

    on(pickle.BINGET)(gets("<B"))
    on(pickle.LONG_BINGET)(gets("<I"))
    on(pickle.BINPUT)(puts("<B"))
    on(pickle.LONG_BINPUT)(puts("<I"))
    on(pickle.MEMOIZE)(lambda vm: vm.memo.__setitem__(len(vm.memo), vm.stack[-1]))


_numbers()
_memory()
