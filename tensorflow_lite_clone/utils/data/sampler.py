"""Samplers: in which order a dataset is read, with PyTorch's draws from the same seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from tensorflow_lite_clone.core.dtypes import float64, int64
from tensorflow_lite_clone.ops.create.constructors import as_tensor, empty
from tensorflow_lite_clone.ops.random.generators import Generator
from tensorflow_lite_clone.ops.random.sampling import multinomial, randint, randperm
from tensorflow_lite_clone.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)

# How many indices RandomSampler(replacement=True) draws at once, as PyTorch does.
DRAWS = 32


def home(generator: Generator | None) -> Any:
    """Where to draw: the generator's device, whatever the default device is. TypeError for what
    is no generator."""
    if generator is None:
        return "cpu"
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator or None, got {generator!r}")
    return generator.device


def draw_seed(generator: Generator | None = None) -> int:
    """One draw of a non-negative 63-bit seed, from the global stream if no generator is given."""
    place = empty((), dtype=int64, device=home(generator))
    return int(place.random_(generator=generator).item())


def shuffled(n: int, generator: Generator | None) -> list[int]:
    """A permutation of 0 to n - 1."""
    return randperm(n, generator=generator, device=home(generator)).tolist()


def positive(name: str, value: Any) -> int:
    """Returns `value` if it is an int above zero, else raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")
    return value


class Sampler(Generic[T_co]):
    """An iterable over indices, or over lists of indices; usually it also has a length."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, ..., len(data_source) - 1."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Shuffled indices of `data_source`, or independent draws with `replacement`.

    Without `generator` every pass takes one draw of the global stream to seed a generator of its
    own. `num_samples` (default: the length) may exceed the length: then the permutations of
    several passes follow each other. Raises TypeError, ValueError for arguments out of range.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self.generator = generator
        self._num_samples = num_samples
        if self.num_samples is not True:  # which PyTorch takes for 1, here alone
            positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices a pass yields."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed())
        device = home(generator)
        n = len(self.data_source)
        if self.replacement:
            for start in range(0, self.num_samples, DRAWS):
                size = (min(DRAWS, self.num_samples - start),)
                samples = randint(0, n, size, generator=generator, device=device)
                yield from samples.tolist()
            return
        passes, rest = divmod(self.num_samples, n)
        for _ in range(passes):
            yield from shuffled(n, generator)
        if rest or self.generator is not None:
            # Drawn even when nothing is left over: the given generator's state is PyTorch's.
            yield from shuffled(n, generator)[:rest]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in shuffled(len(self.indices), self.generator):
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices i, drawn with probabilities proportional to `weights[i]`.

    `weights` is a 1-d sequence or tensor, kept as float64. Raises ValueError otherwise.
    """

    weights: Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        self.num_samples = positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        samples = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from samples.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of `sampler`; the last may be shorter, or is dropped."""

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        self.batch_size = positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
