"""Wrappers with the parameters of what they wrap, and the arguments they check."""

from __future__ import annotations

import inspect
import threading
import traceback
from typing import Any

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.core.forwarding import (
    Parameters,
    forwarder,
    has_parameters,
    parameters_of,
    twin,
)
from tensorflow_lite_clone.core.signature import Signature, also_self, checked

_BODY = """
seen.append(({args}, {kwargs}, {types}))
{inner}
"""


def _scale(x: int, by: int = 2, *, plus: int = 0, name: Any = None) -> tuple:
    return x * by + plus, name


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((3,), {}), ((3, 4), {"plus": 1}), ((), {"x": 3, "name": "n"}), ((3,), {"by": 5})],
)
def test_a_forwarder_is_called_as_its_function(args: tuple, kwargs: dict[str, Any]) -> None:
    seen: list[tuple] = []
    parameters = parameters_of(_scale)
    wrapper = forwarder(_scale, _BODY, lambda parameters: {"seen": seen})
    assert wrapper(*args, **kwargs) == wrapper(*args, **kwargs) == _scale(*args, **kwargs)
    assert inspect.signature(wrapper) == inspect.signature(_scale)
    positional, named, types = seen[-1]
    assert [*map(type, positional), *map(type, named.values())] == list(types)
    given = parameters.given(positional, named)
    assert _scale(*given[0], **given[1]) == _scale(*args, **kwargs)
    assert len(given[0]) + len(given[1]) == len(args) + len(kwargs)


def test_threads_may_make_the_first_call_together() -> None:
    found: list[tuple] = []

    def names(parameters: Parameters) -> dict[str, Any]:
        if not found:  # meanwhile another thread calls, and is done first
            found.append(())
            other = threading.Thread(target=lambda: found.append(wrapper(3)))
            other.start()
            other.join()
        return {"seen": []}

    wrapper = forwarder(_scale, _BODY, names)
    copied = twin(wrapper, __name__, "other")
    assert wrapper(2) == copied(2) == _scale(2) and found[1:] == [_scale(3)]


def test_forwarders_of_a_forwarder_are_one_function() -> None:
    seen: list[Any] = []
    body = "also.append({args})\n{inner}"
    inner = forwarder(_scale, _BODY, lambda parameters: {"seen": seen})
    outer = forwarder(inner, body, lambda parameters: {"also": seen})
    assert outer(3, plus=1) == (7, None)
    assert len(seen) == 2
    text = inspect.getsource(outer.__code__)
    assert text.index("also.append((x, by, ))") < text.index("seen.append(((x, by, ), ")
    assert outer.__globals__["function"] is _scale
    twice = forwarder(inner, _BODY, lambda parameters: {"seen": seen})  # it has the same names
    assert twice(3) == (6, None)
    assert twice.__globals__["function"] is inner


def test_a_traceback_shows_the_lines_of_a_forwarder() -> None:
    wrapper = forwarder(_scale, _BODY, lambda parameters: {"seen": []})
    with pytest.raises(TypeError) as error:
        wrapper("x", "y")
    *_, frame, inner = traceback.extract_tb(error.value.__traceback__)
    assert frame.filename.startswith("<_scale") and __name__ in frame.filename
    assert frame.line == "return function(x, by, plus=plus, name=name)"
    assert inner.line == "return x * by + plus, name"


def test_the_first_argument_by_the_name_self() -> None:
    def power(input: Any, exponent: Any, *, out: Any = None) -> tuple:  # noqa: A002
        return input, exponent, out

    function = also_self(power)
    for _ in range(2):
        assert function(self=2, exponent=3) == function(2, 3) == (2, 3, None)
        assert function(2, exponent=3, out=1) == (2, 3, 1)
        for args, kwargs in (((2,), {}), ((2, 3), {"self": 1}), ((), {"self": 1})):
            with pytest.raises(TypeError, match=r"power\(\) (missing|got multiple)"):
                function(*args, **kwargs)


@pytest.mark.parametrize("args", [(), (1, 2, 3)])
def test_arguments_that_do_not_fit(args: tuple) -> None:
    wrapper = forwarder(_scale, _BODY, lambda parameters: {"seen": []})
    with pytest.raises(TypeError, match=r"_scale\(\) (missing 1|takes from 1 to 2)"):
        wrapper(*args)


def test_a_function_of_any_arguments() -> None:
    def total(first: int, *args: int, plus: int = 0, **more: int) -> tuple:
        return first + sum(args) + plus, more

    seen: list[tuple] = []
    wrapper = forwarder(total, _BODY, lambda parameters: {"seen": seen})
    for _ in range(2):
        assert wrapper(1, 2, 3, plus=4, other=5) == total(1, 2, 3, plus=4, other=5)
        assert seen[-1][:2] == ((1, 2, 3), {"plus": 4, "other": 5})
    with pytest.raises(TypeError, match="first"):
        wrapper()


def test_which_functions_have_parameters() -> None:
    assert has_parameters(_scale)
    for function in (_scale, lambda *args: None):
        wrapper = forwarder(function, _BODY, lambda parameters: {"seen": []})
        assert has_parameters(wrapper) is has_parameters(function)
    assert not has_parameters(lambda *args: None)
    assert not has_parameters(lambda **kwargs: None)


def test_a_parameter_that_the_wrapper_uses_is_refused() -> None:
    def hidden(function: int) -> int:
        return function

    with pytest.raises(ValueError, match="hidden has a parameter"):
        forwarder(hidden, _BODY, lambda parameters: {"seen": []})(1)


def test_types_that_have_passed_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def product(n: int, m: int = 2) -> int:
        return n * m

    function = checked(product)
    assert [function(1), function(1, m=3), function(n=1)] == [2, 3, 2]
    for wrong in (("1",), (1, True), (1, None)):
        with pytest.raises(TypeError, match=r"product\(\): argument '[nm]' .* must be int, not"):
            function(*wrong)
    monkeypatch.setattr(Signature, "read", None)
    assert function(4, 5) == function(m=4, n=5) == 20


@pytest.mark.parametrize("name", ["softmax", "cumsum", "argsort"])
def test_names_of_numpy(name: str) -> None:
    x = torch.tensor([[3.0, 1.0], [2.0, 5.0]])
    function = getattr(torch, name)
    expected = function(x, 0)
    for _ in range(2):
        for got in (function(x, axis=0), function(axis=0, x=x), function(x=x, dim=0)):
            assert torch.equal(got, expected)
    for kwargs in ({"dim": 0}, {"dim": 0}, {"input": x, "x": x, "dim": 0}, {"input": x, "no": 1}):
        with pytest.raises(TypeError, match="missing|multiple|unexpected"):
            function(**kwargs)
    with pytest.raises(TypeError, match="multiple"):
        function(x, 0, dim=0)


def test_arguments_beyond_the_parameters() -> None:
    wrapper = checked(_scale)
    for _ in range(2):
        assert wrapper(3) == (6, None)
        with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were"):
            wrapper(1, 2, 3)
        with pytest.raises(TypeError, match="unexpected keyword argument 'no'"):
            wrapper(1, no=2)
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            wrapper(by=2)
