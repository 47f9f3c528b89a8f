"""Kernels of `.cu` files, compiled when first launched and again after an edit."""

from __future__ import annotations

import threading
from typing import Any

import cupy
from cupy.cuda import get_current_stream
from cupy.cuda.compiler import CompileException
from cupy.cuda.runtime import free
from cupy.cuda.runtime import getDevice as get_device
from cupy_backends.cuda.api.driver import CUDADriverError
from cupy_backends.cuda.api.driver import launchKernel as launch

from tensorflow_lite_clone.backends.cupy.binaries import OPTIONS, binary
from tensorflow_lite_clone.backends.cupy.device_facts import here
from tensorflow_lite_clone.backends.cupy.signature import Packer, converter
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.kernels.kernel import Kernel, KernelError
from tensorflow_lite_clone.kernels.signature import Parameter, parameters
from tensorflow_lite_clone.kernels.sources import Source


class _Watch(threading.local):
    """Where this thread notes what it launches and which tensor maps it makes, or None."""

    launches: list[tuple] | None = None
    maps: dict[bytes, tuple] | None = None


watch = _Watch()
_UNKNOWN = None, (), (), (), 0  # in place of a launch of which no more is noted
_ONES = ((1, 1, 1), (1, 1), (1,), ())
_launches = hooks.on_launch
_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT of the driver
_STATIC_SHARED = 48 * 1024  # bytes; a kernel must be told of more


def unknown() -> None:
    """Note that this thread does something of which no more is noted."""
    if watch.launches is not None:
        watch.launches.append(_UNKNOWN)


def launch_again(error: CUDADriverError, *values: Any) -> None:
    """The driver's launch after one failed since this thread had not used the device before."""
    if error.status != _INVALID_CONTEXT:
        raise error
    free(0)  # now it has
    launch(*values)


class Instance:
    """One instantiation of a kernel."""

    __slots__ = (
        "_addresses",
        "_converters",
        "_function",
        "_packer",
        "_roomy",
        "_source",
        "kernel",
        "parameters",
        "template",
        "version",
    )

    def __init__(self, kernel: Kernel, template: tuple[str, ...]) -> None:
        self.kernel, self.template = kernel, template
        self._source: Source | None = None
        self.version = -1
        self.parameters: list[Parameter] = []
        self._function: Any = None
        self._converters: list[Any] = []
        self._packer: Any = None
        self._addresses: dict[int, int] = {}  # by device
        self._roomy: dict[int, int] = {}

    @property
    def expression(self) -> str:
        """The instantiation as C++ writes it."""
        return (
            f"{self.kernel.name}<{', '.join(self.template)}>"
            if self.template
            else (self.kernel.name)
        )

    @property
    def function(self) -> Any:
        """CuPy's function object, compiled if that has not been done since the last edit."""
        if self.current_version() != self.version:
            self._compile()
        return self._function

    @property
    def address(self) -> int:
        """Where the driver has it for the current device."""
        device = get_device()
        address = self._addresses.get(device)
        if address is None:
            address = self._addresses[device] = self._function.kernel.ptr
        return address

    def current_version(self) -> int:
        """That of the source as it is now; `version` is the one compiled, -1 for none."""
        return -2 if self._source is None else self._source.refresh()

    def _compile(self) -> None:
        source = self.kernel.source
        version, text = source.refresh(), source.text
        try:
            found = parameters(text, self.kernel.name, self.template)
        except ValueError as error:
            raise KernelError(f"{source.path}: {error}") from None
        if source.architecture is not None:
            _check_architecture(source)
        try:
            if source.architecture is None:
                module = cupy.RawModule(
                    code=text, options=OPTIONS, name_expressions=(self.expression,)
                )
                function = module.get_function(self.expression)
            else:
                path, name = binary(text, self.expression, source.architecture)
                function = cupy.RawModule(path=str(path)).get_function(name)
            function.num_regs  # noqa: B018  compiles now, so that errors are raised here
        except (CompileException, ValueError) as error:
            raise KernelError(
                f"{source.path} does not compile as {self.expression}:\n{error}"
            ) from None
        self._function = function
        self.parameters = found
        self._converters = [converter(p, self.expression) for p in found]
        self._packer = Packer(found)
        self._addresses.clear()
        self._roomy.clear()
        self._source, self.version = source, version

    def __call__(self, grid: Any, block: Any, *args: Any, shared: int = 0) -> None:
        """Launch on the current stream: `grid` and `block` are ints or tuples of up to three."""
        if self.current_version() != self.version:
            self._compile()
        if shared > _STATIC_SHARED:
            self._make_room(shared)
        if grid.__class__ is not tuple:
            grid = (grid,)
        if block.__class__ is not tuple:
            block = (block,)
        launched: Any = ()
        if _launches:
            path = str(self.kernel.source.path)
            launched = hooks.tell_launch(self.expression, path, grid, block)
        packer = self._packer
        with packer.lock:
            packed = packer.pack(args)
            if packed:
                values = (
                    self.address, *grid, *_ONES[len(grid)], *block, *_ONES[len(block)], shared,
                    get_current_stream().ptr, packer.address, 0,
                )  # fmt: skip
                try:
                    launch(*values)
                except CUDADriverError as error:
                    launch_again(error, *values)
        if not packed:
            self._launch_checked(grid, block, args, shared)
        if watch.launches is not None:
            watch.launches.append((self, grid, block, args, shared) if packed else _UNKNOWN)
        for end in launched:
            end()

    def _make_room(self, shared: int) -> None:
        """Tell the driver of a block's shared memory beyond what it allows unasked."""
        device = get_device()
        if self._roomy.get(device, 0) < shared:
            self._function.max_dynamic_shared_size_bytes = shared
            self._roomy[device] = shared

    def _launch_checked(self, grid: tuple, block: tuple, args: tuple, shared: int) -> None:
        """Check every argument, say which one does not fit, and let CuPy launch."""
        converters = self._converters
        if len(args) != len(converters):
            raise TypeError(
                f"{self.expression} takes {len(converters)} arguments, but {len(args)} were given"
            )
        values = tuple([convert(value) for convert, value in zip(converters, args)])
        self._function(grid, block, values, shared_mem=shared)


def _check_architecture(source: Source) -> None:
    """Raise KernelError where the current device does not run a file's one architecture."""
    device, architecture = here(), str(source.architecture)
    number = architecture.removeprefix("sm_").rstrip("a")
    if number != str(device.capability):
        raise KernelError(
            f"{source.path} is for {architecture} alone, and the current device, {device.name}, is "
            f"sm_{device.capability}"
        )


def blocks_for(count: int, block: int) -> int:
    """How many blocks of `block` threads cover `count` elements, at least one, at most 2**20."""
    return max(1, min(-(-count // block), 1 << 20))


__all__ = ["Instance", "Kernel", "KernelError", "blocks_for"]
