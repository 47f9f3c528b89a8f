"""What says how a model is cut over processes; as ``torch.distributed.fsdp.api``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.nn.modules.batchnorm import _BatchNorm
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class ShardingStrategy(Enum):
    """What is cut, and how long whole parameters are kept."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When in backward the next module's parameters are gathered: before or after the present
    one's gradients are reduced."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """What a state dictionary holds."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


class OptimStateKeyType(Enum):
    """What the keys of an optimizer's states are."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes to calculate, to add up gradients, and to give outputs in.

    None: as they are; gradients are added up in the dtype to calculate in.
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass
class MixedPrecision:
    """The dtypes to calculate, to add up gradients, and to keep buffers in."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    buffer_dtype: DType | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Module]] = (_BatchNorm,)


@dataclass
class OffloadPolicy:
    """What lies on the CPU between its uses: nothing."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """What lies on the CPU between its uses: parameters, gradients and the optimizer's state."""

    pin_memory: bool = True


@dataclass
class CPUOffload:
    """Whether parameters and gradients lie on the CPU between their uses."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Where the tensors of a state dict lie."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """For whole tensors: `rank0_only` gives other processes an empty dict."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """For the parts as they are."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """For parts that know the whole."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Where the tensors of an optimizer's state lie."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """For whole tensors: `rank0_only` gives other processes an empty dict."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """For the parts as they are."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """For parts that know the whole."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What `state_dict_type` has set."""

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)
