"""Every name of the standard is there, with the standard's signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict as strict
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tests.array_api.strategies import xp

#: What the judge exports beside the standard: its flags, its devices, its version.
ITS_OWN = {
    "ArrayAPIStrictFlags",
    "Device",
    "__version__",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}
#: Defaults by which the judge tells a keyword that older versions lack from one that was left out.
UNSET = "<Undef.UNDEF: 0>"
#: Methods of the judge's arrays that the standard does not ask for.
BEYOND = {"__buffer__", "__imatmul__", "__new__", "__reduce__"}
#: What other libraries call in another way, too (`test_consumers.py`).
LOOSER = {"diff", "where"}
#: Functions of the standard that are no primitives: they are made of others over Tensors.
COMPOSED = {
    "__array_namespace_info__", "broadcast_shapes", "isin", "linalg.cholesky", "linalg.cross",
    "linalg.diagonal", "linalg.matmul", "linalg.matrix_norm",
    "linalg.matrix_power", "linalg.matrix_transpose", "linalg.outer", "linalg.solve",
    "linalg.tensordot", "linalg.trace", "linalg.vecdot", "linalg.vector_norm",
}  # fmt: skip
METHODS = [
    name
    for name, value in vars(type(strict.zeros(1))).items()
    if callable(value) and (not name.startswith("_") or name.startswith("__"))
    if name not in BEYOND
]
PROPERTIES = ["T", "device", "dtype", "mT", "ndim", "shape"]


def names() -> Iterator[tuple[str, str]]:
    """(namespace, name) for all functions and constants."""
    for space in ("", "linalg", "fft"):
        home = getattr(strict, space) if space else strict
        for name in home.__all__:
            if name not in ITS_OWN:
                yield space, name


def member(namespace: Any, space: str, name: str) -> Any:
    return getattr(getattr(namespace, space) if space else namespace, name)


def parameters(function: Callable[..., Any]) -> list[tuple]:
    """Name, kind and default of each parameter."""
    return [
        (p.name, p.kind, None if repr(p.default) == UNSET else p.default)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize(("space", "name"), list(names()))
def test_name_and_signature(space: str, name: str) -> None:
    wanted, found = member(strict, space, name), member(xp, space, name)
    if inspect.isfunction(wanted):
        assert callable(found)
        assert parameters(found) == parameters(wanted) or name in LOOSER


def functions() -> dict[str, Callable[..., Any]]:
    """The standard's functions by the names that records have."""
    every = {f"{space}.{name}".lstrip("."): member(strict, space, name) for space, name in names()}
    return {name: value for name, value in every.items() if inspect.isfunction(value)}


def test_records_are_the_functions_of_the_standard() -> None:
    records = {name for name, record in PRIMITIVES.items() if record.standard}
    assert records | COMPOSED == set(functions()) and not records & COMPOSED


@pytest.mark.parametrize("name", sorted(set(functions()) - COMPOSED))
def test_a_record_takes_the_arguments_of_the_standard(name: str) -> None:
    """Its function of shapes is called with what the primitive is called with."""
    wanted = inspect.signature(functions()[name]).parameters.values()
    positional = [0 for p in wanted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {p.name: 0 for p in wanted if p.kind is p.KEYWORD_ONLY}
    named.pop("device", None)  # a namespace over arrays has one
    inspect.signature(PRIMITIVES[name].shapes).bind(*positional, **named)


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    """Methods may be called as the standard has it; they may take more, as PyTorch's do."""
    wanted = inspect.signature(getattr(strict.zeros(1), name)).parameters.values()
    found = list(inspect.signature(getattr(tlc.zeros(1), name)).parameters.values())
    for number, parameter in enumerate(wanted):
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.name == "stream":
            assert parameter.name in [other.name for other in found]
        else:
            assert found[number].kind in (
                parameter.POSITIONAL_ONLY,
                parameter.POSITIONAL_OR_KEYWORD,
            )


@pytest.mark.parametrize("name", PROPERTIES)
def test_properties(name: str) -> None:
    assert hasattr(tlc.zeros(2, 3), name)


def test_version() -> None:
    assert xp.__array_api_version__ == strict.__array_api_version__ == "2025.12"
