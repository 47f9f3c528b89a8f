"""The peak rates of a device: what is made of them, and how they are kept."""

from __future__ import annotations

import errno
import json
import math
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.profiler import roofline as room
from tensorflow_lite_clone.profiler.roofline import Roof, roof
from tests.device import DEVICE

RATES = 1e10, {"float32": 1e12, "float64": 5e11}


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where rates are kept, and nothing is known yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(room, "_known", {})
    return tmp_path / "tensorflow_lite_clone" / "roof.json"


@pytest.fixture
def measured(path, monkeypatch):
    """The devices that were measured, in no time."""
    devices = []

    def measure(device):
        devices.append(str(device))
        return RATES

    monkeypatch.setattr(room, "_measured", measure)
    return devices


def forget():
    room._known.clear()


# -- shares ---------------------------------------------------------------------------------------


@parameterized.expand(
    [
        ("by_operations", 2.0, 1e12, 1e9, 0.5),
        ("by_bytes", 2.0, 1e11, 1e10, 0.5),
        ("of_another_dtype", 2.0, 5e11, 0, 0.5, "float64"),
        ("of_one_not_measured", 2.0, 1e12, 0, 0.5, tlc.int32),
        ("faster_than_measured", 0.1, 0, 1e10, 10.0),
        ("of_nothing", 1.0, 0, 0, 0.0),
    ]
)
def test_share(_, seconds, flops, size, expected, dtype=tlc.float32):
    device = Roof("a device", *RATES)
    assert device.share(seconds, flops, size, dtype) == pytest.approx(expected)
    assert device.seconds(flops, size, dtype) == pytest.approx(expected * seconds)


def test_shares_that_are_not_known():
    assert math.isnan(Roof("a device", *RATES).share(0.0, 1, 1))
    assert math.isnan(Roof("a device", *RATES).share(math.nan, 1, 1))
    for flops, size in ((1, 1), (1, 0), (0, 1)):
        assert math.isnan(Roof("a device").share(1.0, flops, size))


def test_rounded_operands():
    gpu = Roof("a GPU", 1e12, {"float32": 1e13, "tf32": 1e14, "float16": 1e15})
    before = tlc.get_float32_matmul_precision()
    rates = []
    try:
        for precision in ("highest", "high"):
            tlc.set_float32_matmul_precision(precision)
            rates.append(gpu.flops_per_second(tlc.float32))
            assert gpu.flops_per_second("torch.float16") == 1e15
            assert Roof("a CPU", *RATES).flops_per_second(tlc.float32) == 1e12
    finally:
        tlc.set_float32_matmul_precision(before)
    assert rates == [1e13, 1e14]
    assert gpu.flops_per_second("tf32") == 1e14


# -- measuring ------------------------------------------------------------------------------------


def test_a_measurement(path, monkeypatch):
    """Of small arrays: random numbers, precision and gradients are as before."""
    monkeypatch.setattr(room, "_COPIED", 1 << 16)
    monkeypatch.setattr(room, "_LARGEST", 256)
    states = []
    for _ in range(2):
        states.append((tlc.get_rng_state().tolist(), tlc.get_float32_matmul_precision()))
        found = roof(DEVICE)
    assert states[0] == states[1]
    assert tlc.is_grad_enabled()
    assert found.copy_bytes_per_second > 1e6
    assert found.flops.keys() >= {"float32", "float64"}
    assert min(found.flops.values()) > 1e6
    assert json.loads(path.read_text())[next(iter(room._known))]["name"] == found.name


@pytest.mark.parametrize("error", [RuntimeError("out of memory"), MemoryError()])
def test_a_device_that_cannot_be_measured_now(path, monkeypatch, error):
    def measure(device):
        raise error

    monkeypatch.setattr(room, "_measured", measure)
    found = roof()
    assert math.isnan(found.copy_bytes_per_second)
    assert found.flops == {}
    assert room._known == {}  # the next try may do better
    assert not path.exists()


# -- keeping --------------------------------------------------------------------------------------


def test_measured_once(path, measured):
    first = roof()
    assert roof("cpu") is first
    assert first == Roof(first.name, *RATES)
    forget()
    assert roof() == first  # from the file
    assert measured == ["cpu"]


def test_two_at_once(path, measured, monkeypatch):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(roof, ["cpu"] * 8))
    assert measured == ["cpu"]
    assert len(set(map(id, found))) == 1


def test_another_number_of_threads_is_measured_anew(path, measured, monkeypatch):
    here = room.get_env_info()
    roof()
    monkeypatch.setattr(room, "get_env_info", lambda: here._replace(num_threads=77))
    roof()
    forget()
    roof()
    assert len(measured) == 2
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"cpu',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"[1, 2]",
        {"name": 3},
        {"name": "x", "bandwidth": 3},
        {"name": "x", "copy_bytes_per_second": "fast", "flops": {"float32": 1.0}},
        {"name": "x", "copy_bytes_per_second": -1.0, "flops": {"float32": 1.0}},
        {"name": "x", "copy_bytes_per_second": math.nan, "flops": {"float32": 1.0}},
        {"name": "x", "copy_bytes_per_second": 1.0, "flops": {}},
        {"name": "x", "copy_bytes_per_second": 1.0, "flops": [1.0]},
    ],
    ids="empty cut_off no_text deep list number form word negative nan rates rate_list".split(),
)
def test_a_file_that_cannot_be_read(path, measured, content):
    key, name = room._identity(tlc.device("cpu"))
    path.parent.mkdir()
    path.write_bytes(content if isinstance(content, bytes) else json.dumps({key: content}).encode())
    assert roof() == Roof(name, *RATES)
    forget()
    assert roof() == Roof(name, *RATES)
    assert measured == ["cpu"]  # the file is good again


def test_roofline_file_keeps_other_devices(path, measured):
    path.parent.mkdir()
    other = {"name": "x", "copy_bytes_per_second": 1.0, "flops": {"float32": 2.0}}
    path.write_text(json.dumps({"other": other, "bad": 3}))
    roof()
    entries = json.loads(path.read_text())
    assert entries["other"] == other
    assert len(entries) == 2  # and "bad" is gone


def test_a_folder_that_cannot_be_made(path, measured):
    path.parent.write_text("a file is in the way")
    first = roof()
    assert roof() is first
    assert measured == ["cpu"]


def test_a_folder_that_cannot_be_written(path, measured, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "read-only")

    monkeypatch.setattr(room, "whole_file", refuse)
    assert roof() is roof()
    assert measured == ["cpu"]
    assert not path.exists()


def test_a_full_disk(path, measured, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(room.json, "dump", refuse)
    assert roof() is roof()
    assert list(path.parent.iterdir()) == []  # no draft is left


@pytest.mark.parametrize("folder", ["relative/folder", ""])
def test_places_that_do_not_count(monkeypatch, folder):
    monkeypatch.setenv("XDG_CACHE_HOME", folder)
    assert room._path() == os.path.expanduser("~/.cache/tensorflow_lite_clone/roof.json")
    monkeypatch.setattr(room.os.path, "expanduser", lambda path: path)  # nobody is at home
    assert room._path() is None
    assert room._read() == {}
    room._write(Roof("x", *RATES), "key")
