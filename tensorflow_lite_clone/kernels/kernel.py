"""A kernel by name: what a launcher holds. Compiling and launching is `backends/cupy/kernel.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorflow_lite_clone.core.late_bound import compile_kernel
from tensorflow_lite_clone.kernels.signature import c_type
from tensorflow_lite_clone.kernels.sources import Source, source


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
    first launched, and again when the file or a header it includes was edited. Raises KernelError,
    and FileNotFoundError for a missing file, at the launch.
    """

    def __init__(self, file: str | Path, name: str, *, params: tuple[str, ...] = ()) -> None:
        self.file, self.name, self.params = file, name, tuple(params)
        self._instances: dict[Any, Any] = {}
        self._source: Source | None = None

    @property
    def source(self) -> Source:
        """The file; FileNotFoundError with the places that were tried."""
        if self._source is None:
            self._source = source(self.file)
        return self._source

    def __getitem__(self, arguments: Any) -> Any:
        try:
            return self._instances[arguments]
        except KeyError:
            pass
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        if len(given) != len(self.params):
            raise TypeError(
                f"{self.name} takes the template arguments {self.params}, but {given} were given"
            )
        template = tuple(map(c_type, given))
        instance = self._instances[arguments] = compile_kernel(self, template)
        return instance

    def __call__(self, grid: Any, block: Any, *args: Any, shared: int = 0) -> None:
        """Launch a kernel without template parameters."""
        self[()](grid, block, *args, shared=shared)

    def __repr__(self) -> str:
        return f"<kernel {self.name} of {self.file}>"
