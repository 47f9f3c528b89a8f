"""Loading data: datasets, samplers, DataLoader, with PyTorch's names and draws."""

from __future__ import annotations

from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.utils.data._utils.fetch import _DatasetKind
from tensorflow_lite_clone.utils.data.dataloader import (
    DataLoader,
    default_collate,
    default_convert,
    get_worker_info,
)
from tensorflow_lite_clone.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tensorflow_lite_clone.utils.data.distributed import DistributedSampler
from tensorflow_lite_clone.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

mount_compat(__path__, __name__)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
