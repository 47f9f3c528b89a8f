"""``sparse_csr_tensor`` and its kin: tensors of indices and values, and when these are checked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from tensorflow_lite_clone.core.device import (
    COMPRESSED,
    Layout,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
)
from tensorflow_lite_clone.core.dtypes import DType, int32, int64
from tensorflow_lite_clone.core.shape import expect_storage
from tensorflow_lite_clone.ops.create import constructors
from tensorflow_lite_clone.sparse.compressed import BLOCKS, COLUMNS, INDEX_NAMES, CompressedTensor
from tensorflow_lite_clone.tensor import Tensor


class check_sparse_tensor_invariants(ContextDecorator):  # noqa: N801  torch's name
    """Context manager and decorator: check the indices of compressed tensors that are made inside.

    They are not checked otherwise, but with ``check_invariants=True``; those of tensors in
    coordinates always are. With ``enable=False`` they are not inside.
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._inside = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Check indices from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Check indices no longer, but where that is asked."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self._before.append(self.is_enabled())
        check_sparse_tensor_invariants._enabled = self._inside

    def __exit__(self, *exception: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before.pop()


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> CompressedTensor:
    """A matrix in rows or columns, or a batch of them, in a compressed `layout`.

    With n rows (columns), or rows of blocks, and batch dimensions `*b`, `compressed_indices`
    (*b, n + 1) says where each starts among `plain_indices` (*b, nnz), the columns (rows) of the
    `values` (*b, nnz, *block, *dense). Without `size` it is as small as the indices allow. The
    gradient goes to `values`; with `requires_grad` the result is a leaf. Indices are int32 or
    int64, in order in each row, and none comes twice, which is checked with `check_invariants`, or
    inside `check_sparse_tensor_invariants`: RuntimeError.

        >>> torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0]).to_dense()
        tensor([[1., 0., 2.],
                [0., 3., 0.]])
    """
    if layout not in COMPRESSED:
        found = "none" if layout is None else layout.short_name
        raise RuntimeError(
            f"sparse_compressed_tensor expected sparse compressed tensor layout but got {found}"
        )
    values = constructors.as_tensor(values, dtype=dtype, device=device)
    compressed, plain = [
        _indices(index, values.device) for index in (compressed_indices, plain_indices)
    ]
    if size is None:
        size = _estimated(compressed, plain, values, layout)
    size = constructors.size_of((tuple(size),))
    expect_storage(size, 1)
    enabled = check_sparse_tensor_invariants.is_enabled()
    if enabled if check_invariants is None else check_invariants:
        validate(compressed, plain, values, size, layout)
    if not values.requires_grad:
        values = values.detach().requires_grad_(requires_grad)  # a leaf of its own
    return CompressedTensor(layout, compressed, plain, values, size)


def _indices(index: Any, device: Any) -> Tensor:
    """A tensor of indices; of an empty list too, whose numbers are of no dtype."""
    if isinstance(index, Tensor):
        return index.to(device)
    found = constructors.as_tensor(index, device=device)
    return found if found.numel() else found.to(int64)


def _estimated(compressed: Tensor, plain: Tensor, values: Tensor, layout: Layout) -> tuple:
    """The least size that indices allow."""
    batch = compressed.ndim - 1
    lines = compressed.shape[-1] - 1
    others = int(plain.amax()) + 1 if plain.numel() else 0
    rest = values.shape[batch + 1 :]
    block, dense = (rest[:2], rest[2:]) if layout in BLOCKS else ((1, 1), rest)
    rows, columns = (others, lines) if layout in COLUMNS else (lines, others)
    return (*compressed.shape[:-1], rows * block[0], columns * block[1], *dense)


def validate(
    compressed: Tensor,
    plain: Tensor,
    values: Tensor,
    size: tuple,
    layout: Layout,
    ordered: bool = True,
) -> None:
    """RuntimeError for indices and values that are no tensor of `size` in `layout`.

    Without `ordered` the elements of a row may be in any order, and come twice.
    """
    columns, blocks = layout in COLUMNS, 2 * (layout in BLOCKS)
    starts, others = INDEX_NAMES[columns]
    batch = compressed.ndim - 1

    def expect(condition: Any, message: str) -> None:
        if not bool(condition):
            raise RuntimeError(message)

    for name, index in ((starts, compressed), (others, plain)):
        expect(index.ndim, f"{name} must have dimensionality >= 1 but got {index.ndim}")
    expect(
        plain.ndim == compressed.ndim,
        f"{starts} and {others} dimensionalities must be equal but got {compressed.ndim} and "
        f"{plain.ndim}, respectively",
    )
    expect(
        values.ndim > batch + blocks,
        "values must have dimensionality > sum of batch and block dimensionalities "
        f"(={batch} + {blocks}) but got {values.ndim}",
    )
    dense = values.ndim - batch - blocks - 1
    expect(
        len(size) == batch + 2 + dense,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
        f"(={batch} + 2 + {dense}) but got {len(size)}",
    )
    block = values.shape[batch + 1 : batch + 3] if blocks else (1, 1)
    for axis, (length, step) in enumerate(zip(size[batch : batch + 2], block, strict=True)):
        expect(
            step and length % step == 0,
            f"tensor shape[{batch + axis}] (={length}) must be divisible with blocksize[{axis}] "
            f"(={step}) as defined by values shape",
        )
    shapes = [list(part.shape[:batch]) for part in (compressed, plain, values)]
    expect(
        all([shape == list(size[:batch]) for shape in shapes]),
        f"all batch dimensions of {starts} (={shapes[0]}), {others} (={shapes[1]}), and values "
        f"(={shapes[2]}) must be equal to tensor batch dimensions (={list(size[:batch])})",
    )
    counts = [length // step for length, step in zip(size[batch:], block, strict=False)]
    lines, ends = reversed(counts) if columns else counts
    kinds = ("ncols", "nrows") if columns else ("nrows", "ncols")
    counted = ("column" if columns else "row") + (" blocks" if blocks else "s")
    expect(
        compressed.shape[-1] == lines + 1,
        f"{starts}.shape[-1] must be equal to the number of {counted} + 1 (={lines + 1}), but got "
        f"{compressed.shape[-1]}",
    )
    count = values.shape[batch]
    expect(
        plain.shape[-1] == count,
        f"{others}.shape[-1] must be equal to nnz (={count}) as defined by "
        f"values.shape[{batch}], but got {plain.shape[-1]}",
    )
    first, second = compressed.dtype, plain.dtype
    expect(
        first is second,
        f"{starts} and {others} must have the same dtype, bot got {first.short_name} and "
        f"{second.short_name}, respectively",
    )
    expect(
        first in (int32, int64),
        f"{starts} and {others} dtype must be Int or Long, but got {first.short_name}",
    )
    if not compressed.is_meta:
        _validate_indices(compressed, plain, ends, count, kinds, starts, others, ordered)


def _validate_indices(
    compressed: Tensor, plain: Tensor, ends: int, count: int,
    kinds: tuple[str, str], starts: str, others: str, ordered: bool,
) -> None:  # fmt: skip
    """RuntimeError for indices that are not those of rows, in order and each there once."""

    def expect(condition: Tensor, message: str) -> None:
        if not bool(condition.all()):
            raise RuntimeError(f"`{message}` is not satisfied.")

    expect((plain >= 0) & (plain < ends), f"0 <= {others} < {kinds[1]}")
    expect(compressed[..., 0] == 0, f"{starts}[..., 0] == 0")
    expect(compressed[..., -1] == count, f"{starts}[..., -1] == nnz")
    steps = compressed[..., 1:] - compressed[..., :-1]
    most = ends if ordered else count
    expect(
        (steps >= 0) & (steps <= most),
        f"0 <= {starts}[..., 1:] - {starts}[..., :-1] <= {kinds[1]}",
    )
    if ordered and count > 1:
        # An element that is not the first of its row comes behind the one before.
        places = constructors.zeros_like(plain)
        firsts = compressed[..., :-1].to(int64).clamp(max=count - 1)
        increases = plain[..., 1:] > plain[..., :-1]
        begins = places.scatter(-1, firsts, 1)[..., 1:] != 0
        expect(
            increases | begins,
            f"{others}[..., {starts}[..., i - 1]:{starts}[..., i]] for all i = 1, ..., "
            f"{kinds[0]} are sorted and distinct along the last dimension values",
        )


def _of(layout: Layout) -> Callable[..., CompressedTensor]:
    """The constructor of tensors in `layout`, whose indices have names."""
    name = f"{layout.name}_tensor"
    names = INDEX_NAMES[layout in COLUMNS]

    def construct(*args: Any, **options: Any) -> CompressedTensor:
        given = options.pop("layout", None)
        if given not in (None, layout):
            raise RuntimeError(
                f"{name}: layout must be {layout.short_name} but got {given.short_name}"
            )
        for mine, general in zip(names, ("compressed_indices", "plain_indices"), strict=True):
            if mine in options:
                options[general] = options.pop(mine)
        return sparse_compressed_tensor(*args, layout=layout, **options)

    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = (
        f"``{name}({', '.join(names)}, values, size=None, ...)``: `sparse_compressed_tensor` in "
        f"the layout `{layout.name}`."
    )
    return construct


sparse_csr_tensor = _of(sparse_csr)
sparse_csc_tensor = _of(sparse_csc)
sparse_bsr_tensor = _of(sparse_bsr)
sparse_bsc_tensor = _of(sparse_bsc)
