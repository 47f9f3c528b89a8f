"""`gradcheck` and `gradgradcheck`: gradients against central differences."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.gradients import grad
from tensorflow_lite_clone.autograd.mode import enable_grad, no_grad
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.tensor import Tensor


class GradcheckError(RuntimeError):
    """A gradient differs from its central difference."""


def _tuple(values: Any) -> tuple:
    return tuple(values) if isinstance(values, (list, tuple)) else (values,)


def _differentiable(outputs: Any) -> list[Tensor]:
    return [
        output for output in _tuple(outputs) if isinstance(output, Tensor) and output.requires_grad
    ]


def _numerical(function: Callable[..., Any], inputs: tuple, x: Tensor, eps: float) -> list[list]:
    """Per output the rows d output / d x_i by central differences, as nested lists."""
    data = x.data
    directions = (eps, 1j * eps) if x.is_complex() else (eps,)
    columns = []
    with no_grad():
        for place in itertools.product(*map(range, x.shape)):
            for step in directions:
                kept = data[place].clone()
                data[place] = kept + step
                plus = [out.clone().reshape(-1) for out in _tuple(function(*inputs))]
                data[place] = kept - step
                minus = [out.clone().reshape(-1) for out in _tuple(function(*inputs))]
                data[place] = kept
                columns.append(
                    [
                        (a - b) / (2 * eps) if a.is_floating_point() or a.is_complex() else None
                        for a, b in zip(plus, minus, strict=True)
                    ]
                )
    return columns


def _analytical(output: Tensor, x: Tensor, seed: complex) -> list[Tensor]:
    """The rows of d output / d x, one per output element, for the cotangent `seed`."""
    rows = []
    for index in range(output.numel()):
        vector = (output.detach() * 0).reshape(-1)
        vector[index] = seed
        (row,) = grad(output, x, vector.reshape(output.shape), retain_graph=True, allow_unused=True)
        rows.append((x.detach() * 0 if row is None else row).reshape(-1))
    return rows


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of `func` agree with central differences of step `eps`.

    Inputs that require a gradient should be float64. Raises GradcheckError on a difference (or
    returns False without `raise_exception`), ValueError when nothing requires a gradient.
    """
    try:
        _check(func, _tuple(inputs), eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(
    func: Callable[..., Any], inputs: tuple, eps: float, atol: float, rtol: float, nondet: float
) -> None:
    wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of "
            "them have requires_grad=True."
        )
    for number, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        x.retain_grad()
        if x.dtype.itemsize < (16 if x.is_complex() else 8):
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=level_outside(),
            )
    results = _tuple(func(*inputs))
    outputs = _differentiable(results)
    for number, x in enumerate(wanted):
        columns = _numerical(func, inputs, x, eps)
        for which, output in enumerate(outputs):
            position = next(i for i, result in enumerate(results) if result is output)
            for seed in (1j, 1) if output.is_complex() else (1,):
                rows = _analytical(output, x, seed)
                numerical = [column[position] for column in columns]
                _compare(rows, numerical, seed, output, x, (which, number), atol, rtol)
                _check_repeatable(rows, _analytical(output, x, seed), nondet)
    _check_linear(outputs, wanted)


def _check_repeatable(rows: list[Tensor], repeated: list[Tensor], nondet: float) -> None:
    for row, again in zip(rows, repeated, strict=True):
        if row.numel() and ((row - again).abs() > nondet).any():
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although analytical gradient "
                "matches numerical gradient. The tolerance for nondeterminism was "
                f"{nondet}."
            )


def _check_linear(outputs: list[Tensor], wanted: list[Tensor]) -> None:
    """A cotangent of zeros must give gradients of zeros."""
    if not outputs:
        return
    zeros = [output.detach() * 0 for output in outputs]
    for g in grad(outputs, wanted, zeros, retain_graph=True, allow_unused=True):
        if g is not None and (g != 0).any():
            raise GradcheckError("backward not multiplied by grad_output")


def _compare(
    rows: list[Tensor],
    columns: list,
    seed: complex,
    output: Tensor,
    x: Tensor,
    numbers: tuple[int, int],
    atol: float,
    rtol: float,
) -> None:
    """Check every element of one Jacobian.

    For a complex x = a + ib, torch's gradient of a real output is dL/da + i dL/db; with a complex
    output, row k is the gradient of the real part of output k (its cotangent being 1), or of its
    imaginary part (1j).
    """
    per = 2 if x.is_complex() else 1
    prefix = ""
    if output.is_complex():
        part = "real" if seed == 1 else "imaginary"
        prefix = f"While considering the {part} part of complex outputs only, "
    for k, row in enumerate(rows):
        for i in range(x.numel()):
            entries = [complex(columns[i * per + j][k].item()) for j in range(per)]
            expected = complex(*[e.real if seed == 1 else e.imag for e in entries])
            actual = complex(row[i].item())
            if not abs(actual - expected) <= atol + rtol * abs(expected):
                raise GradcheckError(
                    f"{prefix}Jacobian mismatch for output {numbers[0]} with respect to input "
                    f"{numbers[1]},\nnumerical:{expected}\nanalytical:{actual}\n"
                    f"(output element {k}, input element {i})"
                )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradient itself: second derivatives against central differences."""
    arguments = _tuple(inputs)
    if grad_outputs is None:
        vectors = []
        for output in _differentiable(func(*arguments)):
            vector = output.detach() * 0
            vectors.append(vector.normal_().requires_grad_())
    else:
        vectors = list(_tuple(grad_outputs))
    count = len(arguments)

    def gradient(*values: Any) -> Any:
        xs, gs = values[:count], values[count:]
        with enable_grad():  # `gradcheck` evaluates differences without a graph
            outputs = _differentiable(func(*xs))
            wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
            found = grad(outputs, wanted, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient,
        (*arguments, *vectors),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )
