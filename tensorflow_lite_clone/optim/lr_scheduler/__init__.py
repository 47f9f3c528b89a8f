"""Learning-rate schedules, as ``torch.optim.lr_scheduler``."""

from __future__ import annotations

from tensorflow_lite_clone.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING, LRScheduler
from tensorflow_lite_clone.optim.lr_scheduler.combined import ChainedScheduler, SequentialLR
from tensorflow_lite_clone.optim.lr_scheduler.cyclic import (
    CosineAnnealingWarmRestarts,
    CyclicLR,
    OneCycleLR,
)
from tensorflow_lite_clone.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tensorflow_lite_clone.optim.lr_scheduler.stepwise import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

_LRScheduler = LRScheduler  # its name before PyTorch 2

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
