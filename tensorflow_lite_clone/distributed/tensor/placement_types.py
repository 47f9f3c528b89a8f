"""How the parts of a tensor lie on a mesh of devices: cut, repeated, or as terms of a sum."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


def piece(size: int, parts: int, index: int) -> tuple[int, int]:
    """Where the slice `index` of `parts` begins and how long it is, as `torch.chunk` cuts."""
    length = -(-size // parts)
    start = min(index * length, size)
    return start, min(length, size - start)


class Placement:
    """What all placements have in common."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each device has a slice (along `dim`, if it is given)."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each device has the whole."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each device has a term (of this reduction, if it is given)."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """A slice along `dim` on each device, as `torch.chunk` cuts; the last ones may be empty."""

    dim: int

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """How long the slice `rank` of `num_chunks` is, and where it begins."""
        start, length = piece(curr_local_size, num_chunks, rank)
        return length, start

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """A slice of slices, `split_factor` of them."""

    dim: int
    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """The whole on each device."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """A term on each device, which `reduce_op` (sum, avg, product, min, max) makes the whole."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
