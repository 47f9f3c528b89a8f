"""Instance normalisation."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.batchnorm import _LazyNormBase, _NormBase
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """Normalises every channel of every sample; the samples' axis may be missing."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self) -> int:
        """The number of an input's dimensions when it is one sample."""
        if not self.expected:
            raise NotImplementedError
        return min(self.expected)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = input.ndim == self._get_no_batch_dim()
        channels = 0 if single else 1
        if input.shape[channels] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features "
                    f"({self.num_features}), but got: {input.shape[channels]}."
                )
            warnings.warn(
                f"input's size at dim={channels} does not match num_features. You can silence "
                "this warning by not passing in num_features, which is not used because "
                "affine=False",
                stacklevel=level_outside(),
            )
        if single:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        weight, bias = self._pair(self._parameters, "weight", "bias")
        mean, var = self._pair(self._buffers, "running_mean", "running_var")
        return F.instance_norm(
            input,
            mean,
            var,
            weight,
            bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        # PyTorch 0.3 always tracked: its files have statistics that nobody used.
        if local_metadata.get("version") is None and not self.track_running_stats:
            names = ("running_mean", "running_var")
            keys = [prefix + name for name in names if prefix + name in state_dict]
            if keys:
                name = type(self).__name__
                quoted = " and ".join(f'"{key}"' for key in keys)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {quoted} for {name} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, "
                    f"this may be expected because {name} does not track running stats by default "
                    "since 0.4.0. Please remove these keys from state_dict. If the running stats "
                    f"are actually needed, instead set track_running_stats=True in {name} to "
                    f"enable them. See the documentation of {name} for details."
                )
                for key in keys:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L); see `functional.instance_norm`."""

    expected = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W); see `functional.instance_norm`."""

    expected = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W)."""

    expected = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` that takes `num_features` from its first input, which has a batch."""

    cls_to_become = InstanceNorm1d
    expected = InstanceNorm1d.expected


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` that takes `num_features` from its first input, which has a batch."""

    cls_to_become = InstanceNorm2d
    expected = InstanceNorm2d.expected


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` that takes `num_features` from its first input, which has a batch."""

    cls_to_become = InstanceNorm3d
    expected = InstanceNorm3d.expected
