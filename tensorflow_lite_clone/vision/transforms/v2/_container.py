"""The second version's transforms that combine others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.nn import ModuleList
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.ops.random.sampling import multinomial, randperm
from tensorflow_lite_clone.vision.transforms._draws import chance
from tensorflow_lite_clone.vision.transforms.v2._transform import Transform


class _Combined(Transform):
    """Other transforms, which take all inputs."""

    def __init__(self, transforms: Sequence[Callable]) -> None:
        super().__init__()
        if not isinstance(transforms, Sequence | ModuleList):
            raise TypeError("Argument transforms should be a sequence of callables")
        self.transforms = transforms

    def through(self, steps: Sequence[Callable], inputs: tuple) -> Any:
        """The inputs after the steps."""
        for step in steps:
            outputs = step(*inputs)
            inputs = outputs if len(inputs) > 1 else (outputs,)
        return inputs if len(inputs) > 1 else inputs[0]


class Compose(_Combined):
    """Applies transforms one after the other."""

    def __init__(self, transforms: Sequence[Callable]) -> None:
        super().__init__(transforms)
        if not transforms:
            raise ValueError("Pass at least one transform")

    def forward(self, *inputs: Any) -> Any:
        """The inputs after all transforms."""
        return self.through(self.transforms, inputs)

    def extra_repr(self) -> str:
        """A line for each transform."""
        return "\n".join(f"    {transform}" for transform in self.transforms)


class RandomApply(_Combined):
    """Applies all transforms with probability `p`, or none."""

    def __init__(self, transforms: Sequence[Callable] | ModuleList, p: float = 0.5) -> None:
        super().__init__(transforms)  # type: ignore[arg-type]
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        self.p = p

    def forward(self, *inputs: Any) -> Any:
        """The inputs after all transforms, or after none."""
        return self.through(self.transforms if chance(self.p) else (), inputs)

    def extra_repr(self) -> str:
        """A line for each transform."""
        return "\n".join(f"    {transform}" for transform in self.transforms)


class RandomChoice(_Combined):
    """Applies one of the transforms, each with the weight in `p`, or all alike."""

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        weights = [1] * len(transforms) if p is None else p
        if len(weights) != len(transforms):
            raise ValueError(
                "Length of p doesn't match the number of transforms: "
                f"{len(weights)} != {len(transforms)}"
            )
        self.p = [weight / sum(weights) for weight in weights]

    def forward(self, *inputs: Any) -> Any:
        """The inputs after one transform."""
        index = int(multinomial(tensor(self.p), 1))
        return self.transforms[index](*inputs)


class RandomOrder(_Combined):
    """Applies transforms in random order."""

    def forward(self, *inputs: Any) -> Any:
        """The inputs after all transforms."""
        order = randperm(len(self.transforms)).tolist()
        return self.through([self.transforms[index] for index in order], inputs)
