"""Run a job in the current folder, by PyTorch or by this package: ``python run.py JOB``."""

from __future__ import annotations

import os
import runpy
import sys


def prepare() -> None:
    """Let nothing ask the network, or be drawn over what is printed, and torchvision be found."""
    os.environ.update(HF_HUB_OFFLINE="1", WANDB_MODE="offline", TQDM_DISABLE="1")
    import torch

    if "+tlc" not in torch.__version__:
        from tests.vision.declared import imported

        imported()
    torch.set_num_threads(1)


if __name__ == "__main__":
    prepare()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
