"""Parameters and buffers of a shape that is not known yet: lazy modules hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from tensorflow_lite_clone.tensor.parameter import Buffer, Parameter
from tensorflow_lite_clone.tensor.tensor import Tensor, new_tensor

_STORAGE: Any = vars(Tensor)["_storage"]  # the slot, which the property below hides


class UninitializedTensorMixin:
    """A tensor that has a dtype, a device and a place in a module, and no shape yet.

    `materialize` makes it an ordinary one. Before that it can be moved, cast, copied and saved;
    everything else asks for its storage, and gets a ValueError (RuntimeError for its shape).
    """

    __slots__ = ()

    becomes: ClassVar[type[Tensor]]  # the class after `materialize`

    @property
    def _storage(self) -> Any:
        raise ValueError(
            "Attempted to use an uninitialized parameter. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch "
            "functions"
        )

    def _without_elements(self) -> Tensor:
        """An ordinary tensor over what is there: no elements, but a dtype and a device."""
        return new_tensor(_STORAGE.__get__(self))

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a `Parameter` (a buffer: a Tensor) of that shape, with arbitrary values."""
        fresh = self._without_elements().new_empty(shape, device=device, dtype=dtype)
        self.__class__ = self.becomes
        self.data = fresh

    @property
    def data(self) -> Tensor:
        """What is there: a tensor without elements."""
        return self._without_elements()

    @data.setter
    def data(self: Any, value: Any) -> None:
        kind = type(self)
        self.__class__ = self.becomes
        self.data = value.data
        self.__class__ = kind

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        """Refuse: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
        """Take the values of something without elements, which changes nothing."""
        self._without_elements().copy_(src.data, non_blocking)
        return self

    def _like(self: Any, tensor: Tensor) -> Any:
        """An uninitialized one of the same kind with the dtype and device of `tensor`."""
        return type(self)(self.requires_grad, tensor.device, tensor.dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self._like(self._without_elements())
        return memo[id(self)]

    def __reduce_ex__(self: Any, protocol: Any) -> tuple:
        return type(self), (self.requires_grad,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _attribute(name: str) -> property:
    return property(lambda self: getattr(self._without_elements(), name))


def _question(name: str) -> Callable[..., Any]:
    def ask(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._without_elements(), name)(*args, **kwargs)

    return ask


def _conversion(name: str) -> Callable[..., Any]:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self._without_elements()
        after = getattr(before, name)(*args, **kwargs)
        return self if after is before else self._like(after)

    return convert


for _make, _names in (
    (_attribute, "device dtype is_cpu is_cuda is_meta itemsize layout ndim _version"),
    (_question, "dim get_device is_complex is_floating_point size"),
    (_conversion, "bfloat16 char cpu cuda double float half int long short to type"),
):
    for _name in _names.split():
        setattr(UninitializedTensorMixin, _name, _make(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[override]
    """A `Parameter` of a shape that is not known yet."""

    __slots__ = ()

    becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        parameter = cast(UninitializedParameter, Parameter(_nothing(device, dtype), requires_grad))
        parameter.__class__ = cls
        return parameter


class UninitializedBuffer(UninitializedTensorMixin, Buffer):  # type: ignore[override]
    """A `Buffer` of a shape that is not known yet."""

    __slots__ = ()

    becomes = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        buffer = cast(UninitializedBuffer, Buffer(_nothing(device, dtype), persistent=persistent))
        buffer.requires_grad_(requires_grad)
        buffer.__class__ = cls
        return buffer

    def _like(self, tensor: Tensor) -> UninitializedBuffer:
        return type(self)(self.requires_grad, tensor.device, tensor.dtype, self.persistent)


def _nothing(device: Any, dtype: Any) -> Tensor:
    return Tensor().new_empty(0, device=device, dtype=dtype)


def is_lazy(param: Any) -> bool:
    """Whether a tensor is uninitialized."""
    return isinstance(param, UninitializedTensorMixin)
