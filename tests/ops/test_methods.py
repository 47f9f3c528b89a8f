"""One function per name in `torch`, on Tensor and in `nn.functional`; objects are PyTorch's."""

from __future__ import annotations

import unittest

import torch
from parameterized import parameterized

from tensorflow_lite_clone.core import forwarding
from tests.op_db import OPS
from tests.op_db._device import SELF_CHECK, tlc

NAMES = sorted({op.function for op in OPS if op.call is None})
IN_TORCH = {op.function for op in OPS if op.call is None and not op.name.startswith("F.")}
# The method takes sizes or dimensions one by one, or its arguments in another order.
OWN_METHOD = {"flip", "permute", "polygamma", "real", "reshape", "tile", "where"}
OWN_METHOD |= {"unbind"}  # which subclasses of Tensor tell from the function
# PyTorch's functional form is an older wrapper of the same signature (its `_stacklevel` aside).
ONE_FUNCTIONAL = {"log_softmax", "sigmoid", "softmax", "tanh"}
# PyTorch calls their first operand `self` where it is a number, outside of Tensor.
SELF_NAMED = {"bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift"}
SELF_NAMED |= {"bitwise_xor", "pow", "remainder", "xlogy"}


def original(function):
    """The function that this one is a twin of, or itself."""
    twins = forwarding.twins.items()
    return next((first for first, copies in twins if function in copies), function)


def homes(module):
    """Where the function stands: name of the place -> the place."""
    return {"torch": module, "method": module.Tensor, "functional": module.nn.functional}


@unittest.skipIf(SELF_CHECK, "PyTorch keeps an object per place")
class TestMethods(unittest.TestCase):
    @parameterized.expand(NAMES)
    def test(self, name):
        theirs = {p: getattr(home, name) for p, home in homes(torch).items() if hasattr(home, name)}
        ours = {p: getattr(home, name) for p, home in homes(tlc).items() if hasattr(home, name)}
        internal = "torch" in theirs and not theirs["torch"].__doc__ and name not in IN_TORCH
        if internal and "functional" in theirs:
            del theirs["torch"]  # an internal function of PyTorch's, not documented
        self.assertEqual(set(theirs) - set(ours), set(), "PyTorch has the name there")
        if {"torch", "method"} <= set(theirs) and name not in OWN_METHOD:
            function = original(ours["torch"])
            if name in SELF_NAMED:
                function = original(function.__wrapped__)
            self.assertIs(original(ours["method"]), function)
            self.assertIsNot(ours["method"], ours["torch"])
        if {"torch", "functional"} <= set(theirs):
            if theirs["torch"] is theirs["functional"]:
                self.assertIs(ours["functional"], ours["torch"])
            elif name in ONE_FUNCTIONAL:
                self.assertIs(original(ours["functional"]), original(ours["torch"]))
