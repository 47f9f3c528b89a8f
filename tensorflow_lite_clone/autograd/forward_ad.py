"""Forward mode, as ``torch.autograd.forward_ad``: tensors with tangents, inside of a level.

The tangent of a result is computed when it is unpacked, from the recorded graph (see
`levels.forward_products`). So the level records, and what is computed inside under `no_grad`
has no tangent.
"""

from __future__ import annotations

from typing import NamedTuple

from tensorflow_lite_clone.autograd.levels import (
    Level,
    LevelBoundary,
    check_tangent,
    depends_on,
    forward_products,
    reaches_variables,
    zeros_of,
)
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.tensor import Tensor, new_tensor

_current_level = -1


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` gives; the tangent is None where there is none."""

    primal: Tensor
    tangent: Tensor | None


class _DualLevel:
    """The level that is entered, and its tensors' sources and tangents."""

    def __init__(self) -> None:
        self.level = Level()
        self.variables: list[Tensor] = []
        self.tangents: list[Tensor] = []


_entered: list[_DualLevel] = []


def enter_dual_level() -> int:
    """Begin a level; returns its number. RuntimeError inside of another one."""
    global _current_level
    if _entered:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    dual = _DualLevel()
    dual.level.__enter__()
    _entered.append(dual)
    _current_level = 0
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; RuntimeError when there is none."""
    global _current_level
    if not _entered:
        raise RuntimeError("Dual level must be a positive number.")
    if level is not None and level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is "
            "not supported."
        )
    _entered.pop().level.__exit__()
    _current_level = -1


class dual_level:
    """Context manager: a level, inside of which `make_dual` and `unpack_dual` have a meaning."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """An alias of `tensor` that carries `tangent`, of its shape.

    Raises RuntimeError outside of a level, for another shape, and for a tensor that has a
    tangent; ValueError for dtypes without derivatives.
    """
    if not _entered:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"Expected {what} to be floating point or complex, but got: {value.dtype}"
            )
    check_tangent(tensor, tangent)
    dual = _entered[-1]
    if depends_on(tensor, dual.variables):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            f"same level {_current_level} is not supported."
        )
    variable = dual.level.enter(tensor)
    dual.variables.append(variable)
    dual.tangents.append(recorded(tensor._storage.backend).astype(tangent, tensor.dtype))
    alias = new_tensor(variable._storage)
    alias._edge = (LevelBoundary(alias._storage, (variable._edge,)), 0)
    return alias


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """A tensor as the level's primal, and its tangent or None."""
    if not _entered:
        return UnpackedDualTensor(tensor, None)
    dual = _entered[-1]
    variables = dual.variables
    if not depends_on(tensor, variables):
        return UnpackedDualTensor(tensor, None)
    sources = [variable._edge[0] for variable in variables if variable._edge is not None]
    for source in sources:
        source.alive = False
    try:
        outer = dual.level.outer
        record = outer and (reaches_variables((tensor,)) or reaches_variables(dual.tangents))
        (tangent,) = forward_products([tensor], variables, dual.tangents, record)
        if tangent is None:
            tangent = zeros_of(tensor)
        kept = outer and reaches_variables((tensor,))
        primal = tensor if kept else tensor.detach()
        if not (outer and reaches_variables((tangent,))):
            tangent = tangent.detach()
        return UnpackedDualTensor(primal, tangent)
    finally:
        for source in sources:
            source.alive = True
