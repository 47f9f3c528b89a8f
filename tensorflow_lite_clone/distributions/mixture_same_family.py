"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.categorical import Categorical
from tensorflow_lite_clone.distributions.constraints import MixtureSameFamilyConstraint
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import broadcastable
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A component of `component_distribution`'s last batch dimension, chosen by a `Categorical`.

    ValueError if the batch shapes do not go together.
    """

    arg_constraints: dict[str, Any] = {}
    has_rsample = False
    _batched = ("_mixture_distribution", "_component_distribution")
    _unbatched = ("_event_ndims",)

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if not broadcastable(mixed, batch):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                f"`component_distribution.batch_shape`({batch})"
            )
        count = mixture_distribution.logits.shape[-1]
        components = component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(batch, event, validate_args=validate_args)

    @constraints.dependent_property
    def support(self):
        """What all components' supports allow."""
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the component's index."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _weighted(self, values: Tensor) -> Tensor:
        """The mean over the components of `values` of each."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the components' variances and the variance of their means."""
        means = self.component_distribution.mean
        within = self._weighted(self.component_distribution.variance)
        return within + self._weighted((means - self._pad(self.mean)).pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        values = self.component_distribution.cdf(self._pad(x))
        return (values * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_value(x)
        values = self.component_distribution.log_prob(self._pad(x))
        weights = self.mixture_distribution.logits.log_softmax(-1)
        return (values + weights).logsumexp(dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Samples of the mixture, then of all components, of which one is kept."""
        with no_grad():
            dim = len(Size(sample_shape)) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            repeats = (1,) * len(chosen.shape) + (1,) + self.event_shape
            return samples.gather(dim, index.repeat(repeats)).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        """`x` with a dimension of one for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """`x` of the mixture with dimensions of one for the event."""
        return x.reshape(x.shape + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
