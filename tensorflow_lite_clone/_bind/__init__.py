"""Attaches what `core.public` collected to `Tensor` and to the package's namespaces."""

from __future__ import annotations

from functools import partial
from typing import Any

from tensorflow_lite_clone import storage
from tensorflow_lite_clone._bind import overridable
from tensorflow_lite_clone.core import interception
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.tensor import Tensor


def bind_tensor() -> None:
    """Put methods and properties on `Tensor`; a function stored on a class is a method."""
    for name, function in EXPORTS["method"].items():
        setattr(Tensor, name, function)
    for name, accessor in EXPORTS.get("property", {}).items():
        setattr(Tensor, name, accessor)
    interception.on_first_use.append(partial(overridable.add_all, dict(vars(Tensor))))


def bind_storage() -> None:
    """Give `storage` the names that ``torch.storage`` has besides: classes that are made of ops."""
    vars(storage).update(EXPORTS["storage"])


def names_of(place: str) -> dict[str, Any]:
    """What the namespace called `place` exports."""
    return dict(EXPORTS.get(place, {}))
