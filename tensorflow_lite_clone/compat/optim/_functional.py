"""Single steps as functions of lists of tensors, as ``torch.optim._functional``."""

from __future__ import annotations

from tensorflow_lite_clone.optim.adadelta import adadelta as adadelta
from tensorflow_lite_clone.optim.adagrad import adagrad as adagrad
from tensorflow_lite_clone.optim.adam import adam as adam
from tensorflow_lite_clone.optim.adamax import adamax as adamax
from tensorflow_lite_clone.optim.adamw import adamw as adamw
from tensorflow_lite_clone.optim.asgd import asgd as asgd
from tensorflow_lite_clone.optim.nadam import nadam as nadam
from tensorflow_lite_clone.optim.radam import radam as radam
from tensorflow_lite_clone.optim.rmsprop import rmsprop as rmsprop
from tensorflow_lite_clone.optim.rprop import rprop as rprop
from tensorflow_lite_clone.optim.sgd import sgd as sgd
from tensorflow_lite_clone.optim.sparse_adam import sparse_adam as sparse_adam
