"""The modules: each file's `__all__` says which are public."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorflow_lite_clone.nn.modules.activation import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.adaptive import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.batchnorm import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.channelshuffle import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.container import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.conv import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.distance import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.dropout import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.flatten import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.fold import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.instancenorm import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.linear import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.linear_cross_entropy_options import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.loss import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.module import Module as Module
from tensorflow_lite_clone.nn.modules.normalization import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.padding import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.pixelshuffle import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.pooling import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.rnn import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.sparse import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.transformer import *  # noqa: F403
from tensorflow_lite_clone.nn.modules.upsampling import *  # noqa: F403

if not TYPE_CHECKING:  # which would see the names that are written here alone
    __all__ = [name for name, value in list(globals().items()) if isinstance(value, type)]
