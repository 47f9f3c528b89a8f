"""Softmax over many classes, the rare ones in clusters.

Source: Grave et al., "Efficient softmax approximation for GPUs" (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.container import ModuleList, Sequential
from tensorflow_lite_clone.nn.modules.linear import Linear
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of classes that are sorted by frequency, the most frequent first.

    The head scores the classes below the first of `cutoffs`, and the clusters between the others;
    cluster i scores its classes by in_features / div_value^(i + 1) features. (N, in_features) and
    targets (N,), or without N -> the targets' log probabilities, and minus their mean.

    Raises ValueError for cutoffs that do not ascend within 1 .. n_classes - 1, RuntimeError for
    sizes that do not fit and for targets that are no class.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if any(int(c) != c or not 0 < c < n_classes for c in cutoffs) or any(
            a >= b for a, b in pairwise(cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(pairwise(self.cutoffs), 1):
            features = int(in_features // div_value**number)
            self.tail.append(
                Sequential(
                    Linear(in_features, features, bias=False, **where),
                    Linear(features, high - low, bias=False, **where),
                )
            )

    def reset_parameters(self) -> None:
        """Draw the head, then the clusters."""
        self.head.reset_parameters()
        for layer in (layer for cluster in self.tail for layer in cluster.children()):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        self._check_sizes(input_, target_)
        single = target_.ndim == 0
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        # In the head a class of a cluster has the cluster's place.
        places = target.clone()
        inside = input.new_zeros(target.shape)
        reached = 0
        for number, (low, high) in enumerate(pairwise(self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            reached += rows.numel()
            places[rows] = self.shortlist_size + number
            scores = F.log_softmax(self.tail[number](input.index_select(0, rows)), dim=1)
            chosen = scores.gather(1, (target.index_select(0, rows) - low).unsqueeze(1))
            inside = inside.index_copy(0, rows, chosen.squeeze(1))
        reached += int(((target >= 0) & (target < self.shortlist_size)).sum())
        if reached != target.numel():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output = inside + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    @staticmethod
    def _check_sizes(input: Tensor, target: Tensor) -> None:
        if target.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target.ndim == 1 and input.shape[0] != target.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if target.ndim == 1 and input.ndim != 2:
            raise RuntimeError(
                "1D target tensor expects 2D input tensors, but found inputs with size "
                f"{input.shape}"
            )
        if target.ndim == 0 and input.ndim != 1:
            raise RuntimeError(
                "0D target tensor expects 1D input tensors, but found inputs with size "
                f"{input.shape}"
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes: (N, in_features) -> (N, n_classes)."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for number, cluster in enumerate(self.tail, self.shortlist_size):
            scores = F.log_softmax(cluster(input), dim=1)
            parts.append(scores + head[:, number].unsqueeze(1))
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable classes: (N, in_features) -> (N,)."""
        return self.log_prob(input).argmax(dim=1)
