"""The first instance of a class that is none of tensors: who meets it asks it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core import interception


class Duck:
    """Gives the function that was called."""

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func


DUCK, X = Duck(), tlc.ones(2, 2)


def required(function: Any) -> tuple[Duck, ...]:
    """A duck for each parameter that has no default."""
    parameters = inspect.signature(function).parameters.values()
    return (DUCK,) * sum([parameter.default is parameter.empty for parameter in parameters])


F = tlc.nn.functional
OF_ONE = """
    abs acos amax argmax bernoulli ceil clone cos cumsum det detach diag exp exp_ flip floor inverse
    is_complex is_floating_point isnan log max mean min neg neg_ nonzero norm numel permute prod
    ravel relu relu_ reshape rot90 round rsqrt sigmoid sin sort sqrt square squeeze std sum t tanh
    topk transpose trace tril unique unsqueeze var zeros_like
"""
OF_TWO = """
    add bmm cross div dot eq gather gt index_select kron matmul maximum mm mul outer pow sub where
    logical_and atan2 remainder
"""
OF_LISTS = "cat stack hstack vstack dstack column_stack meshgrid broadcast_tensors block_diag"
FUNCTIONAL = """
    relu gelu softmax log_softmax linear conv2d layer_norm batch_norm dropout max_pool2d mse_loss
    cross_entropy embedding pad normalize scaled_dot_product_attention relu6 elu_ celu
"""
CALLS = [
    *[(getattr(tlc, name), (DUCK,)) for name in OF_ONE.split()],
    *[(getattr(tlc, name), args) for name in OF_TWO.split() for args in ((DUCK, DUCK), (DUCK, X))],
    *[(getattr(tlc, name), ([X, DUCK],)) for name in OF_LISTS.split()],
    *[(getattr(F, name), required(getattr(F, name))) for name in FUNCTIONAL.split()],
    *[(getattr(tlc.linalg, name), (DUCK,)) for name in ("svd", "qr", "inv", "vector_norm")],
    *[(getattr(tlc.special, name), (DUCK,)) for name in ("erf", "expit", "bessel_j0", "entr")],
    (tlc.fft.fft, (DUCK,)),
]
OPERATORS = {
    "add": lambda: X + DUCK,
    "mul": lambda: X * DUCK,
    "__rsub__": lambda: DUCK - X,
    "div": lambda: X / DUCK,
    "matmul": lambda: X @ DUCK,
    "pow": lambda: X**DUCK,
    "lt": lambda: X < DUCK,
    "__eq__": lambda: X == DUCK,
    "__and__": lambda: X.bool() & DUCK,
    "add_": lambda: X.__iadd__(DUCK),
    "copysign": lambda: X.copysign(DUCK),
}


def test_functions(idle: None) -> None:
    for function, args in CALLS:
        assert function(*args).__name__ == function.__name__
        interception._enabled_for_values.clear()
        interception.release()


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(idle: None, name: str) -> None:
    assert OPERATORS[name]() is getattr(tlc.Tensor, name)
