"""Device names: ``cpu``, ``cuda:0`` and whatever folders lie in ``backends``."""

from __future__ import annotations

import threading

from tensorflow_lite_clone.core.late_bound import serves_device_type
from tensorflow_lite_clone.core.signature import classes, is_int

#: PyTorch's device types; whether such a device is there is found out when it is first used.
_NAMED = frozenset(
    """cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu
    mtia privateuseone""".split()
)


class Device:
    """A device by type and index, as ``torch.device``.

    `Device("cuda:1")`, `Device("cuda", 1)` and `Device(1)` (the current accelerator type) are
    accepted; whether the device exists is found out when it is first used.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | Device | int, index: int | None = None) -> None:
        if isinstance(type, Device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int) and not isinstance(type, bool):
            index = type
            type = "cuda"
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type!r}")
        name, colon, number = type.partition(":")
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed "
                    f"explicitly: {type}"
                )
            if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        if not name.isidentifier():
            raise RuntimeError(f"Invalid device string: '{type}'")
        if name not in _NAMED and not serves_device_type(name):
            raise RuntimeError(
                f"Expected one of {', '.join(sorted(_NAMED))} or a registered device type at start "
                f"of device string: {type}"
            )
        if index is not None:
            if not is_int(index):
                kind = index.__class__.__name__
                raise TypeError(f"device(): argument 'index' must be int, not {kind}")
            if index < 0:
                raise RuntimeError(f"Device index must not be negative, got {index}")
        self.type = name
        self.index = index

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple:
        return (Device, (self.type, self.index))

    def __enter__(self) -> Device:
        _default.outer.append(_default.device)
        _default.device = self
        return self

    def __exit__(self, *exception: object) -> None:
        _default.device = _default.outer.pop()


class Layout:
    """How a tensor's elements are kept, as ``torch.layout``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name

    @property
    def short_name(self) -> str:
        """The layout as PyTorch's messages call it: "Strided", "Sparse", "SparseCsr"."""
        return "".join([part.capitalize() for part in self.name.split("_")]).removesuffix("Coo")


strided = Layout("strided")
sparse_coo = Layout("sparse_coo")
sparse_csr = Layout("sparse_csr")
sparse_csc = Layout("sparse_csc")
sparse_bsr = Layout("sparse_bsr")
sparse_bsc = Layout("sparse_bsc")
jagged = Layout("jagged")  # of nested tensors, to compare with
#: Matrices in rows or columns of elements, and of blocks.
COMPRESSED = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


class AnyLayout(Layout):
    """What parameters are annotated with that take every layout, not only `strided`."""


def is_layout(value: object) -> bool:
    """Whether an argument is a layout; NotImplementedError for one that only `AnyLayout` takes."""
    if isinstance(value, Layout) and value is not strided:
        raise NotImplementedError(f"this function makes no tensors of layout {value}")
    return isinstance(value, Layout)


classes["is_layout"], classes["Layout"] = is_layout, Layout


_UNNAMED = Device("cpu")  # the default where no program has named one


class _Default(threading.local):
    """Each thread has its own, so that one may make modules on ``meta`` beside others."""

    def __init__(self) -> None:
        self.device = self.tensor_type_device = _UNNAMED
        self.outer: list[Device] = []  # what holds again behind the `with` blocks that are open


_default = _Default()


def get_default_device() -> Device:
    """The device on which this thread makes tensors when none is named."""
    return _default.device


def named_default_device() -> Device | None:
    """The default device if a program has named one, even the CPU: tensors are copied to it."""
    device = _default.device
    return None if device is _UNNAMED else device


def get_tensor_type_device() -> Device:
    """The device of ``torch.Tensor(...)``: the CPU, or that of `set_default_tensor_type`."""
    return _default.tensor_type_device


def set_tensor_type_device(device: str) -> None:
    """Set the device of ``torch.Tensor(...)``, which `set_default_device` leaves alone."""
    _default.tensor_type_device = Device(device)


def set_default_device(device: Device | str | int | None) -> None:
    """Set the device on which this thread makes tensors when none is named; None: the CPU."""
    _default.device = _UNNAMED if device is None else Device(device)
