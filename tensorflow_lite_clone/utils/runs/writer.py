"""`SummaryWriter` into files of JSON lines, which the command ``watch`` shows."""

from __future__ import annotations

import math
import os
from typing import Any

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.utils.runs import records
from tensorflow_lite_clone.utils.runs.face import Face
from tensorflow_lite_clone.utils.runs.log import FileWriter

__all__ = ["SummaryWriter"]


class SummaryWriter(Face):
    """Writes what programs log into a file of JSON lines in the folder `log_dir`.

    By default that is ``runs/DATE_TIME_HOST`` with `comment` after it. `purge_step` hides what an
    earlier run that broke off has written from this step on. Up to `max_queue` records wait to be
    written, `flush_secs` seconds at most. Values are tensors, arrays or numbers; every method
    takes the step, and a time other than the present one. As a context manager it closes itself.

    A file that cannot be written costs a warning, never the program. Meshes, embeddings, tensors
    and layouts of charts are written, but ``watch`` does not draw them.
    """

    _make = records

    def _open_file(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _purge(self, writer: FileWriter, step: int) -> None:
        writer.add_event({"kind": "purge", "tag": "purge", "value": None}, step)

    def _embed(
        self, mat: Any, metadata: Any, label_img: Any, global_step: Any, tag: str, header: Any
    ) -> None:
        self._add(records.embedding(tag, mat, metadata, label_img, header), global_step, None)

    def add_gradients(
        self,
        model: Any,
        global_step: Any = None,
        histograms: bool = False,
        walltime: float | None = None,
    ) -> None:
        """Add the norm of each parameter's gradient and of all together, with `histograms` the
        gradients' histograms too. Parameters without a gradient are left out."""
        gradients = {
            name: p.grad.coalesce().values() if p.grad.is_sparse else p.grad.detach()
            for name, p in model.named_parameters()
            if p.grad is not None
        }
        norms = {name: gradient.norm() for name, gradient in gradients.items()}
        numbers = {name: norm.item() for name, norm in norms.items()}
        if numbers:
            whole = math.sqrt(sum(number * number for number in numbers.values()))
            self.add_scalar("gradient norm/all", whole, global_step, walltime)
        for name, number in numbers.items():
            self.add_scalar(f"gradient norm/{name}", number, global_step, walltime)
        if histograms:
            for name, gradient in gradients.items():
                self.add_histogram(f"gradients/{name}", gradient, global_step, walltime=walltime)

    def add_memory(self, global_step: Any = None, walltime: float | None = None) -> None:
        """Add the megabytes that the process holds now (on Linux) and that tensors hold on the
        GPU, where one is in use."""
        try:
            with open("/proc/self/statm") as file:
                pages = int(file.read().split()[1])
        except OSError:
            pass
        else:
            megabytes = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
            self.add_scalar("memory/process (MB)", megabytes, global_step, walltime)
        if cuda.is_available() and cuda.is_initialized():
            megabytes = cuda.memory_allocated() / 1e6
            self.add_scalar("memory/GPU (MB)", megabytes, global_step, walltime)
