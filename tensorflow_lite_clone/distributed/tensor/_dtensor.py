"""`DTensor`: a tensor that lies on a mesh of devices, of which this process holds a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.distributed import collectives
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.distributed.tensor._layout import (
    Layout,
    Placements,
    mesh_or_current,
    normalized,
    place_in,
)
from tensorflow_lite_clone.distributed.tensor._moves import move, moved
from tensorflow_lite_clone.distributed.tensor.placement_types import Partial, Replicate, Shard
from tensorflow_lite_clone.ops.create import constructors  # noqa: F401  which enter the face
from tensorflow_lite_clone.ops.random import sampling  # noqa: F401  which enter the face
from tensorflow_lite_clone.ops.shape.memory import contiguous_format
from tensorflow_lite_clone.tensor import Parameter, Tensor


class DTensor(Tensor):
    """A part of a tensor, with the whole's shape, its mesh, and how it is placed there.

    It can be placed otherwise (`redistribute`), and taken apart (`to_local`, `full_tensor`), all of
    which has gradients; functions of elements, `copy_`, `detach`, `clone` and conversions work part
    by part. It has no other operations: they raise NotImplementedError. ``nn.Parameter(dtensor)``
    is a parameter over the part.
    """

    __slots__ = ()

    #: By name what functions of elements do of which an argument is a DTensor (`_elementwise`).
    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    __torch_function__ = disabled

    _local_tensor: Tensor
    _spec: Layout

    def __new__(cls, local_tensor: Tensor, spec: Layout) -> DTensor:
        made: Any = object.__new__(cls)
        made._local_tensor, made._spec = local_tensor, spec
        made._edge = made._view = None  # the part has a place in the graph
        return made

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Any] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
    ) -> DTensor:
        """The tensor of which each process gives a part.

        Without a shape (and stride) all slices are of one size. With `run_check` repeated parts are
        made those of the first process. Raises RuntimeError for a dimension that is not there.
        """
        mesh = mesh_or_current(device_mesh)
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}.",
                "Please pass both shape and stride at the same time.",
            )
        for i, placement in enumerate(placements or ()):
            if isinstance(placement, Shard) and placement.dim >= local_tensor.ndim:
                raise RuntimeError(
                    f"Sharding dim {placement.dim} greater than tensor ndim {local_tensor.ndim} "
                    f"for placement number {i}"
                )
        places = normalized(placements, mesh, local_tensor.ndim)
        if shape is None:
            shape = list(local_tensor.shape)
            for parts, placement in zip(mesh.shape, places):
                if isinstance(placement, Shard):
                    shape[placement.dim] *= parts
        if run_check:
            with no_grad():
                for i, placement in enumerate(places):
                    if isinstance(placement, Replicate):
                        group = mesh.get_group(i)
                        collectives.broadcast(local_tensor, group=group, group_src=0)
        return DTensor(local_tensor, Layout(mesh, places, Size(shape)))

    def to_local(self, *, grad_placements: Sequence[Any] | None = None) -> Tensor:
        """This process's part. Its gradient is placed as the tensor is, or as is said here."""
        gradient = None
        if grad_placements is not None:
            gradient = normalized(grad_placements, self.device_mesh, self.ndim)
        return moved(self._local_tensor, self._spec, self.placements, gradient)

    def full_tensor(self, *, grad_placements: Sequence[Any] | None = None) -> Tensor:
        """The whole tensor, in every process."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Any] | None = None,
        *,
        async_op: bool = False,
    ) -> DTensor:
        """The same tensor, placed otherwise on the same mesh.

        Raises RuntimeError where terms of a sum are to be made of what is whole or cut.
        """
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("a tensor cannot be moved to another mesh")
        target = normalized(placements, self.device_mesh, self.ndim)
        for before, after in zip(self.placements, target):
            if isinstance(after, Partial) and before != after:
                raise RuntimeError(
                    f"Can not redistribute from {before} to {after}, redistributing to Partial is "
                    "for internal use only!"
                )
        return self._moved(target)

    def _moved(self, target: Placements) -> DTensor:
        local = moved(self._local_tensor, self._spec, target)
        return DTensor(local, self._spec.with_placements(target))

    def _as_parameter(self, requires_grad: bool) -> LocalParameter:
        """What ``nn.Parameter(self)`` is."""
        return LocalParameter(self._local_tensor, requires_grad, self._spec)

    # -- what is known of it ------------------------------------------------------------------

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh that it lies on."""
        return self._spec.mesh

    @property
    def placements(self) -> Placements:
        """How it lies along each dimension of the mesh."""
        return self._spec.placements

    @property
    def shape(self) -> Size:
        """The size of every dimension of the whole."""
        return self._spec.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape of the whole, or the size of a dimension."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements of the whole."""
        return self.shape.numel()

    def stride(self, dim: int | None = None) -> Any:
        """The strides that the whole would have."""
        strides: list[int] = []
        step = 1
        for size in reversed(self.shape):
            strides.insert(0, step)
            step *= size
        return tuple(strides) if dim is None else strides[dim]

    @property
    def grad(self) -> Any:
        """The gradient, placed as the tensor is."""
        g = self._local_tensor.grad
        return None if g is None else self._like(g)

    @grad.setter
    def grad(self, value: DTensor | None) -> None:
        self._local_tensor.grad = None if value is None else value._local_tensor

    def _like(self, local: Tensor) -> DTensor:
        return DTensor(local, self._spec)

    def requires_grad_(self, requires_grad: bool = True) -> DTensor:
        """Want a gradient, or not."""
        self._local_tensor.requires_grad_(requires_grad)
        return self

    def copy_(self, src: Any, non_blocking: bool = False) -> DTensor:
        """Take the values of another one, however it is placed on the same mesh."""
        if not isinstance(src, DTensor):
            raise RuntimeError(
                "copy_ got mixed torch.Tensor and DTensor: distribute_tensor makes a DTensor of a "
                "Tensor"
            )
        self._local_tensor.copy_(src.redistribute(placements=self.placements).to_local())
        return self

    @property
    def _storage(self) -> Any:  # type: ignore[override]
        raise NotStrided(
            self.functions,
            "a DTensor has functions of elements, and no other operations: take its part with "
            "to_local(), or the whole with full_tensor(); modules under the styles of "
            "torch.distributed.tensor.parallel compute with parts",
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        return memo.setdefault(id(self), self._like(self._local_tensor.__deepcopy__(memo)))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise NotImplementedError(
            "a DTensor is a part of something: save its full_tensor(), or use "
            "torch.distributed.checkpoint"
        )

    def __repr__(self) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, "
            f"placements={self.placements})"
        )


class LocalParameter(Parameter):
    """A parameter over this process's part of a tensor, as ``nn.Parameter(dtensor)`` makes it.

    Shape, values and gradient are the part's, so that modules, optimizers and captured steps treat
    it as any other. `dtensor` is the whole. `state_dict` of a module under a style of
    ``tensor.parallel`` shows wholes, and `clip_grad_norm_` clips by their norm.
    """

    __slots__ = ()

    _spec: Layout

    def __new__(cls, data: Tensor, requires_grad: bool, spec: Layout) -> LocalParameter:
        made: Any = super().__new__(cls, data, requires_grad)
        made._spec = spec
        return made

    @property
    def dtensor(self) -> DTensor:
        """The whole, in the graph, over the memory of this part."""
        return DTensor(self, self._spec)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh that the whole lies on."""
        return self._spec.mesh

    @property
    def placements(self) -> Placements:
        """How the whole lies along each dimension of the mesh."""
        return self._spec.placements

    @property
    def groups_of_parts(self) -> tuple[ProcessGroup, ...]:
        """The groups whose processes have the other parts, one for each cut."""
        return self._spec.groups_of_parts

    def to_local(self) -> LocalParameter:
        """This parameter: it is the part."""
        return self

    def full_tensor(self) -> Tensor:
        """The whole, in every process."""
        return self.dtensor.full_tensor()

    def __deepcopy__(self, memo: dict[int, Any]) -> LocalParameter:
        if id(self) not in memo:
            memo[id(self)] = LocalParameter(self.data.clone(), self.requires_grad, self._spec)
        return memo[id(self)]

    def __repr__(self) -> str:
        whole = f"of {tuple(self._spec.shape)} with placements={self.placements}"
        return f"LocalParameter({self.data!r}, {whole})"


def _attribute(name: str) -> property:
    return property(lambda self: getattr(self._local_tensor, name))


def _question(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(self._local_tensor, name)(*args, **kwargs)


def _part_by_part(name: str) -> Callable[..., Any]:
    def convert(self: DTensor, *args: Any, **kwargs: Any) -> DTensor:
        before = self._local_tensor
        after = getattr(before, name)(*args, **kwargs)
        return self if after is before else self._like(after)

    return convert


for _make, _names in (
    (
        _attribute,
        "device dtype grad_fn is_cpu is_cuda is_leaf is_meta itemsize layout requires_grad",
    ),
    (_question, "element_size get_device is_complex is_floating_point"),
    (
        _part_by_part,
        "bfloat16 clone contiguous cpu cuda detach double fill_ float half to zero_",
    ),
):
    for _name in _names.split():
        setattr(DTensor, _name, _make(_name))


@no_grad()
def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Any] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """A tensor that every process has, laid out on a mesh; repeated, if no placements are given.

    The values are those of the process `src_data_rank` along each dimension of the mesh; None takes
    each process's own, without communication. Raises RuntimeError for a tensor that is not a leaf,
    ValueError for a `DTensor` that lies otherwise.
    """
    mesh = mesh_or_current(device_mesh)
    places = normalized(placements, mesh, tensor.ndim)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different "
                f"device mesh {mesh}."
            )
        if tensor.placements != places:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different "
                f"placements {places}. do you want to call `redistribute` instead?"
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor!"
        )
    place_in(mesh)  # a process outside of the mesh has no part
    local = tensor.detach().to(mesh.device_type)
    if src_data_rank is not None:
        local = local.clone(memory_format=contiguous_format)
        for group in mesh.get_all_groups():
            collectives.broadcast(local, group=group, group_src=src_data_rank)
    whole = Layout(mesh, (Replicate(),) * mesh.ndim, Size(tensor.shape))
    local = move(local, whole, places)
    return DTensor(local.requires_grad_(tensor.requires_grad), whole.with_placements(places))


def _factory(name: str, make: Callable[..., Tensor], source: int | None) -> Callable[..., DTensor]:
    def made(
        *size: Any,
        requires_grad: bool = False,
        dtype: Any = None,
        layout: Any = None,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Any] | None = None,
        **options: Any,
    ) -> DTensor:
        whole = make(*size, dtype=dtype, **options)
        result = distribute_tensor(whole, device_mesh, placements, src_data_rank=source)
        return result.requires_grad_(requires_grad)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"``torch.{name}`` of a size, laid out on a mesh."
    return made


# Random numbers are those that the first process draws, whatever the mesh.
_face = EXPORTS["torch"]
zeros, ones, empty, full = [
    _factory(name, _face[name], None) for name in "zeros ones empty full".split()
]
rand, randn = _factory("rand", _face["rand"], 0), _factory("randn", _face["randn"], 0)
