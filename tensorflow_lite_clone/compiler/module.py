"""What `torch.compile` makes of a module: a module around it that shows everything it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.nn.modules.hooks import has_hooks
from tensorflow_lite_clone.nn.modules.module import Module

_OWN = frozenset(("_orig_mod", "_compiled", "dynamo_ctx", *vars(Module())))


class OptimizedModule(Module):
    """A compiled module, as torch's; `_orig_mod` is the module itself.

    `dynamo_ctx` compiles a function in the same manner, such as another method of the module.
    """

    def __init__(self, module: Module, compiled: Any, compile_alike: Callable[[Any], Any]) -> None:
        super().__init__()
        del self.__dict__["training"]
        self._orig_mod = module
        self.__dict__.update(_compiled=compiled, dynamo_ctx=compile_alike)

    _orig_mod: Any
    _compiled: Any
    dynamo_ctx: Callable[[Any], Any]

    @property
    def training(self) -> bool:
        """The module's own flag."""
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        self._orig_mod.training = value

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's call, hooks included, replayed where it was captured."""
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _OWN:
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in _OWN:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if has_hooks(self):
            return super().__call__(*args, **kwargs)
        return self._compiled(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __iter__(self) -> Any:
        return iter(self._orig_mod)

    def __getitem__(self, key: Any) -> Any:
        return self._orig_mod[key]

    def __contains__(self, key: Any) -> bool:
        return key in self._orig_mod

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})
