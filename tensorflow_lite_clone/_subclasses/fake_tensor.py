"""Tensors without values that say they are on a device: what a program does, without doing it.

A `FakeTensor` stands for a tensor on the device ``meta`` and answers with another device. Functions
of one run on the meta tensors, which know shapes, dtypes and the graph, and what comes out is
dressed again. So there is nothing to be known of single functions here. Graphs have fakes as notes
on nodes, with sizes that may be symbolic; `compiler.dynamo` runs calls on them to see what they
give.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.dtypes import get_default_dtype
from tensorflow_lite_clone.core.interception import enable_for
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import ALL_DISABLED, disabling
from tensorflow_lite_clone.ops.create.convert import parse_to
from tensorflow_lite_clone.ops.decorators.autocast import meta_counts_as
from tensorflow_lite_clone.ops.namespaces import aten
from tensorflow_lite_clone.overrides import TorchFunctionMode, resolve_name
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils import _pytree as pytree

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
    "is_fake",
]

_META = Device("meta")


class _Refusal(RuntimeError):  # noqa: N818  PyTorch's names
    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class DataDependentOutputException(_Refusal):
    """A number was asked of a tensor that has none."""


class DynamicOutputShapeException(_Refusal):
    """The shape of a result depends on values, of which there are none."""


class UnsupportedFakeTensorException(RuntimeError):  # noqa: N818
    """A function that works with values was called."""


class FakeTensor(Tensor):
    """A tensor with shape, strides, dtype, device and place in the graph, but without values.

    A `FakeTensorMode` makes them; see there.
    """

    fake_mode: FakeTensorMode
    fake_device: Device
    _meta: Tensor  # what it stands for
    _sizes: Size | None = None  # where some are symbolic

    @property
    def device(self) -> Device:
        """The device that the tensor is said to be on."""
        return self.fake_device

    @property
    def shape(self) -> Size:
        """The size of every dimension."""
        return self._meta.shape if self._sizes is None else self._sizes

    def size(self, dim: int | None = None) -> Any:
        """`shape`, or one of the sizes."""
        return self.shape if dim is None else self.shape[dim]

    @property
    def is_cpu(self) -> bool:
        """Whether it is said to be in host memory."""
        return self.fake_device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        """Whether it is said to be on a CUDA device."""
        return self.fake_device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        """False, unless that is the device it is said to be on."""
        return self.fake_device.type == "meta"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        leaves = pytree.tree_leaves((args, kwargs))
        mode = next(leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor))
        return mode.run(func, args, kwargs)

    @staticmethod
    def _as_parameter(data: Any, requires_grad: bool) -> Any:
        parameter = data.detach()
        parameter._is_param = True
        return parameter.requires_grad_(requires_grad)

    def __repr__(self) -> str:
        parts = ["...", f"size={tuple(self.shape)}"]
        if self.fake_device.type != "cpu":
            parts.insert(1, f"device='{self.fake_device}'")
        if self.dtype is not get_default_dtype():
            parts.append(f"dtype={self.dtype}")
        if self._edge is not None:
            node = self.grad_fn
            parts.append("requires_grad=True" if node is None else f"grad_fn=<{node.name()}>")
        text = f"FakeTensor({', '.join(parts)})"
        is_parameter = getattr(self, "_is_param", False)
        return f"Parameter({text})" if is_parameter else text


def _of_meta(name: str) -> Any:
    return property(
        lambda fake: getattr(fake._meta, name), lambda fake, value: setattr(fake._meta, name, value)
    )


for _name in ("_storage", "_edge", "_view", "_grad", "_backward_hooks", "_post_accumulate_hooks",
              "_retains_grad"):  # fmt: skip
    setattr(FakeTensor, _name, _of_meta(_name))

#: Functions that make a tensor of data or numbers.
_CREATIONS = frozenset(
    """
    arange as_tensor asarray bartlett_window blackman_window empty empty_permuted empty_strided eye
    full hamming_window hann_window kaiser_window linspace logspace ones rand randint randn
    randperm scalar_tensor tensor tril_indices triu_indices zeros
    """.split()
)
#: What reads numbers, of which there are none.
_READS = frozenset("item __bool__ __int__ __float__ __complex__ __index__ tolist".split())
#: Functions that take tensors on several devices: what is indexed or written, and the others.
_ACROSS_DEVICES = frozenset(
    "__getitem__ __setitem__ getitem setitem index_put index_put_ copy_".split()
)
#: Methods that name a device without an argument of that name.
_MOVES = {"cpu": "cpu", "cuda": "cuda"}


class FakeTensorMode(TorchFunctionMode):
    """A block in which tensors are made without values, and the maker of such tensors.

    Inside, what makes tensors makes fake ones, on the device that is named. Functions of fake
    tensors give fake tensors, inside and outside. With `allow_non_fake_inputs` others may be mixed
    with them, else that is an AssertionError. What asks for a number raises
    DataDependentOutputException, where a shape depends on values DynamicOutputShapeException::

        with FakeTensorMode() as mode:
            layer = torch.nn.Linear(10**6, 10**6)  # takes no memory
        y = layer(mode.from_tensor(torch.ones(2, 10**6)))  # FakeTensor(..., size=(2, 1000000))
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env = shape_env

    def from_tensor(
        self, tensor: Tensor, *, static_shapes: bool | None = None, **others: Any
    ) -> FakeTensor:
        """A tensor's fake: its shape, strides, dtype, device, and whether it wants a gradient."""
        enable_for(FakeTensor)
        return self.describe(tensor)

    def describe(self, tensor: Tensor) -> FakeTensor:
        """`from_tensor`, for who looks at a fake and calls no function of it."""
        if isinstance(tensor, FakeTensor):
            return tensor
        with disabling(ALL_DISABLED):
            empty = EXPORTS["torch"]["empty_strided"]
            meta = empty(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
            meta.requires_grad_(tensor.requires_grad)
            fake = self.dress(meta, tensor.device)
            fake._is_param = getattr(tensor, "_is_param", False)  # type: ignore[attr-defined]
        return fake

    def dress(self, meta: Tensor, device: Device, sizes: Size | None = None) -> FakeTensor:
        """A meta tensor, in its place in the graph, as one that is said to be on `device`.

        Its `shape` are `sizes` where these are given.
        """
        fake = object.__new__(FakeTensor)
        fake._meta, fake._sizes = meta, sizes
        fake.fake_mode = self
        fake.fake_device = Device("cuda", 0) if device == Device("cuda") else device
        return fake

    def __enter__(self) -> Any:
        enable_for(FakeTensor)
        return super().__enter__()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        leaves = pytree.tree_leaves((args, kwargs))
        if any([isinstance(leaf, FakeTensor) for leaf in leaves]) or _creates(func):
            return self.run(func, args, kwargs)
        return func(*args, **kwargs)

    def run(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a function gives of fake tensors, by what it gives of meta tensors."""
        name = getattr(func, "__name__", "")
        if name in _MOVES and args and isinstance(args[0], FakeTensor):
            func, args, kwargs = EXPORTS["method"]["to"], (args[0], _MOVES[name]), {}
        device, args, kwargs = _without_devices(func, args, kwargs)
        fakes: dict[int, FakeTensor] = {}  # by the ids of what they stand for

        def undress(value: Any) -> Any:
            if isinstance(value, FakeTensor):
                fakes[id(value._meta)] = value
                return value._meta
            if isinstance(value, Tensor) and value.device != _META:
                if not self.allow_non_fake_inputs and not _creates(func):
                    raise AssertionError(
                        "Please convert all Tensors to FakeTensors first or instantiate "
                        "FakeTensorMode with 'allow_non_fake_inputs'. Found in "
                        f"{resolve_name(func) or name}"
                    )
                return value.to(_META)
            return value

        with disabling(ALL_DISABLED):
            plain = pytree.tree_map(undress, (args, kwargs))
            device = device or _common_device([*fakes.values()], name in _ACROSS_DEVICES)
            if name == "numpy":
                raise RuntimeError(".numpy() is not supported for tensor subclasses.")
            if name in _READS and name != "__index__":
                raise DataDependentOutputException(aten._local_scalar_dense.default)
            try:
                with meta_counts_as(device.type):
                    result = func(*plain[0], **plain[1])
            except NotImplementedError as error:
                if fakes and "Meta tensors" in str(error):
                    raise DynamicOutputShapeException(func) from error
                raise

            def dress(value: Any) -> Any:
                if not isinstance(value, Tensor):
                    return device if isinstance(value, Device) else value
                known = fakes.get(id(value))
                return self.dress(value, device) if known is None else known

            return pytree.tree_map(dress, result)


def _creates(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name in _CREATIONS and resolve_name(func) == f"torch.{name}"


def _without_devices(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """The device that a call names, if any, and its arguments with meta in the place of that."""
    name = getattr(func, "__name__", "")
    if _creates(func):
        device_named = Device(kwargs.get("device") or get_default_device())
        return device_named, args, {**kwargs, "device": _META}
    if name == "to" and args:
        device, dtype, copy, memory_format = parse_to(*args[1:], **kwargs)
        options = {"dtype": dtype or args[0].dtype, "copy": copy, "memory_format": memory_format}
        arguments = {key: value for key, value in options.items() if value is not None}
        moves = device is not None and device != args[0].device
        return device, args[:1], {**arguments, "copy": copy or moves}
    if kwargs.get("device") is not None:
        return Device(kwargs["device"]), args, {**kwargs, "device": _META}
    return None, args, kwargs


def _common_device(fakes: list[FakeTensor], may_differ: bool) -> Device:
    """The device of a result: that of the tensors with dimensions, else of the first."""
    devices = [fake.fake_device for fake in fakes if fake.ndim] or [x.fake_device for x in fakes]
    for other in devices:
        if other != devices[0] and not may_differ:
            raise RuntimeError(
                "Unhandled FakeTensor Device Propagation: found two different devices "
                f"{devices[0]}, {other}"
            )
    return devices[0] if devices else get_default_device()


def is_fake(x: Any) -> bool:
    """Whether `x` is a tensor without values."""
    return isinstance(x, FakeTensor)
