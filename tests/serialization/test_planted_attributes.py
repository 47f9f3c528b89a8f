"""Attributes that a file gives to objects, and what would trust them afterwards."""

from __future__ import annotations

import collections
import ctypes
import io
import pickle

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.serialization.pickles import archive, integer, tensor, text

SECRET = ctypes.create_string_buffer(b"a secret" * 8)
SHOWN = list(b"a secret")
ADDRESS = ctypes.addressof(SECRET)

ORDERED_DICT = b"ccollections\nOrderedDict\n)R"
TENSOR = tensor(0, (4,), (1,))[2:-1]
POINT = b"ctests.serialization.test_planted_attributes\n%s\n)\x81"

#: Names that Python, NumPy or this package asks objects for.
NAMES = (
    "__array_interface__",
    "__array_struct__",
    "__array__",
    "__array_priority__",
    "__array_ufunc__",
    "__array_function__",
    "__array_namespace__",
    "__array_wrap__",
    "__cuda_array_interface__",
    "__dlpack__",
    "__dlpack_device__",
    "__torch_function__",
    "__class__",
    "__dict__",
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getattr__",
    "__index__",
    "__len__",
    "__iter__",
    "__buffer__",
    "__del__",
    "__wrapped__",
)
#: Names by which tensors are what they are.
OWN = (
    "_storage", "_edge", "_view", "_grad", "_frozen", "_retains_grad", "_post_accumulate_hooks",
    "_backward_hooks", "grad", "data", "shape", "dtype", "device", "requires_grad", "backward",
    "numpy", "grad_fn", "is_leaf", "_version",
)  # fmt: skip


class Point:
    """A class that a user lets files have."""

    limit = 3


class Slotted:
    """Another, with slots."""

    __slots__ = ("x",)


class Mapped(dict):
    """Another, whose items are set."""


class Marked(tlc.Tensor):
    """Another, of tensors."""

    mark = "none"


CLASSES = [Point, Slotted, Mapped, Marked]


def interface() -> bytes:
    """The pickle of an array interface that shows the secret."""
    entries = {
        "version": integer(3),
        "typestr": text("|u1"),
        "shape": integer(64) + b"\x85",
        "data": integer(ADDRESS) + b"\x89\x86",
    }
    return b"}(" + b"".join([text(name) + value for name, value in entries.items()]) + b"u"


def state(name: str, value: bytes) -> bytes:
    return b"}" + text(name) + value + b"s"


def planted(name: str, value: bytes) -> dict[str, bytes]:
    """Pickles that give an object an attribute, by each way that there is."""
    given = state(name, value)
    rebuilt = b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
    arguments = TENSOR[TENSOR.index(b"((") :][:-1]  # those of the call
    module = b"ctests.serialization.test_planted_attributes\n"
    parameter = b"ctorch._utils\n_rebuild_parameter_with_state\n(" + TENSOR + b"\x88N"
    return {
        "an OrderedDict": ORDERED_DICT + given + b"b",
        "an OrderedDict's slots": ORDERED_DICT + b"(N" + given + b"tb",
        "a Parameter": parameter + given + b"tR",
        "a Parameter's slots": parameter + b"N" + given + b"\x86tR",
        "a Parameter, from pairs": parameter + b"](" + text(name) + value + b"\x86etR",
        "a tensor": rebuilt + b"ctorch\nTensor\n" + arguments + given + b"tR",
        "a tensor of a user's": rebuilt + module + b"Marked\n" + arguments + given + b"tR",
        "a user's object": POINT % b"Point" + given + b"b",
        "a user's object's slots": POINT % b"Point" + b"N" + given + b"\x86b",
        "a user's object, twice": POINT % b"Point" + b"}b" + given + b"b",
        "a user's slots": POINT % b"Slotted" + b"N" + given + b"\x86b",
        "a user's dict": POINT % b"Mapped" + given + b"b",
        "nested": b"]" + ORDERED_DICT + given + b"ba",
    }


WAYS = tuple(planted("a", b"N"))
#: Those of them by which no attribute comes at all.
UNUSUAL = {"an OrderedDict's slots", "a Parameter, from pairs", "a user's slots"}


def load(pickled: bytes):
    with tlc.serialization.safe_globals(CLASSES):
        return tlc.load(archive(b"\x80\x02" + pickled + b".", _0=bytes(16)), map_location="cpu")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_names_with_a_meaning_are_refused(name, way):
    with pytest.raises(pickle.UnpicklingError):
        load(planted(name, interface())[way])


@pytest.mark.parametrize("way", [way for way in WAYS if "Parameter" in way or "tensor" in way])
@pytest.mark.parametrize("name", OWN)
def test_what_tensors_are_is_refused(name, way):
    with pytest.raises(pickle.UnpicklingError):
        load(planted(name, b"K\x01")[way])


@pytest.mark.parametrize("way", sorted(set(WAYS) - UNUSUAL))
def test_other_names_are_set(way):
    value = load(planted("note", b"K\x07")[way])
    value = value[0] if way == "nested" else value
    assert value.note == 7


def test_defaults_of_a_users_class_of_tensors():
    value = load(planted("mark", text("one"))["a tensor of a user's"])
    assert type(value) is Marked and (value.mark, Marked.mark) == ("one", "none")


def test_items_are_no_attributes():
    """A key that looks like a name is a key."""
    for made in (b"}", ORDERED_DICT, POINT % b"Mapped"):
        value = load(made + text("__array_interface__") + interface() + b"s")
        assert list(value) == ["__array_interface__"]
        assert getattr(value, "__dict__", {}) == {}
        assert not reads_the_secret(value)


READERS = {
    "tensor": tlc.tensor,
    "tensor of a list": lambda x: tlc.tensor([x]),
    "tensor of lists": lambda x: tlc.tensor([[x], [x]]),
    "as_tensor": tlc.as_tensor,
    "asarray": tlc.asarray,
    "from_numpy": tlc.from_numpy,
    "from_dlpack": tlc.from_dlpack,
    "array_api": lambda x: tlc.array_api.asarray(x),
    "Parameter": tlc.nn.Parameter,
    "index": lambda x: tlc.arange(256)[x],
    "set": lambda x: tlc.zeros(64).__setitem__(slice(None), x),
    "add": lambda x: tlc.zeros(64) + x,
    "radd": lambda x: x + tlc.zeros(64),
    "divide": lambda x: x / tlc.ones(64),
    "new_tensor": lambda x: tlc.zeros(1).new_tensor(x),
    "Tensor": tlc.Tensor,
    "full": lambda x: tlc.full((2,), x),
    "where": lambda x: tlc.where(tlc.ones(64).bool(), x, x),
    "isin": lambda x: tlc.isin(tlc.arange(256), x),
    "stack": lambda x: tlc.stack([x, x]),
    "collate": lambda x: tlc.utils.data.default_collate([x, x]),
    "equal": lambda x: tlc.testing.assert_close(x, np.zeros(64)),
}


def reads_the_secret(value) -> list[str]:
    """The functions that show memory that the object names."""
    found = []
    for name, read in READERS.items():
        try:
            result = read(value)
        except Exception:  # whatever it says, it has not read
            continue
        if isinstance(result, tlc.Tensor) and result.flatten()[:8].tolist() == SHOWN:
            found.append(name)
    return found


def test_interfaces_of_types_alone_are_read():
    """Also where such an object comes from elsewhere."""
    shown = np.frombuffer(SECRET, np.uint8)
    assert {"tensor", "as_tensor", "asarray"} <= set(reads_the_secret(shown))
    for cls in (collections.OrderedDict, Point, Mapped, type("Later", (), {})):
        value = cls()
        vars(value).update({
            "__array_interface__": shown.__array_interface__,
            "__array__": shown.__array__,
            "__dlpack__": shown.__dlpack__,
            "__dlpack_device__": shown.__dlpack_device__,
            "dtype": shown.dtype,
            "shape": shown.shape,
            "strides": shown.strides,
        })  # fmt: skip
        assert bytes(np.asarray(value)[:8]) == b"a secret"  # NumPy would
        assert reads_the_secret(value) == []


def test_states_that_are_no_dict():
    for wrong in (b"]", b"K\x01", text("ab"), b"](" + text("ab") + text("cd") + b"e", b"\x88"):
        parameter = b"ctorch._utils\n_rebuild_parameter_with_state\n(" + TENSOR + b"\x88N"
        for pickled in (
            parameter + wrong + b"tR",
            ORDERED_DICT + wrong + b"b",
            POINT % b"Point" + wrong + b"b",
        ):
            if wrong == b"]" and pickled.startswith(b"ctests"):
                continue  # an empty state is none
            with pytest.raises(pickle.UnpicklingError):
                load(pickled)


def test_setstate_is_taken_from_the_type():
    """Not from what an earlier state has put there."""
    given = state("note", b"K\x01")
    first = b"}" + text("__setstate__") + b"ccollections\nOrderedDict\ns"
    with pytest.raises(pickle.UnpicklingError, match="cannot set the attribute '__setstate__'"):
        load(POINT % b"Point" + first + b"b" + given + b"b")


def test_checkpoints_keep_their_attributes():
    module = tlc.nn.BatchNorm1d(2)
    module.weight.note = "mine"
    stream = io.BytesIO()
    tlc.save([module.state_dict(), module.weight], stream)
    stream.seek(0)
    result, weight = tlc.load(stream)
    assert result._metadata == module.state_dict()._metadata
    assert weight.note == "mine"
