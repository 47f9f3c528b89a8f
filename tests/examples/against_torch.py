"""The examples, over either library.

    python -m tests.examples.against_torch FOLDER

writes them to a folder with PyTorch's imports, to be run from there under PyTorch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OURS = "import tensorflow_lite_clone as torch\n"
EXCHANGED = {
    OURS: "import torch\n",
    "from tensorflow_lite_clone.utils.flop_counter": "from torch.utils.flop_counter",
    "python -m tensorflow_lite_clone.distributed.run": "python -m torch.distributed.run",
    # torchvision reads the official files alone, by their checksums
    "from tensorflow_lite_clone.vision import datasets\n": (
        "from tests.vision import oracle\n"  # makes torchvision importable
        "from torchvision import datasets\n"
        "datasets.cifar.check_integrity = lambda *file: True\n"
    ),
}
OURS_ALONE = {
    "custom_kernel": "it registers an op of its own",
    "graph.py": "PyTorch draws no graphs",
    "lion": "it registers an optimizer of its own",
    "resnet20_profile": "PyTorch has no profiler of layers",
}


def names(lib: Any, path: str) -> dict[str, Any]:
    """What an example defines whose ``torch`` is `lib`."""
    text = (ROOT / path).read_text()
    assert OURS in text, path
    namespace: dict[str, Any] = {"torch": lib, "__name__": f"{path} over {lib.__name__}"}
    exec(compile(text.replace(OURS, "\n"), path, "exec"), namespace)
    return namespace


def network(lib: Any, path: str) -> Any:
    """The class `Network` of an example whose ``torch`` is `lib`."""
    return names(lib, path)["Network"]


def copy_for_torch(folder: Path) -> None:
    """The examples in `folder`, with PyTorch's imports in place of ours, and else unchanged."""
    ignored = shutil.ignore_patterns("__pycache__", *OURS_ALONE)
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=ignored)
    for path in (folder / "examples").rglob("*.py"):
        text = path.read_text()
        for ours, theirs in EXCHANGED.items():
            text = text.replace(ours, theirs)
        assert "tensorflow_lite_clone" not in text, path
        path.write_text(text)


def start(folder: Path, module: str, *options: str) -> subprocess.CompletedProcess[str]:
    """An example run to its end from `folder`, with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def run(folder: Path, module: str, *options: str) -> str:
    """What an example prints that succeeds."""
    done = start(folder, module, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":
    copy_for_torch(Path(sys.argv[1]))
