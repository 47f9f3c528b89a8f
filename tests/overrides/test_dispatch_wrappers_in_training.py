"""Wrapper classes with `__torch_dispatch__` among what training does besides: files, clipping."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.overrides.dispatching import forget_classes

LIBRARIES = (tlc, torch)


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    """What comes after is a program without such classes."""
    yield
    forget_classes()


def wrapper(lib: Any) -> Any:
    """A class that holds another tensor, to which all operations go."""
    tree_map = lib.utils._pytree.tree_map

    class Wrapped(lib.Tensor):
        @staticmethod
        def __new__(cls, elem: Any) -> Any:
            return lib.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)

        def __init__(self, elem: Any) -> None:
            self.elem = elem

        def __repr__(self) -> str:
            return f"Wrapped({self.elem.tolist()})"

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            plain = lambda x: x.elem if isinstance(x, cls) else x
            result = func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
            return tree_map(lambda x: cls(x) if isinstance(x, lib.Tensor) else x, result)

    Wrapped.__qualname__ = f"{lib.__name__}_Wrapped"
    return Wrapped


WRAPPERS = {lib: wrapper(lib) for lib in LIBRARIES}
globals().update({kind.__qualname__: kind for kind in WRAPPERS.values()})  # where pickle looks


def layer(lib: Any) -> Any:
    result = lib.nn.Linear(2, 2)
    result.weight = lib.nn.Parameter(WRAPPERS[lib](lib.ones(2, 2)))
    result.bias = lib.nn.Parameter(lib.zeros(2))
    result(lib.ones(3, 2)).pow(2).sum().backward()
    return result


def through_file(lib: Any, value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    lib.save(value, file)
    file.seek(0)
    return lib.load(file, **options)


def clipped(lib: Any) -> Any:
    model = layer(lib)
    total = lib.nn.utils.clip_grad_norm_(model.parameters(), 0.5, error_if_nonfinite=True)
    largest = lib.nn.utils.get_total_norm([model.weight.grad], float("inf"))
    return [total, largest, model.weight.grad, model.bias.grad]


def initialized(lib: Any) -> Any:
    value = WRAPPERS[lib](lib.ones(2))
    lib.nn.init.uniform_(value, 1.0, 2.0)
    inside = bool((value.elem >= 1).all())
    return [inside, lib.nn.init.constant_(value, 3.0)]


def averaged(lib: Any) -> Any:
    model = layer(lib)
    average = lib.optim.swa_utils.AveragedModel(model)
    for _ in range(2):
        average.update_parameters(model)
    return average.module.weight


def moved(lib: Any) -> Any:
    value = WRAPPERS[lib](lib.ones(2))
    return value.to("cpu") is value, value.cpu() is value, value.to("cpu", lib.float64)


def pickled(lib: Any) -> Any:
    value = WRAPPERS[lib](lib.ones(2))
    value.tag = "kept"
    model = layer(lib)
    trip = lambda x: (pickle.loads(pickle.dumps(x)), through_file(lib, x, weights_only=False))
    with lib.serialization.safe_globals([WRAPPERS[lib]]):
        safely = through_file(lib, value)
    return [
        [[x, x.tag, x.requires_grad] for x in (*trip(value), safely)],
        [[x.requires_grad, isinstance(x, lib.nn.Parameter)] for x in trip(model.weight)],
        [[x.weight, x.weight.requires_grad] for x in (*trip(model), copy.deepcopy(model))],
    ]


def refused(lib: Any) -> Any:
    with pytest.raises(pickle.UnpicklingError):
        through_file(lib, WRAPPERS[lib](lib.ones(2)))


def rounded(value: Any) -> Any:
    """Text of what is compared, with four digits of each number."""
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    if hasattr(value, "elem"):
        return type(value).__name__, rounded(value.elem)
    if hasattr(value, "tolist"):
        return str(value.dtype), [round(x, 4) for x in value.flatten().tolist()]
    return value


@pytest.mark.parametrize(
    "program", [clipped, initialized, averaged, moved, pickled, refused], ids=lambda p: p.__name__
)
def test_as_pytorch(program: Callable[[ModuleType], Any]) -> None:
    ours, theirs = (rounded(program(lib)) for lib in LIBRARIES)
    assert ours == theirs


def test_memory_of_its_own_is_pickled() -> None:
    value = tlc.Tensor._make_subclass(Remembering, tlc.tensor([1.0, 2.0])).requires_grad_()
    value.tag = 1
    for twin in (pickle.loads(pickle.dumps(value)), through_file(tlc, value, weights_only=False)):
        assert type(twin) is Remembering and twin.tag == 1 and twin.requires_grad
        assert twin.detach().tolist() == [1.0, 2.0]


class Remembering(tlc.Tensor):
    tag: int

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return super().__torch_dispatch__(func, types, args, kwargs or {})


def test_sparse_gradients_beside_a_wrapper() -> None:
    layer(tlc)
    embedding = tlc.nn.Embedding(3, 2, sparse=True)
    embedding(tlc.tensor([1])).sum().backward()
    assert embedding.weight.grad.is_sparse
    tlc.optim.SparseAdam(embedding.parameters()).step()
