"""Such files in the form of safetensors: NotImplementedError; see `torch.save`."""

from __future__ import annotations

from typing import Any

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageReader:
    """What reads them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("checkpoints of several processes: there is one process here")


class HuggingFaceStorageWriter(HuggingFaceStorageReader):
    """What writes them."""
