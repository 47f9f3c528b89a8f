"""Checkpoints in a folder, as ``torch.distributed.checkpoint.filesystem``; the format is PyTorch's.

``.metadata`` is a pickle of a `Metadata`, and ``__<rank>_<number>.distcp`` is one file of
``torch.save`` behind the other, one for each box of a tensor and each other value.

A checkpoint appears whole or not at all, and takes the place of an older one in the same way:

* Where the folder does not exist, all processes write to a hidden folder beside it. The
  coordinator renames that folder when all have written.
* Where it exists, files get names that are not in use. Nothing names them until the coordinator
  replaces ``.metadata``; then it removes the files of the older checkpoint.
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import shutil
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any

from tensorflow_lite_clone import serialization
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.files import whole_file
from tensorflow_lite_clone.distributed.checkpoint import _pickles
from tensorflow_lite_clone.distributed.checkpoint._shards import narrowed
from tensorflow_lite_clone.distributed.checkpoint.metadata import (
    Metadata,
    MetadataIndex,
    StorageMeta,
)
from tensorflow_lite_clone.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from tensorflow_lite_clone.distributed.checkpoint.staging import BlockingAsyncStager
from tensorflow_lite_clone.distributed.checkpoint.storage import (
    StorageReader,
    StorageWriter,
    WriteResult,
)
from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_METADATA = ".metadata"
_SUFFIX = ".distcp"


class SerializationFormat(Enum):
    """How an item lies in a file."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


@dataclasses.dataclass
class _StorageInfo:
    """Where an item lies: bytes of a file of the folder. The names are the format's."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Any = None


@dataclasses.dataclass
class _StoragePrefix:
    """Where a process writes: a folder, and how its files' names begin."""

    prefix: str
    folder: str


_pickles.allow(_StorageInfo, _StoragePrefix)


class FileSystemWriter(BlockingAsyncStager, StorageWriter):
    """Writes a checkpoint to the folder `path`, which all processes share.

    A process writes one file, or `thread_count` at once, or with `single_file_per_rank` False one
    for each item. `sync_files` waits until the files are on the disk before the checkpoint
    appears. With `overwrite` False a folder with a checkpoint is an error (RuntimeError).
    `per_thread_copy_ahead` changes nothing.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        super().__init__(cache_staged_state_dict)
        if serialization_format is not SerializationFormat.TORCH_SAVE or _extensions:
            raise NotImplementedError("checkpoints are written as torch.save does, unchanged")
        self.path = Path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.thread_count = thread_count
        self.overwrite = overwrite
        self.reset()

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return "://" not in str(checkpoint_id)

    def storage_meta(self) -> StorageMeta:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self._save_id)

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self._save_id = str(uuid.uuid4())
        self._folder: Path | None = None  # where this save writes; the coordinator knows it
        self._written: list[str] = []

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        if not self.overwrite and (self.path / _METADATA).exists():
            raise RuntimeError(
                f"Checkpoint already exists and self.overwrite={self.overwrite}: {self.path}"
            )
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        self._folder, mark = self.path, ""
        if self.path.is_dir():
            if any(self.path.glob(f"__*{_SUFFIX}")):
                mark = f"{self._save_id[:8]}_"
        else:
            self._folder = _beside(self.path)
            shutil.rmtree(self._folder, ignore_errors=True)  # of a save that was cut short
            self._folder.mkdir(parents=True)
        self._prefixes = [f"__{rank}_{mark}" for rank in range(len(plans))]
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(prefix, str(self._folder)))
            for plan, prefix in zip(plans, self._prefixes, strict=True)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        place: _StoragePrefix = plan.storage_data
        parts = (
            _balanced(plan.items, self.thread_count)
            if self.single_file_per_rank
            else [[item] for item in plan.items]
        )
        paths = [Path(place.folder) / f"{place.prefix}{n}{_SUFFIX}" for n in range(len(parts))]

        def write(path: Path, items: list[WriteItem]) -> list[WriteResult]:
            return _write_file(path, items, planner, self.sync_files)

        if self.thread_count > 1:
            with ThreadPoolExecutor(self.thread_count) as pool:
                results = list(pool.map(write, paths, parts))
        else:
            results = list(map(write, paths, parts))
        future: Future[list[WriteResult]] = Future()
        future.set_result([result for part in results for result in part])
        return future

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        folder = self._folder
        if folder is None:
            raise RuntimeError("prepare_global_plan has not been called")
        storage_data = {result.index: result.storage_data for part in results for result in part}
        _expect_visible(folder, storage_data.values())
        metadata.storage_data = storage_data
        metadata.storage_meta = self.storage_meta()
        with whole_file(folder / _METADATA, "wb") as file:
            file.write(_pickles.dumps(metadata))
            file.flush()
            if self.sync_files:
                os.fsync(file.fileno())
        if folder == self.path:
            self._folder = None  # an older checkpoint is gone, and `abandon` must leave this one
        _sync_folder(folder, self.sync_files)
        if folder == self.path:
            _remove_but(folder, {info.relative_path for info in storage_data.values()})
        else:
            folder.rename(self.path)
            _sync_folder(self.path.absolute().parent, self.sync_files)

    def abandon(self) -> None:
        if self._folder is None:
            return
        if self._folder != self.path:
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        for prefix in self._prefixes:
            for path in self.path.glob(f"{prefix}*{_SUFFIX}"):
                path.unlink(missing_ok=True)


def _remove_but(folder: Path, names: set[str]) -> None:
    """Remove the files of older checkpoints."""
    for path in folder.glob(f"__*{_SUFFIX}"):
        if path.name not in names:
            path.unlink()


def _beside(path: Path) -> Path:
    """The folder in which a checkpoint is made that is to appear at `path`."""
    path = path.absolute()
    return path.with_name(f".{path.name}.tmp")


def _balanced(items: list[WriteItem], count: int) -> list[list[WriteItem]]:
    """The items in `count` parts of about as many bytes; none that is empty."""
    parts: list[list[WriteItem]] = [[] for _ in range(max(count, 1))]
    loads = [0] * len(parts)
    for item in sorted(items, key=_nbytes, reverse=True):
        least = loads.index(min(loads))
        parts[least].append(item)
        loads[least] += _nbytes(item)
    return [part for part in parts if part]


def _nbytes(item: WriteItem) -> int:
    return item.tensor_storage_size() or 0


def _write_file(
    path: Path, items: list[WriteItem], planner: SavePlanner, sync: bool
) -> list[WriteResult]:
    results = []
    with open(path, "wb") as file:
        for item in items:
            data = planner.resolve_data(item)
            stream = _saved(data) if isinstance(data, Tensor) else data
            info = _StorageInfo(path.name, file.tell(), len(stream.getbuffer()))
            file.write(stream.getbuffer())
            results.append(WriteResult(item.index, info.length, info))
        file.flush()
        if sync:
            os.fsync(file.fileno())
    return results


def _saved(tensor: Tensor) -> io.BytesIO:
    """A file of a tensor's elements, and of no others that lie in the same memory."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.untyped_storage().nbytes() != tensor.numel() * tensor.element_size():
        tensor = tensor.clone()
    stream = io.BytesIO()
    serialization.save(tensor, stream)
    return stream


def _expect_visible(folder: Path, infos: Iterable[_StorageInfo]) -> None:
    """RuntimeError if files that processes have written are not seen here, or are cut short."""
    ends: dict[str, int] = {}
    for info in infos:
        ends[info.relative_path] = max(ends.get(info.relative_path, 0), info.offset + info.length)
    for name, end in ends.items():
        path = folder / name
        size = path.stat().st_size if path.exists() else None
        if size != end:
            raise RuntimeError(
                f"a process has written {end} bytes to {path}, and the coordinator sees "
                f"{'no such file' if size is None else size}: is the folder shared by all?"
            )


def _sync_folder(path: Path, sync: bool) -> None:
    """Wait until the names in a folder are on the disk; a system may not know how."""
    if sync and hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class FileSystemReader(StorageReader):
    """Reads a checkpoint from the folder `path`, by whatever number of processes it was written."""

    def __init__(self, path: str | os.PathLike, _extension_registry: Any = None) -> None:
        self.path = Path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return FileSystemWriter.validate_checkpoint_id(checkpoint_id)

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        self.storage_data = {}
        if checkpoint_id:
            self.path = Path(checkpoint_id)

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The contents.

        Raises FileNotFoundError where there is no checkpoint, and RuntimeError for a damaged one.
        """
        path = self.path / _METADATA
        data = path.read_bytes()
        try:
            metadata = _pickles.loads(data)
        except (pickle.UnpicklingError, EOFError) as error:
            raise RuntimeError(f"{path} is damaged, or no checkpoint: {error}") from error
        if not isinstance(metadata, Metadata) or not isinstance(metadata.storage_data, dict):
            raise RuntimeError(f"{path} is no checkpoint: it holds a {type(metadata).__name__}")
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan says; RuntimeError for files that are damaged."""
        requests: dict[str, dict[MetadataIndex, list[ReadItem]]] = {}
        for item in plan.items:
            name = self.storage_data[item.storage_index].relative_path
            requests.setdefault(name, {}).setdefault(item.storage_index, []).append(item)
        for name, indices in requests.items():
            with open(self._inside(name), "rb") as file:
                for index in sorted(indices, key=lambda index: self.storage_data[index].offset):
                    self._read(file, index, indices[index], planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _inside(self, name: str) -> Path:
        """The path of a file of the folder; a checkpoint names no others."""
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise RuntimeError(f"the checkpoint {self.path} names a file outside of it: {name}")
        return self.path / name

    def _read(
        self, file: Any, index: MetadataIndex, items: list[ReadItem], planner: LoadPlanner
    ) -> None:
        """Read one entry of a file, for all items that want some of it."""
        info = self.storage_data[index]
        if info.transform_descriptors:
            raise NotImplementedError(f"{index.fqn} is compressed: {info.transform_descriptors}")
        file.seek(info.offset)
        data = file.read(info.length)
        where = f"{index.fqn} in {file.name}"
        if len(data) != info.length:
            raise RuntimeError(f"{where} ends early: {len(data)} bytes of {info.length}")
        try:
            if items[0].type is LoadItemType.BYTE_IO:
                for item in items:
                    planner.load_bytes(item, io.BytesIO(data))
                return
            tensor = serialization.load(io.BytesIO(data), "cpu", weights_only=True)
        except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise RuntimeError(f"{where} cannot be read: {error}") from error
        for item in items:
            give(planner, item, tensor)


@no_grad()
def give(planner: LoadPlanner, item: ReadItem, tensor: Tensor) -> None:
    """Give the planner elements of a stored box."""
    part = narrowed(tensor, item.storage_offsets, item.lengths)
    target = planner.resolve_tensor(item).detach()
    if target.shape != part.shape:
        raise ValueError(f"req {item.storage_index} mismatch sizes {target.shape} vs {part.shape}")
    target.copy_(part)
    planner.commit_tensor(item, target)
