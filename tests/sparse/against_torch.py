"""Expressions over sparse tensors in both libraries, and what there is to compare of a result."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.amp
import tensorflow_lite_clone.nn
import tensorflow_lite_clone.optim  # noqa: F401  (binds tlc.amp, tlc.nn, tlc.optim)
from tests.device import DEVICE

LIBRARIES = (tlc, torch)


def device_of(lib: Any) -> str:
    return DEVICE if lib is tlc else "cpu"


def rows(lib: Any, places: list[int], first: float = 1.0, **options: Any) -> Any:
    """Rows of two elements at `places` of six."""
    values = (lib.arange(2.0 * len(places)) + first).reshape(-1, 2).to(device_of(lib))
    indices = lib.tensor([places], device=device_of(lib))
    return lib.sparse_coo_tensor(indices, values, (6, 2), **options)


def matrix(lib: Any, places: list[list[int]], first: float = 1.0) -> Any:
    """Elements first, first + 1, ... at `places` of a matrix (3, 4)."""
    values = (lib.arange(1.0 * len(places[0])) + first).to(device_of(lib))
    return lib.sparse_coo_tensor(lib.tensor(places, device=device_of(lib)), values, (3, 4))


def described(value: Any, lib: Any) -> Any:
    """A result as plain values; of a sparse tensor its indices and values in their order."""
    if isinstance(value, lib.Tensor):
        facts = [str(value.dtype).removeprefix("torch."), tuple(value.shape), str(value.layout)]
        if value.layout is lib.strided:
            return [*facts, value.detach().cpu().tolist()]
        if not value.is_sparse:
            in_rows = value.layout in (lib.sparse_csr, lib.sparse_bsr)
            first = value.crow_indices() if in_rows else value.ccol_indices()
            second = value.col_indices() if in_rows else value.row_indices()
            return facts + [described(part, lib) for part in (first, second, value.values())]
        facts += [value.is_coalesced(), value._indices().cpu().tolist()]
        return [*facts, value._values().detach().cpu().tolist()]
    if isinstance(value, (tuple, list)):
        return [described(item, lib) for item in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def same(mine: Any, reference: Any, rel: float = 1e-6) -> None:
    """Assert that two descriptions agree, numbers but for rounding."""
    if isinstance(reference, (tuple, list)):
        assert isinstance(mine, (tuple, list)) and len(mine) == len(reference), (mine, reference)
        for one, other in zip(mine, reference, strict=True):
            same(one, other, rel)
    elif isinstance(reference, float):
        assert mine == pytest.approx(reference, rel=rel, abs=1e-7, nan_ok=True)
    else:
        assert mine == reference


def outcome(lib: Any, program: Any) -> Any:
    """What a program gives, described, or the class of error: RuntimeError stands for its kind."""
    try:
        return described(program(lib), lib)
    except RuntimeError:
        return RuntimeError
    except (TypeError, ValueError, IndexError) as error:
        return type(error)
