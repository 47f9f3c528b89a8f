"""Programs and arguments that cannot be exported are refused as PyTorch refuses them."""

from __future__ import annotations

from typing import Any

import pytest
import torch as oracle

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.fx.experimental import symbolic_shapes
from tests.export.programs import of

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")


def refusal(library: Any, function: Any, **options: Any) -> BaseException:
    """What export of a function of a (4, 2) tensor raises."""
    x = library.linspace(-1, 1, 8).view(4, 2)
    with pytest.raises(Exception) as caught:  # noqa: PT011  the type is compared
        library.export.export(of(library, function), (x,), **options)
    return caught.value


def same(name_of: Any, function: Any, **options: Any) -> BaseException:
    """The error here, whose type is called as PyTorch's is."""
    dynamic = options.pop("dynamic", lambda library: None)
    theirs = refusal(oracle, name_of(oracle, function), dynamic_shapes=dynamic(oracle), **options)
    ours = refusal(torch, name_of(torch, function), dynamic_shapes=dynamic(torch), **options)
    assert type(ours).__name__ == type(theirs).__name__, str(theirs)
    return ours


def plain(library: Any, function: Any) -> Any:
    return function


DATA_DEPENDENT = {
    "if": lambda x: x + 1 if x.sum() > 0 else x - 1,
    "int": lambda x: x * int(x[0, 0]),
    "float": lambda x: x if float(x.sum()) > 1 else x + 1,
    "index": lambda x: x[int(x.argmax())],
    "range": lambda x: [x + i for i in range(int(x.sum()))],
    "while": lambda x: [0 for _ in iter(lambda: bool((x > 0).all()), True)],
}
REFUSED = {
    "numpy": lambda x: x.numpy(),
    "attribute": lambda x: x.nothing,
    "product": lambda x: x @ x,
    "view": lambda x: x.view(3, 3),
    "item": lambda x: x.item(),
    "result": lambda x: object(),
}


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_control_flow_on_values(name: str) -> None:
    error = same(plain, DATA_DEPENDENT[name])
    assert type(error) is symbolic_shapes.GuardOnDataDependentSymNode
    assert "test_refused.py" in str(error)  # it names the line


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_graph(name: str) -> None:
    same(plain, REFUSED[name])


DYNAMIC = {
    "specialized": (lambda x: x + x.new_ones(4, 2), lambda d: d.Dim("b")),
    "specialized_without_name": (lambda x: x + x.new_ones(4, 2), lambda d: d.Dim.DYNAMIC),
    "range": (lambda x: x + 1 if x.shape[0] > 3 else x, lambda d: d.Dim("b", max=64)),
    "number": (lambda x: x * len(x), lambda d: d.Dim("b")),
    "not_in_range": (lambda x: x + 1, lambda d: d.Dim("b", min=5)),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dimensions_that_are_not_free(name: str) -> None:
    function, dim = DYNAMIC[name]
    error = same(plain, function, dynamic=lambda library: ({0: dim(library.export)},))
    if name == "range":
        assert "b = Dim('b', min=4, max=64)" in str(error)
    if name == "specialized":
        assert "b = 4" in str(error)


def test_dimensions_that_must_be_equal() -> None:
    errors = []
    for library in (oracle, torch):
        first, second = library.export.dims("b", "s")
        with pytest.raises(RuntimeError) as caught:
            library.export.export(
                of(library, lambda x, y: x + y),
                (library.ones(4, 2), library.ones(4, 2)),
                dynamic_shapes=({0: first}, {0: second}),
            )
        errors.append(str(caught.value))
    for error in errors:
        assert "s = L['y'].size()[0] and b = L['x'].size()[0] must always be equal" in error
        assert "s = b" in error


@pytest.mark.parametrize(
    "shapes",
    [{"y": {0: "b"}}, ({0: "b"}, None), {"x": "b"}, {"x": ["b", None, None]}, {"x": {0: 3}}],
    ids=["name", "count", "no_shape", "rank", "static"],
)
def test_dynamic_shapes_of_another_structure(shapes: Any) -> None:
    def named(library: Any, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: named(library, each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(named(library, each) for each in value)
        is_dim = value == "b" and shapes != {"x": "b"}
        return library.export.Dim("b") if is_dim else value

    same(plain, lambda x: x + 1, dynamic=lambda library: named(library, shapes))


def test_arguments() -> None:
    for call, kind in (
        (lambda library: (lambda x: x, (library.ones(1),)), ValueError),
        (lambda library: (library.nn.ReLU(), library.ones(1)), RuntimeError),
        (lambda library: (library.nn.ReLU(), (library.ones(1),), {"y": 1}), TypeError),
        (lambda library: (library.nn.Linear(3, 2), (library.ones(1),)), RuntimeError),
    ):
        for library in (oracle, torch):
            with pytest.raises(kind):
                library.export.export(*call(library))


def test_calls_with_other_arguments() -> None:
    messages = []
    for library in (oracle, torch):
        batch = library.export.Dim("batch", min=2, max=6)
        program = library.export.export(
            of(library, lambda x, y: x * y), (library.ones(4, 2), 3),
            dynamic_shapes=({0: batch}, None),
        )  # fmt: skip
        with pytest.raises(RuntimeError, match="exported_program.module"):
            program(library.ones(4, 2), 3)
        module, found = program.module(), []
        for args in (
            (library.ones(4, 3), 3), (library.ones(7, 2), 3), (library.ones(4, 2), 4),
            (library.ones(4, 2),),
        ):  # fmt: skip
            with pytest.raises((AssertionError, ValueError)) as caught:
                module(*args)
            found.append((type(caught.value), str(caught.value).split("\n")[0]))
        with pytest.raises(NotImplementedError, match="train"):
            module.train()
        messages.append(found)
    assert messages[0] == messages[1]


def test_dims() -> None:
    for library in (oracle, torch):
        Dim = library.export.Dim
        with pytest.raises(AssertionError):
            Dim("b", min=3, max=2)
        with pytest.raises(AssertionError):
            Dim("2b")
        batch = Dim("b", min=2)
        assert (2 * batch + 1).__name__ == "2*b + 1"
        assert str((batch.min, batch.max)) == "(2, int_oo)"
        with pytest.raises(NotImplementedError):
            batch * batch
        with pytest.raises(NotImplementedError):
            3 - batch
        assert repr(Dim.AUTO(min=2)) == "DimHint(AUTO, min=2)"
