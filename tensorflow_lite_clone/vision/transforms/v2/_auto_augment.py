"""The second version's policies of augmentation: the first one's steps, other draws."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten, tree_unflatten
from tensorflow_lite_clone.vision.transforms import autoaugment
from tensorflow_lite_clone.vision.transforms._draws import chance, integer
from tensorflow_lite_clone.vision.transforms.v2._transform import Transform
from tensorflow_lite_clone.vision.tv_tensors import BoundingBoxes, Mask, wrap


class _OfOne(Transform):
    """A policy for the one picture of the inputs; masks and boxes are refused."""

    augmented: Any  # what the first version does with one picture

    def forward(self, *inputs: Any) -> Any:
        """The inputs, the picture after the policy."""
        flat, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        if any(isinstance(leaf, Mask | BoundingBoxes) for leaf in flat):
            raise TypeError(f"Masks and boxes are not supported by {type(self).__name__}()")
        chosen = self.chosen(flat)
        if sum(chosen) != 1:
            raise TypeError(f"Expected one picture in the sample, but found {sum(chosen)}")
        index = chosen.index(True)
        picture = flat[index]
        plain = picture.as_subclass(Tensor) if isinstance(picture, Tensor) else picture
        result = self.augmented(plain)
        flat[index] = wrap(result, like=picture) if isinstance(picture, Tensor) else result
        return tree_unflatten(flat, spec)

    def negative(self) -> bool:
        """Whether a strength of either sign is negative."""
        return chance(0.5)

    def extra_repr(self) -> str:
        """The arguments that are plain values."""
        return Transform.extra_repr(self)

    __repr__ = Transform.__repr__


class AutoAugment(_OfOne, autoaugment.AutoAugment):
    """One of 25 policies found by search, of two steps each (E. D. Cubuk et al., CVPR 2019)."""

    def augmented(self, img: Any) -> Any:
        """The picture after one of the policies."""
        space = self.space(img)
        for name, p, level in self.policies[integer(0, len(self.policies))]:
            if not chance(p):
                continue
            strengths, signed = space[name]
            strength = strengths[level] if strengths and level is not None else 0.0
            img = self.stepped(img, name, -strength if signed and self.negative() else strength)
        return img


class RandAugment(_OfOne, autoaugment.RandAugment):
    """`num_ops` random steps, all of one strength (E. D. Cubuk et al., 2019)."""


class TrivialAugmentWide(_OfOne, autoaugment.TrivialAugmentWide):
    """One random step of random strength (S. G. Mueller and F. Hutter, ICCV 2021)."""


class AugMix(_OfOne, autoaugment.AugMix):
    """The picture mixed with others that went through random steps (D. Hendrycks et al., 2020)."""
