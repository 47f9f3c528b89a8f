"""PyTorch checks the arguments of distributions in all of these tests."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def checked_arguments():
    """Importing its compiler, which its optimizers do, switches the checks off for the process."""
    torch.distributions.Distribution.set_default_validate_args(True)
