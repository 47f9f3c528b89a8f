"""``torch.return_types``: tuples with named fields, printed as PyTorch prints them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from tensorflow_lite_clone.core.public import export

_make = tuple.__new__


class Result(tuple):
    """Base of the named results: made from a sequence, read by position or by name."""

    __slots__ = ()
    _names: tuple[str, ...]

    def __new__(cls, values: Iterable[Any], hidden: dict[str, Any] | None = None) -> Result:
        # `hidden`: fields without a position; there are none, but PyTorch's pickles say so
        result = _make(cls, values)
        if len(result) != len(cls._names):
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {len(cls._names)}-sequence "
                f"({len(result)}-sequence given)"
            )
        return result

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self),)

    def __repr__(self) -> str:
        fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._names, self))
        return f"torch.return_types.{type(self).__name__}(\n{fields})"


def result_type(name: str, *fields: str) -> Any:
    """A named result, exported as ``return_types.NAME``."""
    body: dict[str, Any] = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
    body["__slots__"] = ()
    body["_names"] = fields
    body["__module__"] = "tensorflow_lite_clone.return_types"  # pickling finds it there
    kind = type(name, (Result,), body)
    export(kind, "return_types", name=name)
    return kind
