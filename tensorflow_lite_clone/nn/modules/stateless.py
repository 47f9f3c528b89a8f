"""The base of modules without parameters: they keep arguments and call a function with them."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.nn.modules.module import Module


class Stateless(Module):
    """A module that keeps its constructor's arguments as attributes.

    They are read at every call, so that changing one changes what the module does. A subclass
    names the `function` it calls, and the attributes in `repr_fields`; ``inplace`` is shown last,
    and only when it is set.
    """

    function: ClassVar[Any]
    repr_fields: ClassVar[tuple[str, ...]] = ()
    repr_inplace: ClassVar[bool] = True

    def extra_repr(self) -> str:
        parts = [f"{name}={getattr(self, name)!r}" for name in self.repr_fields]
        if self.repr_inplace and getattr(self, "inplace", False):
            parts.append("inplace=True")
        return ", ".join(parts)
