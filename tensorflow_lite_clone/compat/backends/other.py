"""``torch.backends.mkldnn`` and its kin: libraries that PyTorch computes with and we do not.

A program may ask for them (they are absent) and set their switches, which are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.backends import float32_precision


class Library:
    """A library that is absent, with the switches that PyTorch has for it."""

    def __init__(self, name: str, **switches: Any) -> None:
        self.__name__ = name
        vars(self).update(switches)
        self._switches = tuple(switches)

    def is_available(self) -> bool:
        """False: the library is not used."""
        return False

    def set_flags(self, *values: Any) -> tuple[Any, ...]:
        """Set the switches, in their order; gives what they were."""
        before = tuple([getattr(self, name) for name in self._switches[: len(values)]])
        vars(self).update(zip(self._switches, values, strict=False))
        return before

    @contextmanager
    def flags(self, *values: Any, **named: Any) -> Iterator[None]:
        """Context in which switches are set."""
        changes = dict(zip(self._switches, values, strict=False)) | named
        unknown = changes.keys() - {*self._switches}
        if unknown:
            raise TypeError(f"{self.__name__}.flags() got an unexpected argument {min(unknown)!r}")
        before = {name: getattr(self, name) for name in changes}
        vars(self).update(changes)
        try:
            yield
        finally:
            vars(self).update(before)


class _Cpu:
    """``torch.backends.cpu``."""

    def get_cpu_capability(self) -> str:
        """ "DEFAULT": which instructions are used is NumPy's affair."""
        return "DEFAULT"


class _Quantized(Library):
    """``torch.backends.quantized``: the engines whose numbers `quantized` has, which are equal."""

    supported_engines = ("x86", "fbgemm")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "engine" and value not in self.supported_engines:
            raise RuntimeError(f"quantized engine {value} is not supported")
        super().__setattr__(name, value)


class _Mkldnn(Library):
    """``torch.backends.mkldnn``, whose precisions are kept too."""

    fp32_precision = float32_precision.of("mkldnn", "all")

    matmul = float32_precision.Operation("mkldnn", "matmul")
    conv = float32_precision.Operation("mkldnn", "conv")
    rnn = float32_precision.Operation("mkldnn", "rnn")


mkldnn = _Mkldnn("mkldnn", enabled=True, deterministic=False, allow_tf32=None)
nnpack = Library("nnpack", enabled=True)
mkl = Library("mkl")
openmp = Library("openmp")
opt_einsum = Library("opt_einsum", enabled=False, strategy=None)
quantized = _Quantized("quantized", engine="x86")
cpu = _Cpu()
