"""Anomaly detection: the forward line of a gradient that fails or becomes NaN."""

from __future__ import annotations

import warnings

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, same


def vector(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


WORDS = ("returned nan values in its 0th output", "Anomaly Detection has been enabled")


def nan_gradient(lib):
    x = vector(lib, 0.0, 1.0)
    return x, (x.sqrt() * 0).sum()


@parameterized.expand(
    [
        ("detect", lambda lib: lib.autograd.detect_anomaly()),
        ("set", lambda lib: lib.autograd.set_detect_anomaly(True)),
        ("module", lambda lib: lib.autograd.anomaly_mode.set_detect_anomaly(True)),
    ]
)
def test_nan(name, make):
    def script(lib):
        with make(lib):
            x, y = nan_gradient(lib)
            failure = attempt(y.backward)
        x, y = nan_gradient(lib)
        y.backward()
        return failure, x.grad

    result = same(script, words=WORDS, warned=False)
    assert "Function 'SqrtBackward0' returned nan values in its 0th output." in result[0][1]


def test_the_line_is_named():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tlc.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan"):
            x = vector(tlc, 0.0)
            y = x.sqrt() * 0  # the line
            y.sum().backward()
    text = str(caught[-1].message)
    assert "Error detected in SqrtBackward0. Traceback of forward call that caused" in text
    assert "y = x.sqrt() * 0  # the line" in text
    assert "tensorflow_lite_clone/autograd" not in text.rpartition("# the line")[2]


def test_the_line_of_a_failure_is_named():
    class Failing(tlc.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("mine")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tlc.autograd.set_detect_anomaly(True), pytest.raises(ValueError, match="mine"):
            y = Failing.apply(vector(tlc))  # here
            y.sum().backward()
    text = str(caught[-1].message)
    assert "Error detected in FailingBackward" in text
    assert "# here" in text


def test_anomaly_mode_names_the_line_of_an_inplace_write():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tlc.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="inplace"):
            x = vector(tlc)
            y = x.exp()  # saved here
            y.add_(1)
            y.sum().backward()
    assert "# saved here" in str(caught[-1].message)


def test_a_forward_outside():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x, y = nan_gradient(tlc)
        with tlc.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan"):
            y.backward()
    assert "No forward pass information available" in str(caught[-1].message)


def test_the_line_that_induced_a_gradient():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tlc.autograd.set_detect_anomaly(True):
            x = vector(tlc, 0.0)
            y = (x**1.5).sum()  # first
            (g,) = tlc.autograd.grad(y, x, create_graph=True)
            with pytest.raises(RuntimeError, match="nan"):
                (g * 0).sum().backward()
    texts = [str(warning.message) for warning in caught]
    assert any("Error detected in PowBackward0" in text for text in texts), texts
    assert any("was induced by PowBackward0" in text and "# first" in text for text in texts)


def test_nan_may_be_allowed():
    def script(lib):
        with lib.autograd.set_detect_anomaly(True, check_nan=False):
            x, y = nan_gradient(lib)
            y.backward()
        return x.grad

    same(script)


def test_switching():
    def script(lib):
        anomaly = lib.autograd.anomaly_mode
        seen = [lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()]
        with anomaly.detect_anomaly():
            seen.append(lib.is_anomaly_enabled())
            with anomaly.set_detect_anomaly(False):
                seen.append(lib.is_anomaly_enabled())
            seen.append(lib.is_anomaly_enabled())
        seen.append(lib.is_anomaly_enabled())
        lib.autograd.set_detect_anomaly(True)
        seen.append(lib.is_anomaly_enabled())
        lib.autograd.set_detect_anomaly(False)
        seen.append(lib.is_anomaly_enabled())
        return seen

    same(script, words=WORDS)


def test_good_gradients_are_the_same():
    def script(lib):
        x = vector(lib)
        with lib.autograd.set_detect_anomaly(True):
            values, places = (x * x).sort()
            (g,) = lib.autograd.grad((values * values.exp()).sum(), x, create_graph=True)
            g.sum().backward()
        return g, x.grad

    same(script, warned=False)


def test_metadata():
    x = vector(tlc)
    with tlc.autograd.set_detect_anomaly(True):
        node = x.exp().grad_fn
    assert "test_anomaly.py" in "".join(node.metadata["traceback_"])
