"""Files that were changed at random: an error of the documented types, in bounded time and memory.

In a process of its own, whose memory the system limits.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tools.markdown import ROOT

pytest.importorskip("resource", reason="this system limits no memory")
PROGRAM = """
import collections, io, pickle, random, resource, signal, sys, warnings, zipfile
import tensorflow_lite_clone as tlc
from tests.serialization.pickles import archive

warnings.simplefilter("ignore")


def corpus():
    sparse = tlc.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
    values = [
        {"a": tlc.arange(12.0).view(3, 4), "n": [1, 2.5, "x"], "b": tlc.ones(3).bool()},
        [sparse, tlc.nn.Parameter(tlc.ones(2)), {1, 2}, b"x", bytearray(b"y"), tlc.Size([1, 2])],
        tlc.nn.Linear(2, 2).state_dict(),
        {"h": tlc.ones(3).half(), (1, 2): tlc.float16, "u": tlc.ones(2, dtype=tlc.uint16)},
    ]
    for value in values:
        for options in ({}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}):
            stream = io.BytesIO()
            tlc.save(value, stream, **options)
            yield stream.getvalue()


PIECES = [bytes([n]) for n in b"(tRbQ02sueaN]})." + bytes([0x85, 0x86, 0x87, 0x88, 0x93, 0x94])]
PIECES += [b"h\\0", b"q\\0", b"J\\xff\\xff\\xff\\xff", b"\\x8a\\x08" + b"\\xff" * 7 + b"\\x7f"]


def mutated(data, draw):
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 3, 6])):
        place, way = draw.randrange(len(data) + 1), draw.randrange(7)
        if way == 0:
            data[place : place + 1] = bytes([draw.randrange(256)])
        elif way == 1:
            del data[place : place + draw.randrange(1, 20)]
        elif way == 2:
            data[place:place] = draw.randbytes(draw.randrange(1, 9))
        elif way == 3:
            data[place : place + 4] = draw.choice([b"\\xff" * 4, bytes(4), b"\\xff" * 3 + b"\\x7f"])
        elif way == 4:
            other = draw.randrange(len(data) + 1)
            data[place : place + 30] = data[other : other + 30]
        elif way == 5:
            data[place:place] = draw.choice(PIECES)
        else:
            data = data[:place]
    return bytes(data)


def opened(data):
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        records = {name.partition("/")[2]: source.read(name) for name in source.namelist()}
    storages = {f"_{n[5:]}": value for n, value in records.items() if n.startswith("data/")}
    return records["data.pkl"], storages


files = list(corpus())
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
signal.alarm(60)
outcomes = collections.Counter()
for seed in range(3000):
    draw = random.Random(seed)
    data = draw.choice(files)
    if data[:2] == b"PK" and draw.random() < 0.7:  # a pickle whose checksum is right
        pickled, storages = opened(data)
        data = archive(mutated(pickled, draw), **storages).getvalue()
    else:
        data = mutated(data, draw)
    try:
        tlc.load(io.BytesIO(data), map_location="cpu")
        outcomes["loaded"] += 1
    except (pickle.UnpicklingError, RuntimeError, EOFError):
        outcomes["refused"] += 1
    except BaseException:
        print("seed", seed)
        raise
assert outcomes["loaded"] > 50 and outcomes["refused"] > 1000, outcomes
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_mutations():
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
