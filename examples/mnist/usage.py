"""What a training takes: seconds of an epoch, memory, and how much of the time a GPU is busy."""

import statistics
import subprocess
import threading
from collections.abc import Callable

import tensorflow_lite_clone as torch

INTERVAL = 0.5  # seconds between two samples; the driver's own are of 1/6 to 1 second
QUERY = ("nvidia-smi", "--query-gpu=pci.bus_id,utilization.gpu", "--format=csv,noheader,nounits")


def busy(device: str) -> float | None:
    """The percentage of the last moments in which the GPU ran a kernel; None if it is unknown."""
    try:
        lines = subprocess.run(QUERY, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    bus = torch.cuda.get_device_properties(device).pci_bus_id
    for line in lines.splitlines():
        place, percentage = line.split(",")
        if int(place.split(":")[-2], 16) == bus and percentage.strip().isdigit():
            return float(percentage)
    return None


class Usage:
    """Measures while it is entered; whoever trains appends each epoch's `seconds`, or ends it.

    A thread asks the driver how busy the GPU is, coarsely. Of steps that are `timed` it is known
    which share of an epoch the GPU was within one. On a CPU only the seconds are known.
    """

    def __init__(self, device: str) -> None:
        self.device, self.on_gpu = device, device.startswith("cuda")
        self.seconds: list[float] = []
        self.samples: list[float] = []
        self.peak_memory = 0
        self._marks: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self._within: list[float] = []  # a share for each epoch
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._ended.wait(INTERVAL):
            percentage = busy(self.device)
            if percentage is None:
                return
            self.samples.append(percentage)

    def __enter__(self) -> "Usage":
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.on_gpu:
            self._ended.set()
            self._thread.join()
            self.peak_memory = torch.cuda.max_memory_allocated(self.device)

    def timed(self, step: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """The step between two marks in what the GPU does. It should be one CUDA graph: a GPU that
        waits for the rest of a step is within it, too."""

        def marked(*batch: torch.Tensor) -> torch.Tensor:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            result = step(*batch)
            end.record()
            self._marks.append((begin, end))
            return result

        return marked if self.on_gpu else step

    def end_epoch(self, seconds: float) -> None:
        """Note what an epoch took; the GPU has done its steps."""
        self.seconds.append(seconds)
        if self._marks:
            milliseconds = sum(begin.elapsed_time(end) for begin, end in self._marks)
            self._within.append(milliseconds / 1000 / seconds)
            self._marks.clear()

    def __str__(self) -> str:
        text = f"{statistics.median(self.seconds):.2f} s an epoch"
        if not self.on_gpu:
            return text
        share = f"{statistics.fmean(self.samples):.0f} %" if self.samples else "unknown"
        text += f", peak memory {self.peak_memory / 2**20:.0f} MiB, GPU busy: {share}"
        if self._within:
            text += f", within steps: {100 * statistics.median(self._within):.0f} %"
        return text
