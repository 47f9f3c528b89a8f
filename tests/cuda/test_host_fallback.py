"""What CuPy lacks is computed on the host, and said once."""

from __future__ import annotations

import warnings

import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import needs_gpu

pytestmark = needs_gpu


@pytest.mark.parametrize("function", [tlc.linalg.eigvals, tlc.linalg.ldl_factor])
def test_said_once(function, monkeypatch) -> None:
    from tensorflow_lite_clone.backends.cupy import host_fallback

    monkeypatch.setattr(host_fallback, "_warned", set())
    x = tlc.eye(3, device="cuda")
    with pytest.warns(UserWarning, match="CuPy has no .*: computed on the host"):
        function(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(x)
