"""``torch.utils.data.datapipes.iter.combinatorics``: a class for `isinstance` to say no."""

from __future__ import annotations


class ShufflerIterDataPipe:
    """Shuffles a pipeline of data, of which there are none here.

    Accelerate asks whether a dataset is one where the main process reads for all of them.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError("pipelines of data are left out; use an IterableDataset")


__all__ = ["ShufflerIterDataPipe"]
