"""Checkpoints in files of safetensors: NotImplementedError."""

from __future__ import annotations

from typing import Any

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageReader:
    """What reads them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "checkpoints in files of safetensors: FileSystemWriter and FileSystemReader have "
            "PyTorch's own format"
        )


class HuggingFaceStorageWriter(HuggingFaceStorageReader):
    """What writes them."""
