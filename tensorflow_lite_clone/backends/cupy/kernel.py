"""Kernels of `.cu` files, compiled when first launched and again after an edit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cupy
from cupy.cuda.compiler import CompileException

from tensorflow_lite_clone.backends.cupy.signature import c_type, converter, parameters
from tensorflow_lite_clone.backends.cupy.sources import source

OPTIONS = ("-std=c++17",)
_STATIC_SHARED = 48 * 1024  # bytes; a kernel must be told of more


class KernelError(RuntimeError):
    """A kernel file that does not compile, or does not hold the kernel asked for."""


class Kernel:
    """A ``__global__`` function of a file, with its template parameters named in order.

        softmax = Kernel("softmax.cu", "softmax_forward", params=("T", "VEC"))
        softmax[x.dtype, 4](grid, block, x, rows, columns, y, shared=0)

    `file` is a name in the package's `kernels/`, or a path to a file of your own. Template
    arguments are dtypes (of NumPy or of this package), ints, bools, or C++ text. Arguments are CUDA
    arrays or None for pointers, numbers for numbers, and packed NumPy arrays for structs; what does
    not fit the signature is a TypeError before the launch. Each instance is compiled when it is
    first launched, and again when the file or a header it includes was edited.
    """

    def __init__(self, file: str | Path, name: str, *, params: tuple[str, ...] = ()) -> None:
        self.file, self.name, self.params = file, name, tuple(params)
        self._instances: dict[Any, Instance] = {}

    def __getitem__(self, arguments: Any) -> Instance:
        try:
            return self._instances[arguments]
        except KeyError:
            pass
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        if len(given) != len(self.params):
            raise TypeError(
                f"{self.name} takes the template arguments {self.params}, but {given} were given"
            )
        instance = self._instances[arguments] = Instance(self, tuple(map(c_type, given)))
        return instance

    def __call__(self, grid: Any, block: Any, *args: Any, shared: int = 0) -> None:
        """Launch a kernel without template parameters."""
        self[()](grid, block, *args, shared=shared)

    def __repr__(self) -> str:
        return f"<kernel {self.name} of {self.file}>"


class Instance:
    """One instantiation of a kernel."""

    __slots__ = ("_converters", "_function", "_roomy", "_version", "kernel", "template")

    def __init__(self, kernel: Kernel, template: tuple[str, ...]) -> None:
        self.kernel, self.template = kernel, template
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
        text = source(self.kernel.file)
        if text.refresh() != self._version:
            self._compile(text)
        return self._function

    def _compile(self, text: Any) -> None:
        names = dict(zip(self.kernel.params, self.template))
        try:
            found = parameters(text.text, self.kernel.name, names)
        except ValueError as error:
            raise KernelError(f"{self.kernel.file}: {error}") from None
        module = cupy.RawModule(
            code=text.text, options=OPTIONS, name_expressions=(self.expression,)
        )
        try:
            self._function = module.get_function(self.expression)
            self._function.num_regs  # noqa: B018  compiles now, so that errors are raised here
        except CompileException as error:
            raise KernelError(
                f"{self.kernel.file} does not compile as {self.expression}:\n{error}"
            ) from None
        self._converters = [converter(p, self.expression) for p in found]
        self._roomy.clear()
        self._version = text.version

    def __call__(self, grid: Any, block: Any, *args: Any, shared: int = 0) -> None:
        """Launch on the current stream: `grid` and `block` are ints or tuples of up to three."""
        function = self.function
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
