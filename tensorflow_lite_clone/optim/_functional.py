"""Single steps as functions of lists of tensors, as ``torch.optim._functional``."""

from __future__ import annotations

from tensorflow_lite_clone.optim.adadelta import adadelta
from tensorflow_lite_clone.optim.adagrad import adagrad
from tensorflow_lite_clone.optim.adam import adam
from tensorflow_lite_clone.optim.adamax import adamax
from tensorflow_lite_clone.optim.adamw import adamw
from tensorflow_lite_clone.optim.asgd import asgd
from tensorflow_lite_clone.optim.nadam import nadam
from tensorflow_lite_clone.optim.radam import radam
from tensorflow_lite_clone.optim.rmsprop import rmsprop
from tensorflow_lite_clone.optim.rprop import rprop
from tensorflow_lite_clone.optim.sgd import sgd
from tensorflow_lite_clone.optim.sparse_adam import sparse_adam

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "adamw",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
    "sparse_adam",
]
