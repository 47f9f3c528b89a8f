"""Channels dealt out anew."""

from __future__ import annotations

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Stateless):
    """Takes the channels in turn from each of `groups` groups; see `functional.channel_shuffle`."""

    repr_fields = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)
