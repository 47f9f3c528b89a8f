"""The lists of autocast are PyTorch's, and every function on one of them casts first."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn
import tensorflow_lite_clone.utils.data  # noqa: F401  whatever exports a function is imported
from tensorflow_lite_clone.core.public import EXPORTS
from tensorflow_lite_clone.ops.decorators import autocast
from tensorflow_lite_clone.ops.decorators.autocast import _PREFIXES
from tensorflow_lite_clone.ops.decorators.autocast_lists import LISTS

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
#: Names on a list that are no function of the face, and why.
NOT_HERE = {
    "a function that is not documented; the one that calls it has a layer": """
        _addmm_activation _convolution _grid_sampler_2d_cpu_fallback _native_multi_head_attention
        _scaled_dot_product_flash_attention _thnn_fused_gru_cell _thnn_fused_lstm_cell
    """,
    "an entry point of cuDNN, which no backend uses": """
        cudnn_convolution cudnn_convolution_transpose
    """,
}
F = tlc.nn.functional


def _resized(mode: str, ndim: int, **options: Any) -> Callable[[], Any]:
    return lambda: F.interpolate(tlc.ones(1, 2, *(3,) * ndim), scale_factor=2, mode=mode, **options)


def _padded(mode: str, ndim: int) -> Callable[[], Any]:
    return lambda: F.pad(tlc.ones(1, 2, *(3,) * ndim), (1, 1) * ndim, mode=mode)


#: Those that functions of other names call, by a call that has to cast as they do.
CALLED = {
    "_lu_with_info": lambda: tlc.lu(tlc.eye(2)),
    "_cudnn_rnn": lambda: tlc.nn.LSTM(2, 2)(tlc.ones(1, 1, 2)),
    "mkldnn_rnn_layer": lambda: tlc.nn.LSTM(2, 2)(tlc.ones(1, 1, 2)),
    "cross_entropy_loss": lambda: F.cross_entropy(tlc.ones(1, 2), tlc.tensor([1])),
    "multilabel_margin_loss_forward": lambda: F.multilabel_margin_loss(
        tlc.ones(2), tlc.tensor([1, -1])
    ),
    "nll_loss2d": lambda: F.nll_loss(tlc.ones(1, 2, 1, 1), tlc.zeros(1, 1, 1, dtype=tlc.int64)),
    **{f"reflection_pad{n}d": _padded("reflect", n) for n in (1, 2)},
    **{f"replication_pad{n}d": _padded("replicate", n) for n in (1, 2, 3)},
    **{f"upsample_nearest{n}d": _resized("nearest", n) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": _resized("nearest-exact", n) for n in (1, 2, 3)},
    "upsample_linear1d": _resized("linear", 1),
    "upsample_bilinear2d": _resized("bilinear", 2),
    "upsample_bicubic2d": _resized("bicubic", 2),
    "upsample_trilinear3d": _resized("trilinear", 3),
    "_upsample_bilinear2d_aa": _resized("bilinear", 2, antialias=True),
    "_upsample_bicubic2d_aa": _resized("bicubic", 2, antialias=True),
}
#: Where exported names are those of functions.
PLACES = ("torch", "method", "functional", "linalg", "fft", "special")


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


def on_a_list(name: str) -> dict[str, str]:
    return {device: listed[name] for device, listed in LISTS.items() if name in listed}


def test_functions_on_a_list_have_a_layer() -> None:
    """All of them are here, or stand above."""
    seen = set()
    for place in PLACES:
        for name, function in EXPORTS[place].items():
            full = _PREFIXES.get(place, "") + name
            if wanted := on_a_list(full):
                assert wanted.items() <= function.autocast_policies.items(), (place, name)
                seen.add(full)
    listed = {name for names in LISTS.values() for name in names}
    absent = {name for names in NOT_HERE.values() for name in names.split()}
    assert listed == seen | CALLED.keys() | absent
    assert not seen & (CALLED.keys() | absent)


@pytest.mark.parametrize("name", CALLED)
def test_functions_of_other_names_cast_as_those_on_a_list(name, monkeypatch):
    asked = []
    concerned = autocast._concerned

    def noted(policies, values):
        asked.append(policies)
        return concerned(policies, values)

    monkeypatch.setattr(autocast, "_concerned", noted)
    with tlc.autocast("cpu"):
        CALLED[name]()
    wanted = on_a_list(name).items()
    assert any([wanted <= policies.items() for policies in asked])


def test_names_given_to_decorators_are_on_a_list() -> None:
    """A layer by a name that is on no list would be none, and nothing would say so."""
    found = set()
    for path in Path(tlc.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            if call.func.id in ("autocasts", "calls_cast_operands"):
                found |= {arg.value for arg in call.args if isinstance(arg, ast.Constant)}
    assert len(found) > 10
    assert all(map(on_a_list, found)), found
