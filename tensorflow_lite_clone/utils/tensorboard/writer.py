"""`SummaryWriter` into files of TensorBoard's."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from tensorflow_lite_clone.utils.runs.face import Face
from tensorflow_lite_clone.utils.tensorboard import _embedding, summary

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events and summaries into one file of the folder `log_dir`."""

    def __init__(
        self,
        log_dir: str | os.PathLike,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self.event_writer = EventFileWriter(
            os.fspath(log_dir), max_queue, flush_secs, filename_suffix
        )

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Add an event, with the present time if none is given."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add an event that holds a summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what is queued."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what is queued, and close the file."""
        self.event_writer.close()


class SummaryWriter(Face):
    """Writes what TensorBoard shows into files of the folder `log_dir`.

    By default that is ``runs/DATE_TIME_HOST`` with `comment` after it. `purge_step` hides what an
    earlier run that broke off has written from this step on. Up to `max_queue` things wait to be
    written, `flush_secs` seconds at most. Values are tensors, arrays or numbers; every method
    takes the step, and a time other than the present one. As a context manager it closes itself.
    """

    _make = summary
    _projector: ProjectorConfig | None = None

    def _open_file(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _purge(self, writer: FileWriter, step: int) -> None:
        writer.add_event(Event(step=step, file_version="brain.Event:2"))
        writer.add_event(Event(step=step, session_log=SessionLog(status=SessionLog.START)))

    def _embed(
        self, mat: Any, metadata: Any, label_img: Any, global_step: Any, tag: str, header: Any
    ) -> None:
        step = str(0 if global_step is None else global_step).zfill(5)
        folder = f"{step}/{_embedding.folder_name(tag)}"
        root = Path(self._get_file_writer().get_logdir())
        info = _embedding.write_embedding(
            root, folder, f"{tag}:{step}", mat, metadata, label_img, header
        )
        if self._projector is None:
            self._projector = ProjectorConfig()
        self._projector.embeddings.append(info)
        _embedding.write_config(root, self._projector)

    def _add_graph(self, model: Any, inputs: Any, verbose: bool) -> None:
        from tensorflow_lite_clone.utils.tensorboard import _graph  # and the exporter: 0.6 s

        graph, events = _graph.graph_events(model, inputs)
        if verbose:
            print(graph)
        for event in events:
            self._get_file_writer().add_event(event)
