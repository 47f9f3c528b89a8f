"""Steps beside the rest of the framework: versions, closures, hooks, refused states."""

from __future__ import annotations

import copy
import unittest

import numpy as np

import tensorflow_lite_clone as tlc


class OptimizerTest(unittest.TestCase):
    def test_version_counter_sees_the_step(self):
        w = tlc.nn.Parameter(tlc.ones(3))
        y = (w * w).sum()
        w.grad = tlc.ones(3)
        tlc.optim.SGD([w], lr=0.1).step()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.backward()

    def test_closure_and_hooks(self):
        w = tlc.nn.Parameter(tlc.ones(2))
        optimizer = tlc.optim.SGD([w], lr=0.5)
        seen = []
        optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append("pre"))
        handle = optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append("post"))

        def closure():
            optimizer.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        assert optimizer.step(closure).item() == 2.0
        np.testing.assert_array_equal(w.detach().numpy(), [0.0, 0.0])
        handle.remove()
        optimizer.step()
        assert seen == ["pre", "post", "pre"]

    def test_load_state_dict_of_other_groups(self):
        w = tlc.nn.Parameter(tlc.ones(2))
        state = copy.deepcopy(tlc.optim.SGD([w]).state_dict())
        state["param_groups"].append(state["param_groups"][0])
        optimizer = tlc.optim.SGD([w])
        with self.assertRaisesRegex(ValueError, "different number of parameter groups"):
            optimizer.load_state_dict(state)
        assert len(optimizer.param_groups) == 1
