"""Sequences of different lengths in one tensor: padded, or packed step after step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, int64
from tensorflow_lite_clone.ops.create.constructors import as_tensor
from tensorflow_lite_clone.ops.create.constructors import tensor as make_tensor
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor


class PackedSequence_(NamedTuple):
    """The fields of `PackedSequence`."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedSequence_):
    """The elements of several sequences: the first of each, the second of each that has one, ...

    `data` has them, longest sequence first, `batch_sizes` (on the CPU) says how many sequences
    have a first, a second, ... element. `sorted_indices` leads from the original order to that of
    length, `unsorted_indices` back; both are None if the order did not change.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The elements in another dtype or on another device, as `Tensor.to`."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [
            None if part is None else part.to(data.device)
            for part in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a CUDA device."""
        if not args and "device" not in kwargs:
            args = ("cuda",)
        return self.to(*args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the CPU."""
        return self.to("cpu", *args, **kwargs)

    def pin_memory(self) -> PackedSequence:
        """In page-locked memory."""
        indices = [
            None if part is None else part.pin_memory()
            for part in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *indices)

    def is_pinned(self) -> bool:
        """Whether the elements are in page-locked memory."""
        return self.data.is_pinned()

    @property
    def is_cuda(self) -> bool:
        """Whether the elements are on a CUDA device."""
        return self.data.is_cuda


def _cast(name: str, dtype: DType) -> None:
    def cast(self: PackedSequence) -> PackedSequence:
        return self.to(dtype=dtype)

    cast.__name__ = name
    cast.__qualname__ = f"PackedSequence.{name}"
    cast.__doc__ = f"The elements in {dtype.name}."
    setattr(PackedSequence, name, cast)


for _name in ("double", "float", "half", "long", "int", "short"):
    _cast(_name, dtypes.ALIASES[_name])
_cast("char", dtypes.int8)
_cast("byte", dtypes.uint8)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each index stands in a permutation; None for None."""
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device)
    return permutation.new_zeros(permutation.shape).scatter(0, permutation, places)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack (steps, n, ...), or (n, steps, ...) with `batch_first`, of sequences of these lengths.

    `lengths` is a list or a tensor on the CPU, (n,). With `enforce_sorted` they must descend,
    without it the sequences are sorted. Raises RuntimeError for lengths that do not fit.
    """
    if not isinstance(lengths, Tensor):
        lengths = make_tensor([int(n) for n in lengths], dtype=int64, device="cpu")
    lengths = as_tensor(lengths, dtype=int64)
    if lengths.ndim != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.ndim}D {lengths.device.type} Long tensor"
        )
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    padded = input.transpose(0, 1) if batch_first else input
    steps, n = padded.size(0), padded.size(1)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if len(lengths) != n:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} "
            f"(batch_size={n})"
        )
    if int(lengths.min()) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if bool((lengths[:-1] < lengths[1:]).any()):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if int(lengths[0]) > steps:
        raise RuntimeError(f"a length is {int(lengths[0])}, but there are {steps} steps")
    present = arange(int(lengths[0]), device="cpu")[:, None] < lengths
    rows = present.flatten().nonzero().flatten().to(input.device)
    data = padded.reshape(steps * n, *padded.shape[2:]).index_select(0, rows)
    return PackedSequence(data, present.sum(1), order)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequences of a packed one, (steps, n, ...), and their lengths, (n,).

    There are `total_length` steps, ValueError if that is less than needed, by default as many as
    the longest sequence has.
    """
    steps = len(sequence.batch_sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got {total_length=} and max sequence length being {steps}"
            )
        steps = total_length
    data, n = sequence.data, int(sequence.batch_sizes[0])
    present = arange(n, device="cpu") < sequence.batch_sizes[:, None]
    rows = present.flatten().nonzero().flatten().to(data.device)
    rest = data.shape[1:]
    padded = data.new_full((steps * n, *rest), padding_value).index_copy(0, rows, data)
    padded, lengths = padded.reshape(steps, n, *rest), present.sum(0)
    if batch_first:
        padded = padded.transpose(0, 1)
    order = sequence.unsorted_indices
    if order is not None:
        padded = padded.index_select(0 if batch_first else 1, order)
        lengths = lengths[order.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, ...) as (longest, n, ...), or (n, longest, ...) with `batch_first`.

    `padding_value` fills what is missing at the end, or with `padding_side="left"` at the
    beginning. The dtype is that of the first sequence. Raises RuntimeError for an empty list.
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    parts = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    for index, part in enumerate(parts):
        if not isinstance(part, Tensor):
            raise TypeError(
                f"expected Tensor as element {index} in argument 0, but got {type(part).__name__}"
            )
        if not part.ndim:
            raise RuntimeError("pad_sequence: a sequence has at least one dimension")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    first, n = parts[0], len(parts)
    rest = first.shape[1:]
    lengths = make_tensor([part.shape[0] for part in parts], device="cpu")
    longest = max(part.shape[0] for part in parts)
    places = arange(longest, device="cpu")
    present = places < lengths[:, None]
    if padding_side == "left":
        present = places >= longest - lengths[:, None]
    rows = present.flatten().nonzero().flatten()
    if not batch_first:
        rows = rows % longest * n + rows.div(longest, rounding_mode="floor")
    data = cat([part.to(first).expand(part.shape[0], *rest) for part in parts])
    padded = first.new_full((n * longest, *rest), padding_value)
    padded = padded.index_copy(0, rows.to(first.device), data)
    return padded.reshape(*((n, longest) if batch_first else (longest, n)), *rest)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences in a padded tensor, each of its length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    counts = lengths.tolist()
    return [part[:count] for part, count in zip(padded_sequences.unbind(0), counts)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (length, ...); see `pack_padded_sequence`."""
    lengths = [part.shape[0] for part in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences in a packed one, in their original order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
