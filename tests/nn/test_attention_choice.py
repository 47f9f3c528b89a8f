"""Which form of attention may be used: `nn.attention`, and the switches of `backends.cuda`."""

from __future__ import annotations

import warnings

import pytest

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)
from tests.nn.against_torch import raises, same


def switches(lib):
    """What is allowed."""
    cuda = lib.backends.cuda
    return [
        cuda.flash_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.cudnn_sdp_enabled(),
    ]


def test_sdpa_kernel():
    def script(lib):
        forms, kernel = lib.nn.attention.SDPBackend, lib.nn.attention.sdpa_kernel
        seen = [switches(lib)]
        with kernel(forms.MATH):
            seen.append(switches(lib))
            with kernel([forms.FLASH_ATTENTION, forms.CUDNN_ATTENTION]):
                seen.append(switches(lib))
            seen.append(switches(lib))
        decorated = kernel(forms.EFFICIENT_ATTENTION)(switches)
        return [*seen, decorated(lib), switches(lib)]

    same(script)


def test_sdpa_kernel_refuses_other_values():
    for wrong in (3, None):

        def script(lib, wrong=wrong):
            with lib.nn.attention.sdpa_kernel(wrong):
                pass

        raises(script)


def test_sdp_backend_values():
    def script(lib):
        forms = lib.nn.attention.SDPBackend
        names = ["ERROR", "MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"]
        return [(int(getattr(forms, name)), repr(getattr(forms, name))) for name in names]

    same(script)
    assert tlc.backends.cuda.SDPBackend is tlc.nn.attention.SDPBackend


@pytest.mark.parametrize("name", ["flash", "mem_efficient", "math", "cudnn"])
def test_switches(name):
    def script(lib):
        enable = getattr(lib.backends.cuda, f"enable_{name}_sdp")
        enable(False)
        off = switches(lib)
        enable(True)
        return off, switches(lib)

    same(script)


def test_sdp_kernel():
    def script(lib):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            with lib.backends.cuda.sdp_kernel(enable_flash=False, enable_cudnn=False):
                inside = switches(lib)
        return inside, switches(lib)

    same(script)
    with pytest.warns(FutureWarning, match="sdpa_kernel"), tlc.backends.cuda.sdp_kernel():
        pass
