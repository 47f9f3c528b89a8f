"""Pickles of an attacker: refused by name, without running or filling anything."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import struct
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.serialization.pickles import archive, integer, tensor, text
from tests.tools.markdown import ROOT

ERRORS = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)


class Runs:
    """Calls a function when it is unpickled."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def ran(*arguments):
    """What an attacker wants to run: it leaves a trace."""
    TRACE.append(arguments)


TRACE: list = []

CALLS = {
    "os.system": (Runs(os.system, "true"), r"GLOBAL \w+\.system was not an allowed global"),
    "eval": (Runs(eval, "1"), r"GLOBAL builtins\.eval was not an allowed global"),
    "exec": (Runs(exec, "1"), r"builtins\.exec"),
    "getattr": (Runs(getattr, "a", "b"), r"builtins\.getattr"),
    "__import__": (Runs(__import__, "os"), r"builtins\.__import__"),
    "popen": (Runs(subprocess.Popen, "true"), r"GLOBAL subprocess\.Popen was not an allowed"),
    "own": (Runs(ran, 1), r"test_hostile_pickles\.ran was not an allowed"),
    "nested": ({"a": [1, (2, {"b": Runs(ran, 2)})]}, r"test_hostile_pickles\.ran"),
    "beside a tensor": ([tlc.ones(2), Runs(ran, 3)], r"test_hostile_pickles\.ran"),
    "memoised": ([[runs := Runs(ran, 4), runs]], r"test_hostile_pickles\.ran"),
    "as a key": ({Runs(ran, 5): 1}, r"test_hostile_pickles\.ran"),
    "numpy": (np.float64(1.5), r"scalar was not an allowed global"),
    "an array": (np.ones(2), r"_(reconstruct|frombuffer) was not an allowed global"),
}


@pytest.mark.parametrize("form", ({}, {"_use_new_zipfile_serialization": False}))
@pytest.mark.parametrize("protocol", (2, 4, 5))
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_refused(name, protocol, form):
    value, message = CALLS[name]
    stream = io.BytesIO()
    tlc.save(value, stream, pickle_protocol=protocol, **form)
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed(.|\n)*" + message):
        tlc.load(stream)
    assert TRACE == []


REDUCE_OF = b"\x80\x02c%s\n(%stR."
REFUSED = {
    "INST": (b"(S'true'\nios\nsystem\n.", "Unsupported operand"),
    "OBJ": (b"(cos\nsystem\no.", "not an allowed global|Unsupported operand"),
    "EXT1": (b"\x80\x02\x82\x01.", "Unsupported operand 130"),
    "EXT2": (b"\x80\x02\x83\x01\x00.", "Unsupported operand 131"),
    "EXT4": (b"\x80\x02\x84\x01\x00\x00\x00.", "Unsupported operand 132"),
    "NEWOBJ_EX": (b"\x80\x04)}\x92.", "Unsupported operand 146"),
    "PERSID": (b"P0\n.", "Unsupported operand 80"),
    "NEXT_BUFFER": (b"\x80\x05\x97.", "Unsupported operand 151"),
    "NEWOBJ of a tensor": (b"\x80\x02ctorch\nTensor\n)\x81.", "unrecognized class Tensor"),
    "call of a class": (b"\x80\x02ctorch\nTensor\n(I2\ntR.", "Unsupported operand 73"),
    "Tensor of a size": (REDUCE_OF % (b"torch\nTensor", integer(2**40)), "reduce for unrecog"),
    "call of a dtype": (REDUCE_OF % (b"torch\nfloat32", b""), "reduce for unrecognized function"),
    "call of text": (b"\x80\x02" + text("system") + b")R.", "reduce for unrecognized function"),
    "call of a list": (b"\x80\x02])R.", "reduce for unrecognized function"),
    "arguments in a list": (b"\x80\x02ctorch\ndevice\n]R.", "arguments must be a tuple"),
    "BUILD of a list": (b"\x80\x02]}b.", "Can only build"),
    "BUILD of a class": (b"\x80\x02ctorch\nTensor\n}b.", "Can only build"),
    "BUILD of a tensor": (tensor(0, (4,), (1,))[:-1] + b"}b.", "Can only build"),
    "BUILD over a method": (
        b"\x80\x02ccollections\nOrderedDict\n)R}" + text("items") + b"K\x01sb.",
        "does not take an attribute 'items'",
    ),
    "BUILD of __class__": (
        b"\x80\x02ccollections\nOrderedDict\n)R}" + text("__class__") + b"K\x01sb.",
        "cannot set the attribute '__class__'",
    ),
    "BUILD with a setter": (
        b"\x80\x02ccollections\nOrderedDict\n)R}" + text("__setstate__") + b"cos\nsystem\nsb.",
        "GLOBAL os.system was not an allowed global",
    ),
    "dotted name": (b"\x80\x04" + text("torch") + text("Tensor.__init__") + b"\x93.", "not an all"),
    "deep module": (b"\x80\x02ctorch.serialization\nos.system\n.", "not an allowed global"),
    "a name of ours": (
        b"\x80\x02ctensorflow_lite_clone.backends\nimport_module\n.", "not an allowed global"
    ),
    "unknown name of torch": (b"\x80\x02ctorch.hub\nload\n.", "GLOBAL torch.hub.load was not an"),
    "Python 2's name": (b"\x80\x02c__builtin__\neval\n.", r"GLOBAL builtins\.eval was not"),
    "STACK_GLOBAL of numbers": (b"\x80\x04K\x01K\x02\x93.", "STACK_GLOBAL requires str"),
    "rebuild of what is no tensor": (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nctorch\nTensor\n)}tR.",
        "GLOBAL os.system was not an allowed global",
    ),
    "rebuild by another function": (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\ndevice\nctorch\nTensor\n("
        + text("cpu") + b"t}tR.",
        "expected a tensor",
    ),
    "rebuild over methods": (
        b"\x80\x02ctorch._utils\n_rebuild_parameter_with_state\n("
        + tensor(0, (4,), (1,))[2:-1] + b"\x88N}" + text("backward") + b"K\x01stR.",
        "does not take an attribute 'backward'",
    ),
    "empty stack": (b"\x80\x02R.", "IndexError|pop from empty"),
    "no mark": (b"\x80\x02K\x01t.", "IndexError|no MARK"),
    "mark as a value": (b"\x80\x02((\x85.", "unexpected MARK|IndexError"),
    "memo that is not there": (b"\x80\x02h\x05.", "KeyError"),
    "items of text": (b"\x80\x02" + text("a") + b"(K\x01e.", "Can not add items to str"),
    "odd items": (b"\x80\x02}(K\x01u.", "odd number of items"),
    "list as key": (b"\x80\x02}]K\x01s.", "unhashable"),
    "protocol": (b"\x80\x63N.", "unsupported pickle protocol"),
    "bad text": (b"\x80\x02X\x02\x00\x00\x00\xff\xfe.", "UnicodeDecodeError"),
    "negative length": (b"\x80\x02T\xff\xff\xff\xff.", "negative length"),
    "storage that is no tuple": (b"\x80\x02K\x01Q.", "persistent_load id must be tuple"),
    "storage of no kind": (b"\x80\x02(" + text("storage") + b"NNNNtQ.", "expected text"),
    "part of no kind": (tensor(0, (4,), (1,)).replace(b"tQ", b"]tQ"), "a part of a storage needs"),
    "part of parts": (tensor(0, (4,), (1,)).replace(b"tQ", b"K\x01NN\x87tQ"), "a part of a sto"),
    "another reference": (b"\x80\x02" + text("x") + b"\x85Q.", "Unknown typename"),
    "bytearray of a size": (REDUCE_OF % (b"builtins\nbytearray", integer(2**40)), "not expected"),
    "decompressing codec": (
        REDUCE_OF % (b"_codecs\nencode", text("x") + text("zlib")), "not in zlib"
    ),
    "set of a mapping": (REDUCE_OF % (b"builtins\nset", b"}"), "not expected here"),
    "complex of text": (REDUCE_OF % (b"builtins\ncomplex", text("1")), "not expected here"),
    "size of text": (REDUCE_OF % (b"torch\nSize", text("abc")), "not expected here"),
    "layout": (REDUCE_OF % (b"torch.serialization\n_get_layout", text("os")), "no such layout"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    pickled, message = REFUSED[name]
    with pytest.raises(pickle.UnpicklingError, match=message):
        tlc.load(archive(pickled, _0=bytes(16)))


def test_setstate_of_a_class_that_is_not_listed():
    class Trap:
        def __setstate__(self, state):
            ran(state)

    trap = Trap()
    trap.a = 1
    globals()["Trap"], Trap.__qualname__ = Trap, "Trap"
    stream = io.BytesIO()
    tlc.save(trap, stream)
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global: GLOBAL \S+\.Trap"):
        tlc.load(stream)
    assert TRACE == []


# -- memory -----------------------------------------------------------------------------------


def shared_tuples(levels: int) -> bytes:
    return b"\x80\x02)" + b"".join(
        [b"q" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(levels)]
    )


COPIES = b"\x80\x02]q\x00(" + b"K\x01" * 5000 + b"e0"
ENDLESS = shared_tuples(60)[2:]  # as it is printed
BOMBS = {
    "name of a storage": b"\x80\x02(" + text("storage") + ENDLESS * 4 + b"tQ.",
    "reference": b"\x80\x02" + ENDLESS + b"\x85Q.",
    "call": b"\x80\x02" + ENDLESS + b")R.",
    "new object": b"\x80\x02" + ENDLESS + b")\x81.",
    "build": b"\x80\x02" + ENDLESS + b"}b.",
    "device": b"\x80\x02ctorch\ndevice\n" + ENDLESS + b"\x85R.",
    "layout": b"\x80\x02ctorch.serialization\n_get_layout\n" + ENDLESS + b"\x85R.",
    "sizes": tensor(0, (4,), (1,))[:-15] + ENDLESS + b")\x89}tR.",
    "attributes": b"\x80\x02ccollections\nOrderedDict\n)R" + ENDLESS + b"b.",
    "items": b"\x80\x02" + ENDLESS + b"K\x01K\x02s.",
    "text in another encoding": REDUCE_OF % (b"_codecs\nencode", text("x") + ENDLESS),
    "text of 4 GB": b"\x80\x02X\xff\xff\xff\xff" + b"x" * 100,
    "text of exabytes": b"\x80\x04\x8d" + b"\xff" * 8 + b"x" * 100,
    "bytes of exabytes": b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f",
    "bytearray of exabytes": b"\x80\x05\x96" + b"\xff" * 7 + b"\x0f",
    "number of 2 GB": b"\x80\x02\x8b\xff\xff\xff\x7f" + b"1" * 100,
    "name without end": b"\x80\x02c" + b"a" * 100_000 + b"\n.",
    "frame of exabytes": b"\x80\x04\x95" + b"\xff" * 8 + b"N",
    "memo": b"\x80\x02K\x01" + b"".join([b"r" + struct.pack("<I", n * 7919) for n in range(20000)]),
    "nesting": b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
    "deep key": b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s.",
    "key of shared parts": b"\x80\x02}" + shared_tuples(60)[2:] + b"K\x01s.",
    "set of shared parts": b"\x80\x04\x8f(" + shared_tuples(60)[2:] + b"\x90.",
    "many copies": COPIES + b"ctorch\nSize\nq\x01(" + b"h\x01h\x00\x85R" * 5000 + b"t.",
    "many sets": COPIES + b"cbuiltins\nset\nq\x01(" + b"h\x01h\x00\x85R" * 5000 + b"t.",
    "recursive rebuild": b"\x80\x02"
    + b"ctorch._tensor\n_rebuild_from_type_v2\n" * 1
    + b"q\x00(" + b"h\x00(" * 5000 + b")" + b"t" * 5001 + b"R.",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_memory_is_bounded(name):
    stream = archive(BOMBS[name], _0=bytes(16))
    tracemalloc.start()
    try:
        tlc.load(stream)
    except (pickle.UnpicklingError, EOFError, RuntimeError):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 64_000_000


@pytest.mark.parametrize("name", sorted(set(BOMBS) - {"nesting"}))  # a deep list as such is a list
def test_bombs_are_refused(name):
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        tlc.load(archive(BOMBS[name], _0=bytes(16)))


# -- time -------------------------------------------------------------------------------------

PERIOD = 2**61 - 1  # of the hashes of numbers
ALIKE = [integer(n * PERIOD) for n in range(1, 30_000)]
#: -1 and -2 have one hash.
ONES = b"J\xff\xff\xff\xff", b"J\xfe\xff\xff\xff"
TUPLES = [b"(" + b"".join([ONES[n >> k & 1] for k in range(14)]) + b"t" for n in range(2**14)]
REALS = [struct.pack(">d", float(n)) for n in range(30_000)]
NEGATIVE_REALS = [struct.pack(">d", float(-1_000_003 * n)) for n in range(30_000)]
COMPLEX = [b"h\x00G%sG%s\x86RN" % pair for pair in zip(NEGATIVE_REALS, REALS, strict=True)]
PAIRS = b"](" + b"".join([key + b"N\x86" for key in ALIKE]) + b"e"
MANY = b"(" + b"h\x01" * 400_000 + b"t"
SLOW = {
    "keys": b"}(" + b"".join([key + b"N" for key in ALIKE]) + b"u",
    "keys one by one": b"}" + b"".join([key + b"Ns" for key in ALIKE]),
    "tuples": b"}(" + b"".join([key + b"N" for key in TUPLES]) + b"u",
    "complex": b"cbuiltins\ncomplex\nq\x00}(" + b"".join(COMPLEX) + b"u",
    "an OrderedDict": b"ccollections\nOrderedDict\n" + PAIRS + b"\x85R",
    "a set": b"\x8f(" + b"".join(ALIKE) + b"\x90",
    "a set that is called": b"cbuiltins\nset\n](" + b"".join(ALIKE) + b"e\x85R",
    "sizes to be multiplied": integer(2**62)
    + b"q\x010"
    + tensor(0, (), ())[2:].replace(b"(t(t\x89}tR.", MANY + MANY + b"\x89N}tR"),
}


@pytest.mark.parametrize("name", SLOW)
def test_time_is_bounded(name):
    """Work grows with the file, not with its square: these would take from seconds to hours."""
    stream = archive(b"\x80\x04" + SLOW[name] + b".", _0=bytes(16))
    began = time.process_time()
    with pytest.raises(pickle.UnpicklingError, match="one hash|dimensions"):
        tlc.load(stream)
    assert time.process_time() - began < 2


def test_ordinary_keys_are_taken():
    keys = [*range(-300, 300), *map(str, range(300)), *[n / 7 for n in range(300)], 2**70, None]
    value = [dict.fromkeys([*keys, (0.5, 1), (n, "a")]) for n in range(200)]
    stream = io.BytesIO()
    tlc.save(value, stream)
    stream.seek(0)
    assert tlc.load(stream) == value


# -- tensors beyond their memory ----------------------------------------------------------------

OUTSIDE = {
    "too long": tensor(0, (5,), (1,)),
    "offset": tensor(1, (4,), (1,)),
    "stride": tensor(0, (2, 2), (3, 1)),
    "huge": tensor(0, (2**62,), (1,)),
    "overflow": tensor(0, (2**32, 2**32), (2**32, 2**31)),
    "huge stride": tensor(0, (2,), (2**62,)),
    "huge offset": tensor(2**62, (1,), (1,)),
    "offset of nothing": tensor(2**62, (0,), (1,)),
    "more strides": tensor(0, (2,), (1, 1)),
    "fewer strides": tensor(0, (2, 2), (1,)),
}
NEGATIVE = {
    "negative size": tensor(0, (-1,), (1,)),
    "negative stride": tensor(3, (4,), (-1,)),
    "negative offset": tensor(-1, (1,), (1,)),
    "enormous": tensor(0, (2**70,), (0,)),
    "many dimensions": tensor(0, (1,) * 100, (1,) * 100),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_views_stay_inside(name):
    with pytest.raises(RuntimeError, match="out of bounds|mismatch in length"):
        tlc.load(archive(OUTSIDE[name], _0=bytes(16)))


@pytest.mark.parametrize("name", NEGATIVE)
def test_geometry_is_checked(name):
    with pytest.raises(pickle.UnpicklingError, match="ValueError"):
        tlc.load(archive(NEGATIVE[name], _0=bytes(16)))


@pytest.mark.parametrize("size", (0, 15, 33, 1000))
def test_storages_have_the_size_that_is_said(size):
    with pytest.raises(RuntimeError, match=f"storage 0 has {size} bytes, but is said to have 16"):
        tlc.load(archive(tensor(0, (4,), (1,)), _0=bytes(size)))


@pytest.mark.parametrize("key", ("1", "../0", "/etc/passwd", "", "../data.pkl/", "0\0"))
def test_keys_name_records_only(key):
    with pytest.raises(RuntimeError, match="file not found"):
        tlc.load(archive(tensor(0, (4,), (1,), key), _0=bytes(16)))


def test_a_deep_result_is_freed_without_harm():
    """In a process of its own, as a fault would be one of the interpreter."""
    program = (
        "import io, sys, tensorflow_lite_clone as tlc\n"
        "x = tlc.load(io.BytesIO(sys.stdin.buffer.read()))\n"
        "assert len(x) == 1\n"
        "del x\n"
    )
    data = archive(BOMBS["nesting"]).getvalue()
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, input=data, check=True, timeout=120)


@pytest.mark.parametrize("seed", range(200))
def test_random_pickles(seed):
    """Random opcodes, with the checksum right."""
    draw = random.Random(seed)
    words = [bytes([n]) for n in range(128)]
    words += [tensor(0, (4,), (1,))[2:-1], b"K\x01", b"h\x00", b"q\x00"]
    pickled = b"\x80\x02" + b"".join(draw.choices(words, k=draw.randrange(60))) + b"."
    with contextlib.suppress(*ERRORS):
        tlc.load(archive(pickled, _0=bytes(16)))
