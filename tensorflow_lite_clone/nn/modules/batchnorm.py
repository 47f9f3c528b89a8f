"""Batch normalisation with running statistics."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.late_bound import group_of_several, sync_batch_norm
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.lazy import LazyModuleMixin
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import (
    UninitializedBuffer,
    UninitializedParameter,
)
from tensorflow_lite_clone.ops.create.constructors import ones, scalar_tensor, zeros
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Weight and bias per channel, running mean and variance as buffers."""

    _version = 2
    expected: ClassVar[tuple[int, ...]] = ()  # numbers of dimensions accepted
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._register_empty("weight", num_features if affine else None, device, dtype)
        self._register_empty("bias", num_features if affine and bias else None, device, dtype)
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype))
            counter = scalar_tensor(0, dtype=int64, device=device)
            self.register_buffer("num_batches_tracked", counter)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics: mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the statistics; weight 1, bias 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if not self.expected:
            raise NotImplementedError
        if input.ndim not in self.expected:
            expected = " or ".join(f"{ndim}D" for ndim in self.expected)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version")
        key = prefix + "num_batches_tracked"
        old = version is None or version < 2  # written before batches were counted
        if old and self.track_running_stats and key not in state_dict:
            counter = self.num_batches_tracked
            known = counter is not None and counter.device.type != "meta"
            state_dict[key] = counter if known else scalar_tensor(0, dtype=int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    def _count_batch(self) -> float:
        """The share of this batch in the running statistics."""
        if self.training and self.track_running_stats:
            counter = self._member(self._buffers, "num_batches_tracked")
            if counter is not None:
                counter.add_(1)
                if self.momentum is None:  # a cumulative mean; waits for the device
                    return 1.0 / float(counter)
        return 0.0 if self.momentum is None else self.momentum

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = self._count_batch() if self.training else (self.momentum or 0.0)
        weight, bias = self._pair(self._parameters, "weight", "bias")
        mean, var = self._pair(self._buffers, "running_mean", "running_var")
        use_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return F.batch_norm(input, mean, var, weight, bias, use_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L); see `functional.batch_norm`."""

    expected = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W); see `functional.batch_norm`."""

    expected = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W); see `functional.batch_norm`."""

    expected = (5,)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation that takes `num_features` from its first input."""

    weight: Any
    bias: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        # Without parameters and statistics: the real ones follow, uninitialized.
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine = affine
        self.track_running_stats = track_running_stats
        where = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**where)
            if bias:
                self.bias = UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**where)
            self.running_var = UninitializedBuffer(**where)
            self.num_batches_tracked = scalar_tensor(0, dtype=int64, device=device)

    def reset_parameters(self) -> None:
        """Set parameters and statistics, once they have shapes."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take the shapes from the first input."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for name in ("weight", "bias", "running_mean", "running_var"):
                value: Any = getattr(self, name)
                if value is not None:
                    value.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm1d
    expected = BatchNorm1d.expected


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm2d
    expected = BatchNorm2d.expected


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm3d
    expected = BatchNorm3d.expected


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of (N, C, ...) over the batches of all processes of a group.

    Batches may be of unequal size. In evaluation, and where there is one process, it is
    `BatchNorm1d` and its kin for any number of dimensions.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return super().forward(input)
        group = group_of_several(self.process_group)
        if group is None:
            return super().forward(input)
        self._check_input_dim(input)
        factor = self._count_batch()
        tracks = self.track_running_stats
        running = (self.running_mean, self.running_var) if tracks else (None, None)
        result: Tensor = sync_batch_norm(
            input, self.weight, self.bias, *running, factor, self.eps, group
        )
        return result

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with a `SyncBatchNorm` in the place of each batch normalisation in it."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            converted.weight, converted.bias = module.weight, module.bias
            converted.running_mean, converted.running_var = module.running_mean, module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
