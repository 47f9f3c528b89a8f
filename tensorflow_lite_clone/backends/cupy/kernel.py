"""Kernels of `.cu` files, compiled when first launched and again after an edit."""

from __future__ import annotations

from typing import Any

import cupy
from cupy.cuda.compiler import CompileException

from tensorflow_lite_clone.backends.cupy.signature import converter
from tensorflow_lite_clone.kernels.kernel import Kernel, KernelError
from tensorflow_lite_clone.kernels.signature import parameters
from tensorflow_lite_clone.kernels.sources import Source

OPTIONS = ("-std=c++17",)
_STATIC_SHARED = 48 * 1024  # bytes; a kernel must be told of more


class Instance:
    """One instantiation of a kernel."""

    __slots__ = ("_converters", "_function", "_roomy", "_source", "_version", "kernel", "template")

    def __init__(self, kernel: Kernel, template: tuple[str, ...]) -> None:
        self.kernel, self.template = kernel, template
        self._source: Source | None = None
        self._version = -1
        self._function: Any = None
        self._converters: list[Any] = []
        self._roomy: dict[int, int] = {}

    @property
    def expression(self) -> str:
        """The instantiation as C++ writes it."""
        return f"{self.kernel.name}<{', '.join(self.template)}>" if self.template else (
            self.kernel.name
        )

    @property
    def function(self) -> Any:
        """CuPy's function object, compiled if that has not been done since the last edit."""
        if self._source is None or self._source.refresh() != self._version:
            self._compile()
        return self._function

    def _compile(self) -> None:
        source = self.kernel.source
        version, text = source.refresh(), source.text
        try:
            found = parameters(text, self.kernel.name, self.template)
        except ValueError as error:
            raise KernelError(f"{source.path}: {error}") from None
        module = cupy.RawModule(code=text, options=OPTIONS, name_expressions=(self.expression,))
        try:
            function = module.get_function(self.expression)
            function.num_regs  # noqa: B018  compiles now, so that errors are raised here
        except CompileException as error:
            raise KernelError(
                f"{source.path} does not compile as {self.expression}:\n{error}"
            ) from None
        self._function = function
        self._converters = [converter(p, self.expression) for p in found]
        self._roomy.clear()
        self._source, self._version = source, version

    def __call__(self, grid: Any, block: Any, *args: Any, shared: int = 0) -> None:
        """Launch on the current stream: `grid` and `block` are ints or tuples of up to three."""
        source = self._source
        if source is None or source.refresh() != self._version:
            self._compile()
        function = self._function
        converters = self._converters
        if len(args) != len(converters):
            raise TypeError(
                f"{self.expression} takes {len(converters)} arguments, but {len(args)} were given"
            )
        if shared > _STATIC_SHARED:
            device = cupy.cuda.runtime.getDevice()
            if self._roomy.get(device, 0) < shared:
                function.max_dynamic_shared_size_bytes = shared
                self._roomy[device] = shared
        values = tuple([convert(value) for convert, value in zip(converters, args)])
        function(
            grid if grid.__class__ is tuple else (grid,),
            block if block.__class__ is tuple else (block,),
            values,
            shared_mem=shared,
        )


def blocks_for(count: int, block: int, most: int = 1 << 20) -> int:
    """How many blocks of `block` threads cover `count` elements, at least one, at most `most`."""
    return max(1, min(-(-count // block), most))


__all__ = ["Instance", "Kernel", "KernelError", "blocks_for"]
