"""Calls of both sides from one seed, and what is compared of what they return."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.samples.translate import to_ours, to_torch

SEED = 1234


class Difference(Exception):
    """The sides disagree."""


class Nothing(Exception):
    """PyTorch has no sample of this kind on the CPU."""


def same_error(got: BaseException, wanted: BaseException) -> None:
    """Raise unless the first error is of the second's type, or of one of its name."""
    if not isinstance(got, type(wanted)) and type(got).__name__ != type(wanted).__name__:
        raise Difference(
            f"{type(got).__name__} for {type(wanted).__name__}: {str(got)[:80]} "
            f"({str(wanted)[:80]})"
        ) from got


def _seeded(function: Callable[..., Any], seed: Callable[[int], Any], *args: Any, **kwargs: Any):
    seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def call_theirs(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call PyTorch's function under the common seed."""
    return _seeded(function, torch.manual_seed, *args, **kwargs)


def call_ours(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call ours under the common seed."""
    return _seeded(function, tlc.manual_seed, *args, **kwargs)


def _plain(value: Any) -> Any:
    """Tuples of all kinds as lists; sparse results dense; others as they are."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return value.to_dense() if value.layout is not torch.strided else value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def compare(ours: Any, theirs: Any, values: bool = True) -> None:
    """Equal structure, dtypes, shapes and, within PyTorch's tolerances for the dtype, values."""
    got, wanted = to_torch(ours), _plain(theirs)
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            raise Difference(f"{got!r:.60} for {wanted!r:.60}")
        for left, right in zip(got, wanted, strict=True):
            compare(left, right, values)
    elif isinstance(wanted, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            raise Difference(f"{type(got).__name__} for a tensor")
        if got.dtype != wanted.dtype:
            raise Difference(f"dtype {got.dtype} for {wanted.dtype}")
        if got.shape != wanted.shape:
            raise Difference(f"shape {tuple(got.shape)} for {tuple(wanted.shape)}")
        if values:
            options = _tolerance(wanted)
            if wanted.dtype.itemsize == 1 and wanted.dtype.is_floating_point:
                got, wanted = got.float(), wanted.float()
            torch.testing.assert_close(
                got, wanted, equal_nan=True, check_device=False, check_stride=False, **options
            )
    elif isinstance(wanted, (float, complex)):
        torch.testing.assert_close(got, wanted, equal_nan=True)
    elif got != wanted:
        raise Difference(f"{got!r:.60} for {wanted!r:.60}")


def _tolerance(wanted: torch.Tensor) -> dict[str, float]:
    """PyTorch's tolerances for the dtype, or 16 units in the last place of the largest element:
    where terms cancel, both sides are off by that much."""
    if not (wanted.is_floating_point() or wanted.is_complex()) or not wanted.numel():
        return {}
    sizes = wanted.abs().double()
    sizes = sizes[sizes.isfinite()]
    largest = sizes.max().item() if sizes.numel() else 0.0
    relative, absolute = torch.testing._comparison.default_tolerances(wanted.dtype)
    ulps = 16 if wanted.dtype.itemsize > 2 or wanted.is_complex() else 4
    return {
        "rtol": relative,
        "atol": max(absolute, ulps * torch.finfo(wanted.dtype).eps * largest),
    }


def compare_strides(ours: Any, theirs: Any) -> None:
    """Equal strides of all tensors, wherever two elements lie that far apart."""
    for mine, other in zip(leaves(ours, tlc.Tensor), leaves(theirs, torch.Tensor), strict=True):
        got, wanted = tuple(mine.stride()), other.stride()
        if other.numel() and any(
            size > 1 and x != y for size, x, y in zip(other.shape, got, wanted, strict=True)
        ):
            raise Difference(f"strides {got} for {wanted} of {tuple(other.shape)}")


def brief(error: BaseException) -> str:
    """An error in one line."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4])[:200]}"


def leaves(value: Any, kind: type) -> list[Any]:
    """The instances of `kind` in a value and the containers that it is made of."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item, kind)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item, kind)]
    return []


def _directions(likes: list[Any], seed: int) -> list[torch.Tensor | None]:
    """A random tensor like each that may have a gradient, the same for both sides."""
    generator = torch.Generator().manual_seed(seed)
    found: list[torch.Tensor | None] = []
    for x in likes:
        differentiable = x.is_floating_point() or x.is_complex()
        dtype = getattr(torch, str(x.dtype).split(".")[-1])
        found.append(
            torch.randn(tuple(x.shape), dtype=dtype, generator=generator)
            if differentiable
            else None
        )
    return found


def compare_gradients(
    got: list[list[Any]], wanted: list[list[Any]], inputs: list[torch.Tensor], order: int
) -> None:
    """Equal gradients of an order, as `gradients_of` gives them; none is as good as zeros."""
    if len(got) < order:
        raise Difference("the result requires no gradient")
    for left, right, x in zip(got[-1], wanted[-1], inputs, strict=True):
        right = torch.zeros_like(x) if right is None else right
        compare(to_ours(torch.zeros_like(x.detach())) if left is None else left, right)


def gradients_of(module: Any, outputs: Any, inputs: list[Any], order: int) -> list[list[Any]]:
    """Gradients of orders 1 to `order` along directions that both sides share."""
    likes = level = leaves(outputs, module.Tensor)
    found: list[list[Any]] = []
    for number in range(1, order + 1):
        pairs = [
            (x, up)
            for x, up in zip(level, _directions(likes, number), strict=True)
            if x is not None and x.requires_grad
        ]
        if not pairs:
            return found
        ups = [up if module is torch else to_ours(up) for _, up in pairs]
        found.append(
            list(
                module.autograd.grad(
                    [x for x, _ in pairs],
                    inputs,
                    ups,
                    create_graph=number < order,
                    allow_unused=True,
                )
            )
        )
        likes, level = inputs, found[-1]
    return found
