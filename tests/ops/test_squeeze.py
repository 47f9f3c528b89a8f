"""`squeeze` with several dims, as arguments of their own."""

from __future__ import annotations

import torch

import tensorflow_lite_clone as tlc


def test_dims_as_arguments() -> None:
    for module in (torch, tlc):
        x = module.ones(1, 2, 1, 3)
        assert x.squeeze(0, 2).shape == x.squeeze((0, 2)).shape == (2, 3)
        assert x.squeeze(1, -2).shape == (1, 2, 3)
        assert x.clone().squeeze_(0, 2).shape == (2, 3)
