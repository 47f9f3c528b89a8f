"""DistributedSampler: each process of a group reads its own part of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

from tensorflow_lite_clone.core.signature import whole_number
from tensorflow_lite_clone.ops.random.generators import Generator
from tensorflow_lite_clone.utils.data.sampler import Sampler, shuffled

# () -> (number of processes, own rank). The distributed room, which lies above this one, sets it
# when it starts a group.
group: Callable[[], tuple[int, int]] | None = None


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on, of an order all processes agree on.

    With `shuffle` the order is a permutation seeded by `seed + epoch`: call `set_epoch` before
    each pass. All parts are equally long: some first indices are repeated at the end, or with
    `drop_last` the last ones left out. Without `num_replicas` and `rank` the running group's are
    taken. ValueError if there is none, and for a rank outside it.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            if group is None:
                raise ValueError(
                    "Default process group has not been initialized, please make sure to call "
                    "init_process_group, or give num_replicas and rank."
                )
            size, own = group()
            num_replicas = size if num_replicas is None else num_replicas
            rank = own if rank is None else rank
        num_replicas = whole_number("num_replicas", num_replicas)
        rank = whole_number("rank", rank)
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        n = len(dataset)
        self.num_samples = n // num_replicas if drop_last else -(-n // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        n = len(self.dataset)
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = shuffled(n, generator)
        else:
            order = list(range(n))
        # Either longer than needed (drop_last), or repeated from the start.
        whole = islice(cycle(order), self.total_size)
        return islice(whole, self.rank, None, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the permutation of the next pass."""
        self.epoch = epoch
