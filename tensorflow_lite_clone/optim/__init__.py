"""Optimizers and learning-rate schedules, as ``torch.optim``."""

from __future__ import annotations

from tensorflow_lite_clone.optim import lr_scheduler
from tensorflow_lite_clone.optim.adagrad import Adagrad
from tensorflow_lite_clone.optim.adam import Adam, AdamW
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.optim.rmsprop import RMSprop
from tensorflow_lite_clone.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
