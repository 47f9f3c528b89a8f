"""``embedding`` looks rows of a table up; ``one_hot`` is what it multiplies the table by."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.autograd.sparse import sparse_gradient
from tensorflow_lite_clone.core.dtypes import int32, int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._samples import holds
from tensorflow_lite_clone.tensor import Tensor


class Embedding(Op):
    """Rows of w (rows, d) at an index of any shape."""

    cost = costs.lookup

    def forward(F, w, index, *, rows, padding, by_frequency, sparse=False):
        F.check_index(index, rows, 0)
        return F.take(w, index, axis=0)

    def backward_w(F, g, index, *, rows, padding, by_frequency, sparse=False):
        if sparse and not F.backend.batched:
            return _rows_of(F, g, index, rows, padding, by_frequency)
        return F.embedding_backward(g, index, rows=rows, padding=padding, by_frequency=by_frequency)


def _rows_of(F: Any, g: Any, index: Any, rows: int, padding: Any, by_frequency: bool) -> Tensor:
    """The gradient as a sparse tensor: the rows of g in the order in which they were looked up."""
    if by_frequency:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        )
    width = g.shape[-1]
    index, values = F.reshape(index, (-1,)), F.reshape(g, (math.prod(index.shape), width))
    if padding is not None:
        (kept,) = F.nonzero(index != padding)
        index, values = F.take(index, kept, axis=0), F.take(values, kept, axis=0)
    indices = F.reshape(index, (1, -1))
    return sparse_gradient(F, indices, values, (rows, width))


class EmbeddingBackward(Op):
    """The rows of g added up by index, without those of the index `padding`; with `by_frequency`
    divided by how often their index occurs."""

    def forward(F, g, index, *, rows, padding, by_frequency):
        result = F.zeros((rows, g.shape[-1]), dtype=g.dtype)
        F.add_at(result, index, _weighted(F, g, index, rows, padding, by_frequency))
        return result

    def backward_g(F, h, index, *, rows, padding, by_frequency):
        return F.embedding_pick(h, index, rows=rows, padding=padding, by_frequency=by_frequency)


class EmbeddingPick(Op):
    """The transpose of `EmbeddingBackward`: its weights times rows of w."""

    label = "EmbeddingBackward"

    def forward(F, w, index, *, rows, padding, by_frequency):
        return _weighted(F, F.take(w, index, axis=0), index, rows, padding, by_frequency)

    def backward_w(F, g, index, *, rows, padding, by_frequency):
        return F.embedding_backward(g, index, rows=rows, padding=padding, by_frequency=by_frequency)


def _weighted(F: Any, g: Any, index: Any, rows: int, padding: Any, by_frequency: bool) -> Any:
    if padding is not None:
        g = F.where((index == padding)[..., None], F.zeros((), dtype=g.dtype), g)
    if by_frequency:
        index_line = F.reshape(index, (-1,))
        counts = F.zeros((rows,), dtype=F.int64)
        counts = F.index_add(counts, index_line, F.ones_like(index_line), axis=0)
        g = g / F.astype(F.take(counts, index), g.dtype)[..., None]
    return g


def _renormalize(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that will be looked up and are longer than `max_norm` in place."""
    if not weight._storage.backend.has_values:
        return  # only values would change
    with no_grad():
        used = index.reshape(-1).unique()
        rows = weight.detach()[used]
        norms = rows.abs().pow(norm_type).sum(1, keepdim=True).pow(1 / norm_type)
        long = (norms > max_norm).reshape(-1)
        if bool(long.any()):
            scaled = rows[long] * (max_norm / (norms[long] + 1e-7))
            weight.detach()[used[long]] = scaled


@public("functional")
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (rows, d) at the indices `input`, (...) giving (..., d).

    The row `padding_idx` gets no gradient; with `max_norm` longer rows are shortened in place
    first. With `sparse` the gradient of `weight` is a sparse tensor with a row for each index, in
    their order, those equal to `padding_idx` left out. Raises IndexError outside of the table.
    """
    table = weight._storage.physical
    if table.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    dtype = input.dtype
    if dtype is not int64 and dtype is not int32:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{input.dtype.short_name}Tensor instead (while checking "
            "arguments for embedding)"
        )
    rows = table.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise AssertionError("padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    try:
        return apply(
            Embedding, weight, input, rows=rows, padding=padding_idx,
            by_frequency=bool(scale_grad_by_freq), sparse=bool(sparse),
        )  # fmt: skip
    except IndexError as error:  # packages look for PyTorch's words
        raise IndexError(f"index out of range in self\n{error}") from None


@public("torch", names=("embedding",))
def torch_embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """`functional.embedding` with the table first, and -1 for no padding."""
    padding = None if padding_idx < 0 else padding_idx
    return embedding(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


class OneHot(Op):
    """1 at the index along a new last axis, 0 elsewhere; int64."""

    def forward(F, x, *, classes):
        return F.astype(x[..., None] == F.arange(classes, dtype=x.dtype), F.int64)


@public("functional")
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Indices (...) as (..., num_classes) with a one at each, by default as many as needed; int64.

    Raises RuntimeError for indices out of range.
    """
    if tensor.dtype.name != "int64":
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor, but got "
            f"{tensor.dtype!r}"
        )
    if not tensor.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    else:
        if not holds(tensor >= 0):
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(tensor.max()) + 1
        elif num_classes < 1:
            raise RuntimeError("num_classes should be positive")
        elif not holds(tensor < num_classes):
            raise RuntimeError("Class values must be smaller than num_classes.")
    return apply(OneHot, tensor, classes=num_classes)
