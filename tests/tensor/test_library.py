"""`torch.library`, ``torch.ops`` and `torch.overrides` beside PyTorch's."""

# No `from __future__ import annotations`: PyTorch reads the annotations of the operations.
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc

LIBRARIES = (tlc, torch)
_counter = itertools.count()


def fresh(name: str) -> tuple[str, str]:
    """A namespace that no test has used, and a full name in it."""
    space = f"tlc_test_{next(_counter)}"
    return space, f"{space}::{name}"


def sine(lib: Any, name: str) -> Any:
    @lib.library.custom_op(name, mutates_args=())
    def operation(x: lib.Tensor) -> lib.Tensor:
        return lib.from_numpy(x.numpy().copy()).sin()

    return operation


def values(*results: Any) -> list[Any]:
    """Tensors as lists; the two libraries' sines differ in the last bit."""
    return [
        [round(element, 6) for element in result.tolist()] if hasattr(result, "tolist") else result
        for result in results
    ]


def calls(lib: Any) -> Any:
    space, name = fresh("sine")
    operation, x = sine(lib, name), lib.ones(2)
    named = getattr(getattr(lib.ops, space), "sine")  # noqa: B009
    return values(operation(x), operation(x=x), named(x), named.default(x), operation._name)


def gradient(lib: Any) -> Any:
    _, name = fresh("sine")
    operation = sine(lib, name)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        assert ctx.needs_input_grad == (True,)
        return g * x.cos() + 0 * y

    operation.register_autograd(backward, setup_context=setup)
    operation.register_fake(lambda x: lib.empty_like(x))
    x = lib.ones(2, requires_grad=True)
    y = operation(x)
    y.sum().backward()
    return values(x.grad, y.detach(), y.requires_grad)


def no_gradient(lib: Any) -> Any:
    y = sine(lib, fresh("sine")[1])(lib.ones(2, requires_grad=True))
    assert y.requires_grad
    y.sum().backward()


def several(lib: Any) -> Any:
    _, name = fresh("several")

    @lib.library.custom_op(name, mutates_args=())
    def operation(x: lib.Tensor, n: int = 3, *, plus: int = 1) -> tuple[lib.Tensor, lib.Tensor]:
        return x * n + plus, x * 1.0

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.n, ctx.plus = inputs[1], keyword_only_inputs["plus"]

    def backward(ctx, g, h):
        return g * ctx.n + h * ctx.plus, None

    lib.library.register_autograd(name, backward, setup_context=setup)
    x = lib.ones(2, requires_grad=True)
    a, b = operation(x, plus=5)
    (a + b).sum().backward()
    return values(a.detach(), b.detach(), x.grad, *operation(x.detach(), 2))


def mutation(lib: Any) -> Any:
    @lib.library.custom_op(fresh("add_")[1], mutates_args={"x"})
    def operation(x: lib.Tensor, value: float) -> None:
        x.add_(value)

    x = lib.zeros(2)
    return values(operation(x, 2.0), x)


def of_a_device(lib: Any) -> Any:
    @lib.library.custom_op(fresh("kernel")[1], mutates_args=(), device_types="cuda")
    def operation(x: lib.Tensor) -> lib.Tensor:
        return x + 1

    try:
        operation(lib.ones(1))
    except NotImplementedError:
        operation.register_kernel("cpu")(lambda x: x + 2)
    return values(operation(lib.ones(1)))


def returned_input(lib: Any) -> Any:
    @lib.library.custom_op(fresh("same")[1], mutates_args=())
    def operation(x: lib.Tensor) -> lib.Tensor:
        return x

    operation(lib.ones(1))


def from_schemas(lib: Any) -> Any:
    space, _ = fresh("x")
    library = lib.library.Library(space, "DEF")
    assert library.define("scale(Tensor x, float a=2.0) -> Tensor") == "scale"
    library.define("plus(Tensor x) -> Tensor")
    library.impl("scale", lambda x, a=2.0: x * a, "CompositeImplicitAutograd")

    @lib.library.impl(library, "plus", "CPU")
    def plus(x):
        return x + 5

    space_of = getattr(lib.ops, space)
    x = lib.ones(2, requires_grad=True)
    space_of.scale(x).sum().backward()
    return values(x.grad, space_of.scale(x.detach(), a=3.0), space_of.plus(x.detach()))


def defined_twice(lib: Any) -> Any:
    library = lib.library.Library(fresh("x")[0], "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.define("f(Tensor x) -> Tensor")


def without_kernel(lib: Any) -> Any:
    space, _ = fresh("x")
    library = lib.library.Library(space, "DEF")
    library.define("f(Tensor x) -> Tensor")
    getattr(lib.ops, space).f(lib.ones(1))


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "calls": calls,
    "gradient": gradient,
    "no gradient": no_gradient,
    "several outputs": several,
    "mutation": mutation,
    "a kernel for a device": of_a_device,
    "an input returned": returned_input,
    "schemas": from_schemas,
    "defined twice": defined_twice,
    "no kernel": without_kernel,
    "no annotations": lambda lib: lib.library.custom_op(
        fresh("f")[1], lambda x: x, mutates_args=()
    ),
    "not defined": lambda lib: lib.library.register_fake("tlc_test::none")(len),
    "no operation": lambda lib: lib.ops.tlc_test_none.f,
    "a kind of library": lambda lib: lib.library.Library("tlc_test", "OTHER"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str) -> None:
    results: list[Any] = []
    for lib in LIBRARIES:
        try:
            results.append(PROGRAMS[name](lib))
        except (RuntimeError, ValueError, AttributeError) as error:
            results.append(type(error))
    assert results[0] == results[1]


class Diagonal:
    """A tensor-like class that answers for functions itself."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [kind.__name__ for kind in types], args[1:], kwargs


class Special(Diagonal):
    """A subclass, which is asked first."""


class Declines:
    """A class that declines."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_overrides() -> None:
    for lib in LIBRARIES:
        overrides = lib.overrides

        def own(x: Any, y: Any = 0, lib: Any = lib) -> Any:
            if lib.overrides.has_torch_function((x,)):
                return lib.overrides.handle_torch_function(own, (x, y), x, y=y)
            return "plain"

        assert own(lib.ones(1)) == own(3) == "plain"
        assert own(Diagonal()) == ("own", ["Diagonal"], (), {"y": 0})
        assert own(Diagonal(), Special())[1] == ["Special", "Diagonal"]
        assert own(Declines(), Diagonal())[0] == "own"
        with pytest.raises(TypeError, match="no implementation found"):
            own(Declines())
        assert overrides.has_torch_function_unary(Diagonal())
        assert not overrides.has_torch_function_variadic(lib.ones(1), 3)
        flags = [overrides.is_tensor_like(x) for x in (3, lib.ones(1), Diagonal())]
        assert flags == [False, True, True]
        wrapped = overrides.wrap_torch_function(lambda x: (x,))(lambda x: "plain")
        assert wrapped(3) == "plain" and wrapped(Diagonal())[1] == ["Diagonal"]
