"""What a training takes: seconds of an epoch, memory, and how much of the time a GPU is busy."""

import statistics
import subprocess
import threading

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
    """Measures while it is entered; whoever trains appends each epoch's `seconds`.

    A thread asks the driver how busy the GPU is. On a CPU only the seconds are known.
    """

    def __init__(self, device: str) -> None:
        self.device, self.on_gpu = device, device.startswith("cuda")
        self.seconds: list[float] = []
        self.samples: list[float] = []
        self.peak_memory = 0
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

    def __str__(self) -> str:
        text = f"{statistics.median(self.seconds):.1f} s an epoch"
        if not self.on_gpu:
            return text
        share = f"{statistics.fmean(self.samples):.0f} %" if self.samples else "unknown"
        return f"{text}, peak memory {self.peak_memory / 2**20:.0f} MiB, GPU busy: {share}"
