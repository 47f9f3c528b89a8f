"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.binomial import Binomial
from tensorflow_lite_clone.distributions.categorical import OverCategories
from tensorflow_lite_clone.distributions.utils import broadcast_all
from tensorflow_lite_clone.ops.create.constructors import ones_like, tensor
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Multinomial"]


class Multinomial(OverCategories):
    """How often each category occurs in `total_count` independent draws.

    The last dimension of `probs` (or of `logits`) counts the categories. NotImplementedError if
    `total_count` is no int, ValueError unless exactly one of the others is given.

    Source: N. Johnson, S. Kotz, N. Balakrishnan, Discrete Multivariate Distributions, ch. 35.
    """

    total_count: int
    _batched = ("_categorical", "_binomial")
    _unbatched = ("total_count",)

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        """Vectors of counts that sum to at most `total_count`."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        index = draws.movedim(0, -1)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        ones = ones_like(index, dtype=counts.dtype)
        return counts.scatter_add_(-1, index, ones)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logits, value = broadcast_all(self.logits, value)
        log_choose = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        impossible = (value == 0) & (logits == -float("inf"))  # 0 * -inf is 0 here
        return log_choose + (logits.masked_fill(impossible, 0) * value).sum(-1)

    def entropy(self) -> Tensor:
        """-E[log p] with the mean of each category's log factorial, which is a binomial one."""
        log_factorial = tensor(self.total_count + 1.0, dtype=self.probs.dtype).lgamma()
        values = self._binomial.enumerate_support(expand=False)[1:]
        probabilities = self._binomial.log_prob(values).exp()
        log_factorials = (probabilities * (values + 1).lgamma()).sum((0, -1))
        return self.total_count * self._categorical.entropy() - log_factorial + log_factorials
