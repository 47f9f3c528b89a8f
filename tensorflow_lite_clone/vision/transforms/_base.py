"""What transforms of the first version share: how they apply and show what they were given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar

from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.vision.transforms._draws import chance


class AttributeRepr(Module):
    """A transform that shows the attributes named in `repr_fields`."""

    repr_fields: ClassVar[tuple[str, ...]] = ()

    def extra_repr(self) -> str:
        """These attributes."""
        return format_attributes(self, self.repr_fields)


class FunctionTransform(Module):
    """Calls its `function` with a picture and the attributes that `arguments` names."""

    function: ClassVar[Callable]
    arguments: ClassVar[tuple[str, ...]] = ()

    def forward(self, img: Any) -> Any:
        """The picture after the function."""
        return self.function(img, *[getattr(self, name) for name in self.arguments])

    def extra_repr(self) -> str:
        """The arguments."""
        return format_attributes(self, self.arguments)


class RandomFunctionTransform(FunctionTransform):
    """Calls its `function` with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """The picture after the function, or as it is."""
        return super().forward(img) if chance(self.p) else img

    def extra_repr(self) -> str:
        """The arguments and the probability."""
        return format_attributes(self, (*self.arguments, "p"), ",")


def format_attributes(transform: Module, names: Sequence[str], separator: str = ", ") -> str:
    """Some attributes of a transform, enums by their values."""
    values = [(name, getattr(transform, name)) for name in names]
    return separator.join([f"{n}={x.value if isinstance(x, Enum) else x}" for n, x in values])
