"""The lists of autocast are PyTorch's, and every function on one of them casts first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import tensorflow_lite_clone.nn
import tensorflow_lite_clone.utils.data  # noqa: F401  whatever exports a function is imported
from tensorflow_lite_clone.autograd.autocast import _PREFIXES
from tensorflow_lite_clone.autograd.autocast_lists import LISTS
from tensorflow_lite_clone.core.public import EXPORTS

KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}
#: Registered by builds of PyTorch with CUDA only.
OF_CUDA_BUILDS = {"_cudnn_rnn"}
#: Macros of PyTorch's header -> the policy that their functions have.
MACROS = {
    "LOWER_PRECISION_FP": "lower_precision_fp",
    "FP32": "fp32",
    "FP32_SET_OPT_DTYPE": "fp32_set_opt_dtype",
    "PROMOTE": "promote",
}


@pytest.mark.parametrize("device", KEYS)
def test_functions_are_those_of_the_dispatcher(device):
    registered = {
        name.removeprefix("aten::").split(".")[0]
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and torch._C._dispatch_has_kernel_for_dispatch_key(name, KEYS[device])
    }
    assert set(LISTS[device]) - OF_CUDA_BUILDS == registered


def test_policies_on_cuda_are_those_of_the_header():
    header = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
    text = header.read_text().replace("\\\n", "\n")
    found = {}
    for macro, policy in MACROS.items():
        (body,) = re.findall(rf"#define AT_FORALL_{macro}\(_\)(.*?)\n\n", text, re.DOTALL)
        for name in re.findall(r"_\((\w+)", body):
            found[name] = policy
    assert len(found) > 100
    for name, policy in found.items():
        assert LISTS["cuda"][name] == policy, name
    others = {"norm", "binary_cross_entropy", "cudnn_convolution", "cudnn_convolution_transpose"}
    assert set(LISTS["cuda"]) - set(found) - OF_CUDA_BUILDS == others


def test_public_functions_on_a_list_have_a_layer():
    seen = set()
    for place in ("torch", "method", "functional", "linalg", "fft", "special"):
        for name, function in EXPORTS[place].items():
            full = _PREFIXES.get(place, "") + name
            wanted = {device for device, listed in LISTS.items() if full in listed}
            if wanted:
                assert wanted <= set(function.autocast_policies), (place, name)
                seen.add(full)
    assert len(seen) > 150
