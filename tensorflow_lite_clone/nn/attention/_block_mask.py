"""Masks of attention by blocks: which are empty, full, or partly masked."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from copy import copy
from math import ceil, prod
from typing import Any, NoReturn

from tensorflow_lite_clone.core.dtypes import bool_, int32
from tensorflow_lite_clone.core.late_bound import vmap
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.create.constructors import ones, zeros
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.tensor import Tensor

_DEFAULT_BLOCK = 128  # PyTorch's, which suits its kernels

#: Counts and indices of partly masked blocks, then of those that are not masked at all.
Lists = tuple[Any, Any, Any, Any]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function that masks nothing."""
    return ones((), dtype=bool_, device=getattr(batch, "device", None))


def _of_a_slice(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> NoReturn:
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask: positions in the slice are others. Set its "
        "mask_mod to one that is made from that of the whole BlockMask."
    )


def and_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mask function that keeps what all of `mask_mods` keep; RuntimeError if one is none."""
    _expect_callables(mask_mods)

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        kept = noop_mask(b, h, q, kv)
        for mod in mask_mods:
            kept = kept & mod(b, h, q, kv)
        return kept

    return mask


def or_masks(*mask_mods: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mask function that keeps what any of `mask_mods` keeps; RuntimeError if one is none."""
    _expect_callables(mask_mods)

    def mask(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        kept = ~noop_mask(b, h, q, kv)
        for mod in mask_mods:
            kept = kept | mod(b, h, q, kv)
        return kept

    return mask


def _expect_callables(mask_mods: tuple[Any, ...]) -> None:
    if not all([callable(mod) for mod in mask_mods]):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def over_positions(mod: Callable[..., Tensor], sizes: Any, device: Any, *scores: Tensor) -> Tensor:
    """`mod` for each batch, head, query and key of these sizes, as a tensor of them.

    It is called on scalars: an element of each of `scores`, which have these sizes, then indices.
    """
    for dim in reversed(range(4)):
        own = [0 if place == dim else None for place in range(4)]
        mod = vmap(mod, in_dims=(*[0 for _ in scores], *own))
    return mod(*scores, *[arange(size, device=device) for size in sizes])


def _is_score_mod(mod: Callable[..., Any]) -> bool:
    """Whether a function takes a score and a position; AssertionError if not even a position."""
    parameters = inspect.signature(mod).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum([p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters])
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 5


def create_mask(
    mod_fn: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The dense mask, (B, H, Q_LEN, KV_LEN), of a mask function; True is what takes part.

    Of a function of scores it is what it does not make -inf. None for `B` or `H` is 1.
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    if _is_score_mod(mod_fn):
        return ~over_positions(mod_fn, sizes, device, zeros(sizes, device=device)).isneginf()
    return over_positions(mod_fn, sizes, device)


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _listed(dense: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks each row of a dense map has, and all columns, those blocks' first."""
    dense = dense.to(int32)
    order = dense.argsort(dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(int32), order.to(int32).contiguous()


def _dense(num_blocks: Tensor, indices: Tensor) -> Tensor:
    """The dense map, of 0 and 1, of what `_listed` gives."""
    columns = indices.size(-1)
    listed = arange(columns, device=indices.device) < num_blocks.unsqueeze(-1)
    # What is not listed is written to one column more, which is dropped.
    places = indices.long().where(listed, columns)
    result = zeros((*indices.shape[:-1], columns + 1), dtype=int32, device=indices.device)
    return result.scatter(-1, places, 1)[..., :columns]


class BlockMask:
    """A mask by blocks of queries and keys, and the function that masks inside the blocks.

    For each row of blocks, `kv_num_blocks` (..., rows) says how many are partly masked, and
    `kv_indices` (..., rows, columns) which, first in the row; `full_kv_num_blocks` and
    `full_kv_indices` say the same of those that are not masked at all. The tensors with ``q`` say
    it for each column. Made by `create_block_mask` or `BlockMask.from_kv_blocks`.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_BLOCK, _DEFAULT_BLOCK),
        mask_mod: Callable[..., Tensor] = noop_mask,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_BLOCK,
        mask_mod: Callable[..., Tensor] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """The mask of these blocks of keys for each row; blocks of queries follow from them.

        Without `seq_lengths` the sequences fill their blocks.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        sizes = _pair(BLOCK_SIZE)
        q_blocks: Lists = (None, None, None, None)
        if compute_q_blocks:
            q_blocks = (*_listed(_dense(kv_num_blocks, kv_indices).mT), None, None)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = _listed(_dense(full_kv_num_blocks, full_kv_indices).mT)
                q_blocks = (*q_blocks[:2], *full)
        if seq_lengths is None:
            rows, width = kv_indices.shape[-2:]
            seq_lengths = (rows * sizes[0], width * sizes[1])
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            *q_blocks,
            sizes,
            noop_mask if mask_mod is None else mask_mod,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Leading dimensions, queries, keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many elements the dense mask has."""
        return prod(self.shape)

    def sparsity(self) -> float:
        """The share of elements that is in no block, in percent.

        Blocks past a sequence's end count in full, so it may be negative.
        """
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """1 for each block in which something takes part, else 0: (..., rows, columns)."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            dense = dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def _changed(
        self,
        change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        mask_mod: Callable[..., Tensor],
        seq_lengths: tuple[int, int],
    ) -> BlockMask:
        """A mask whose partial and full blocks are what `change` makes of these."""
        blocks: Lists = (*change(self.kv_num_blocks, self.kv_indices), None, None)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            blocks = (*blocks[:2], *change(self.full_kv_num_blocks, self.full_kv_indices))
        with_q_blocks = self.q_indices is not None
        return BlockMask.from_kv_blocks(
            *blocks, self.BLOCK_SIZE, mask_mod, seq_lengths, with_q_blocks
        )

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some batches, heads and rows of blocks, without its function.

        An index keeps its dimension, which then has size 1.
        """
        index = index if isinstance(index, tuple) else (index,)
        parts = tuple([slice(i, i + 1 or None) if isinstance(i, int) else i for i in index])
        return self._changed(
            lambda counts, indices: (counts[parts], indices[parts]),
            mask_mod=_of_a_slice,
            seq_lengths=self.seq_lengths,
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left part, for shorter sequences."""
        rows = ceil(new_q_len / self.BLOCK_SIZE[0])
        columns = ceil(new_kv_len / self.BLOCK_SIZE[1])
        return self._changed(
            lambda counts, indices: _listed(_dense(counts, indices)[..., :rows, :columns]),
            mask_mod=self.mask_mod,
            seq_lengths=(new_q_len, new_kv_len),
        )

    def to(self, device: Any) -> BlockMask:
        """The mask on another device; what its function refers to stays where it is."""
        result = copy(self)
        for name in _TENSORS:
            part = getattr(self, name)
            setattr(result, name, None if part is None else part.to(device))
        return result

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the blocks for each batch and head, at most `limit` of them.

        Its cells, at most `grid_size` (-1: one per block), are filled, shaded or empty where all,
        some or none of the blocks take part.
        """
        dense = self.to_dense()
        *leading, rows, columns = dense.shape
        grid = (rows, columns) if grid_size == -1 else _pair(grid_size)
        steps = (max(ceil(rows / grid[0]), 1), max(ceil(columns / grid[1]), 1))
        text = ""
        for count, index in enumerate(itertools.product(*[range(size) for size in leading])):
            if count == limit:
                return text + _MORE
            text += f"{index}\n{_picture(dense[index].tolist(), steps)}\n\n"
        return text[:-1]

    def __str__(self) -> str:
        picture = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{picture}\n)"

    def __repr__(self) -> str:
        lines = []
        for name in _TENSORS:
            part = getattr(self, name)
            lines.append(f"{name}={part if part is None else Size(part.shape)}")
        lines += [
            f"BLOCK_SIZE={self.BLOCK_SIZE}",
            f"shape={self.shape}",
            f"sparsity={self.sparsity():.2f}%",
            f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}",
        ]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"


_TENSORS = (
    "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices "
    "q_num_blocks q_indices full_q_num_blocks full_q_indices"
).split()
_MORE = (
    "...\nTo print out more, set BlockMask.to_string(limit=N)\n"
    "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
)


def _picture(rows: list[list[int]], steps: tuple[int, int]) -> str:
    lines = []
    for top in range(0, len(rows), steps[0]):
        band = rows[top : top + steps[0]]
        cells = ""
        for left in range(0, len(rows[0]), steps[1]):
            cell = [value for row in band for value in row[left : left + steps[1]]]
            cells += ("██" if all(cell) else "░░") if any(cell) else "  "
        lines.append(cells)
    return "\n".join(lines)


def create_block_mask(
    mask_mod: Callable[..., Tensor],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The `BlockMask` of ``mask_mod(batch, head, q_idx, kv_idx)``, True for what takes part.

    None for `B` or `H`: the mask is the same for all. With `separate_full_blocks` blocks without a
    masked element are listed apart. The last two arguments have no effect.
    """
    if _is_score_mod(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    sizes = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device).to(int32)
    mask = F.pad(mask, (0, -KV_LEN % sizes[1], 0, -Q_LEN % sizes[0]))
    blocks = mask.unflatten(-1, (-1, sizes[1])).unflatten(-3, (-1, sizes[0])).sum((-3, -1))
    full = blocks == prod(sizes)
    lists: Lists = (*_listed(blocks > 0), None, None)
    if separate_full_blocks:
        lists = (*_listed((blocks > 0) & ~full), *_listed(full))
    return BlockMask.from_kv_blocks(*lists, sizes, mask_mod, (Q_LEN, KV_LEN))
