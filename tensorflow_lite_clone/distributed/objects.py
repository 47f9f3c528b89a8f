"""Python objects between processes.

They travel as `torch.save` writes them and are read as ``torch.load(weights_only=True)`` reads:
containers, numbers, text and tensors. Other classes are refused, unless both sides have named them
to `torch.serialization.add_safe_globals`.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import int64, uint8
from tensorflow_lite_clone.distributed.collectives import root_of
from tensorflow_lite_clone.distributed.distributed_c10d import group_of
from tensorflow_lite_clone.distributed.point_to_point import irecv, isend
from tensorflow_lite_clone.distributed.process_group import ProcessGroup
from tensorflow_lite_clone.ops.create.constructors import empty, tensor, zeros
from tensorflow_lite_clone.ops.create.interchange import frombuffer
from tensorflow_lite_clone.serialization import load, save
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _pack(value: Any, device: Any) -> Tensor:
    """An object as a tensor of bytes."""
    stream = BytesIO()
    save(value, stream)
    return frombuffer(bytearray(stream.getvalue()), dtype=uint8).to(device)


def _unpack(packed: Tensor) -> Any:
    """The object of a tensor of bytes. UnpicklingError for classes that are not known."""
    return load(BytesIO(packed.cpu().numpy().tobytes()), weights_only=True)


def _place(found: ProcessGroup, device: Any = None) -> Any:
    """Where a group's bytes lie: in host memory if something carries it."""
    return device or found.carried()


def _gathered(found: ProcessGroup, value: Any, root: int | None) -> list[Any] | None:
    """The objects of all processes, in all or in the process `root`."""
    place = _place(found)
    packed = _pack(value, place)
    sizes = [zeros(1, dtype=int64, device=place) for _ in range(found.size())]
    found.all_gather(sizes, tensor([packed.numel()], device=place)).wait()
    counts = [int(size) for size in sizes]
    padded = zeros(max(counts), dtype=uint8, device=place)
    padded[: packed.numel()] = packed
    here = root is None or found.rank() == root
    parts = [empty(max(counts), dtype=uint8, device=place) for _ in counts] if here else []
    if root is None:
        found.all_gather(parts, padded).wait()
    else:
        found.gather(parts, padded, root).wait()
    if not here:
        return None
    return [_unpack(part[:count]) for part, count in zip(parts, counts, strict=True)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all processes to a list."""
    found = group_of(group, "all_gather_object")
    if found is not None:
        object_list[: found.size()] = _gathered(found, obj, None) or []


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Write the objects of all processes to a list in the process `dst`."""
    found = group_of(group, "gather_object")
    if found is None:
        return
    root = root_of(found, dst, group_dst)
    if found.rank() == root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if found.rank() != root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    values = _gathered(found, obj, root)
    if values is not None:
        assert object_gather_list is not None
        object_gather_list[: found.size()] = values


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Device | str | None = None,
    group_src: int | None = None,
) -> None:
    """Replace the objects of a list by those of the process `src`."""
    found = group_of(group, "broadcast_object_list")
    if found is None:
        return
    root, place = root_of(found, src, group_src), _place(found, device)
    is_root = found.rank() == root
    parts = [_pack(value, place) for value in object_list] if is_root else []
    sizes = (
        tensor([part.numel() for part in parts], device=place)
        if is_root
        else zeros(len(object_list), dtype=int64, device=place)
    )
    found.broadcast(sizes, root).wait()
    for index, size in enumerate(sizes.tolist()):
        part = parts[index] if is_root else empty(size, dtype=uint8, device=place)
        found.broadcast(part, root).wait()
        if not is_root:
            object_list[index] = _unpack(part)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Put this process's object of the list of the process `src` into a list."""
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    found = group_of(group, "scatter_object_list")
    if found is None:
        return
    root, place = root_of(found, src, group_src), _place(found)
    is_root, size = found.rank() == root, zeros(1, dtype=int64, device=place)
    parts: list[Tensor] = []
    if is_root:
        if not scatter_object_input_list or len(scatter_object_input_list) != found.size():
            raise ValueError(f"scatter_object_input_list must have {found.size()} objects")
        parts = [_pack(value, place) for value in scatter_object_input_list]
        found.scatter(size, [tensor([p.numel()], device=place) for p in parts], root).wait()
    else:
        found.scatter(size, [], root).wait()
    own = empty(int(size), dtype=uint8, device=place)
    others = [empty(0, dtype=uint8, device=place)] * found.size()
    if is_root:
        found.all_to_all(
            [own if r == root else others[r] for r in range(found.size())], parts
        ).wait()
    else:
        outputs = [own if r == root else others[r] for r in range(found.size())]
        found.all_to_all(outputs, others).wait()
    scatter_object_output_list[0] = _unpack(own)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Device | str | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send the objects of a list to the process `dst`."""
    found = group_of(group, "send_object_list")
    if found is None:
        return
    place = _place(found, device)
    parts = [_pack(value, place) for value in object_list]
    sizes = tensor([part.numel() for part in parts], device=place)
    for each in (sizes, *parts):
        work = isend(each, dst, group, group_dst=group_dst)
        assert work is not None
        work.wait()


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Device | str | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int | None:
    """Replace the objects of a list by those that the process `src` sends; who that is."""
    found = group_of(group, "recv_object_list")
    if found is None:
        return None
    place = _place(found, device)
    sizes = zeros(len(object_list), dtype=int64, device=place)
    work = irecv(sizes, src, group, group_src=group_src)
    assert work is not None
    work.wait()
    sender = work.source_rank() if src is None and group_src is None else group_src
    for index, size in enumerate(sizes.tolist()):
        part = empty(size, dtype=uint8, device=place)
        work = irecv(part, src, group, group_src=sender if src is None else None)
        assert work is not None
        work.wait()
        object_list[index] = _unpack(part)
    return found.ranks[sender] if src is None and sender is not None else src
