"""Optimizers and learning-rate schedules, as ``torch.optim``."""

from __future__ import annotations

from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.optim import lr_scheduler, swa_utils
from tensorflow_lite_clone.optim._adafactor import Adafactor
from tensorflow_lite_clone.optim._muon import Muon
from tensorflow_lite_clone.optim.adadelta import Adadelta
from tensorflow_lite_clone.optim.adagrad import Adagrad
from tensorflow_lite_clone.optim.adam import Adam
from tensorflow_lite_clone.optim.adamax import Adamax
from tensorflow_lite_clone.optim.adamw import AdamW
from tensorflow_lite_clone.optim.asgd import ASGD
from tensorflow_lite_clone.optim.lbfgs import LBFGS
from tensorflow_lite_clone.optim.nadam import NAdam
from tensorflow_lite_clone.optim.optimizer import Optimizer
from tensorflow_lite_clone.optim.radam import RAdam
from tensorflow_lite_clone.optim.rmsprop import RMSprop
from tensorflow_lite_clone.optim.rprop import Rprop
from tensorflow_lite_clone.optim.sgd import SGD
from tensorflow_lite_clone.optim.sparse_adam import SparseAdam

mount_compat(__path__, __name__)

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]
