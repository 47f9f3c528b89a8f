"""Tests that mean nothing on a CUDA device, or beside another PyTorch; each with its reason.

PyTorch of the version in pyproject.toml is the oracle. GPU tests may have to run beside the one
that a machine has: those of `PINNED_TORCH` are then skipped. They have the marker `pinned_torch`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import re

from tests.tools.markdown import ROOT

PINNED = re.search(r"torch==([\d.]+)", (ROOT / "pyproject.toml").read_text())[1]  # type: ignore[index]
PINNED_TORCH = {
    r"tests/nn/test_layers\.py.*(Norm|Transformer)": "2.11 prints norms without `bias=`",
    r"test_modules\.py.*-nn\..*(Norm|Transformer)": "2.11 prints norms without `bias=`",
    r"tests/ops/test_grad\.py.*aminmax": "2.11 has no gradient of aminmax",
    r"tests/autograd/test_views\.py.*test_refused": "2.11 names nodes otherwise in the message",
    r"tests/autograd/test_modes\.py.*test_on_generators": "2.11 warns of throw()'s signature",
    r"an_input_returned_unchanged_refuses": "2.11 names nodes otherwise in the message",
    r"test_state_hooks_may_not_return": "2.11's message lacks spaces",
    r"(test_unused|test_refused_gradients_of_grad|nothing_required)": "2.11 words it otherwise",
    r"test_functions_of_a_dtype_\d+_u?int": "2.11 dies of arange(0, 3, 0.5) in integers",
    r"tests/backends/test_random_parity\.py": "2.11 draws two-byte numbers otherwise",
    r"test_saved_output_of_an_in_place_function": "2.11 names nodes otherwise in the message",
    r"tests/nn/test_init\.py.*trunc_normal_range": "2.11 words it otherwise",
    r"tests/nn/test_batch_norm\.py": "2.11 counts writes and checks statistics otherwise",
    r"second_order_through_writes|keywords_and_defaults": "2.11 words it otherwise",
    r"tests/ops/test_layout\.py.*aminmax": "2.11 has no gradient of aminmax",
    r"test_checkpoint\.py::test_warnings": "2.11 words the advice otherwise",
    r"linear_cross_entropy|tests/func/test_rearrange": "2.11 does not have it",
    r"test_autograd_vectorized\.py.*unused": "2.11 words it otherwise",
    r"test_errors\.py.*test__embedding_bag$": "2.11 dies of it",
    r"tests/house/test_names\.py": "the page is about the names of the pinned one",
    r"tests/func/test_vmap\.py.*(_if|_nonzero)": "2.11 words the advice otherwise",
    r"tests/func/test_vmap\.py.*index_shared": "2.11 fails at it",
    r"tests/distributions/test_distribution\.py.*components": "2.11's message is another",
    r"test_testing\.py::test_make_tensor.*bfloat16": "2.11 draws two-byte numbers otherwise",
    r"test_typed_storage\.py.*const_data_ptr": "2.11 does not have it",
    r"test_(every_module|internals)\.py.*(Norm|Transformer|LinearCross)": "2.11 has no `bias=`",
    r"tests/nn/test_places\.py": "2.11 words, draws or prints otherwise",
    r"tests/nn/test_lazy\.py.*(network|normalisation)": "2.11 prints norms without `bias=`",
    r"tests/optim/test_swa_utils\.py.*(averages|refused)": "2.11 prints norms without `bias=`",
    r"tests/nn/test_flex_attention\.py.*test_masks_0[67]": "2.11 keeps other blocks",
    r"test_python_dtypes\.py.*nansum": "2.11 refuses integers",
    r"tests/serialization/test_modules\.py.*Adafactor": "2.11 saves it without `capturable`",
    r"tests/utils/test_tools\.py.*(selective|detached)": "2.11 words it otherwise",
    r"tests/utils/test_tensorboard\.py.*half": "the tensorboard beside it warns of NumPy 2.5",
    r"test_one_process\.py.*all_to_all\]": "2.11's gloo does not have it",
    r"test_one_process\.py.*normalisation": "2.11 prints norms without `bias=`",
    r"tests/distributed/test_failures\.py.*test_wrong_calls": "2.11 takes some, and waits for ever",
    r"test_scripts\.py.*(dcgan|vit|transfer|pixelcnn)": "2.11 prints norms, and draws, otherwise",
    r"test_small_names\.py.*absent_libraries": "opt_einsum may be installed beside it",
    r"test_flop_counter\.py.*(einsum_bilinear|shared_heads)": "2.11 counts otherwise",
    r"tests/amp/test_lists\.py.*(cuda|header)": "2.11 lowers other functions",
    r"tests/optim/test_interface\.py.*come_later": "2.11's Adagrad dies of it",
    r"tests/sparse/.*(test_an_expression|two_passes|two passes|itself|retain_grad|uses)": "2.11 "
    "merges what is added",
    r"tests/ops/test_out\.py.*segments": "2.11 does not have linear_cross_entropy",
    r"tests/onnx/test_ops\.py.*matmul": "the onnxruntime beside it refuses batches of nothing",
    r"vision/test_(v2|models)\.py|test_ops\.py.*(test_layers|pyramids)": "an older torchvision",
    r"vision/test_datasets\.py.*archives": "torchvision unpacks with a warning of Python 3.12",
}

_NOT_READ = "the fault is in values, which a CUDA device does not read back to see it"
_ASYNC = "the fault is in values, which a CUDA device reports later: cuda/test_device_asserts.py"
_PIVOTS = "cuBLAS compares complex numbers by another size: other pivots, as good"
_STREAM = "PyTorch's random numbers are matched on the CPU alone"
_ORDER = "resampled pictures and the places of maxima are row-major there: docs/differences.md"
ON_CUDA = {
    r"tests/ops/test_memory_order\.py.*results__F_(upsample|interpolate)": _ORDER,
    r"tests/ops/test_memory_order\.py.*results__F_(adaptive_)?max_pool2d_indices": _ORDER,
    r"tests/tensor/test_random_functions\.py::test_(samples|generators_of_functions)": _STREAM,
    r"tests/tensor/test_random_functions\.py::test_(fork_rng|random_module|negative)": _STREAM,
    r"tests/autograd/test_checkpoint\.py::test_dropout_is": _STREAM,
    r"tests/autograd/test_checkpoint\.py::test_(sequences|modules_with_buffers)": _STREAM,
    r"tests/distributions/test_families\.py::test_(samples|expand|gradients_of_samples)": _STREAM,
    r"distributions/test_distribution\.py.*(temperatures|transposed|no batch|sample_n)": _STREAM,
    r"tests/examples/test_parity\.py": _STREAM,
    r"tests/nn/test_init\.py.*(low_precision|test_values)": _STREAM,
    r"tests/nn/test_layers\.py.*training.*(Dropout|RReLU)": _STREAM,
    r"test_every_module\.py.*test_call.*(ropout|RReLU|Lazy)": _STREAM,
    r"test_one_process\.py.*test_wrappers.*-?DataParallel\]": "PyTorch's is on the GPU then",
    r"tests/nn/test_layers\.py::AttentionTest.*(dropout|no_weights)": _STREAM,
    r"tests/func/test_vmap\.py.*(draws|test_call_44_different)": _STREAM,
    r"test_rows_ways\.py.*test_each_tensor__searchsorted": "rows that are not sorted, searched",
    r"test_forward\.py.*lu_factor_ex__complex": _PIVOTS,
    r"tests/ops/test_linalg_solve\.py::TestLarge::test_03_lu": _PIVOTS,
    r"tests/func/test_vmap\.py.*print": "PyTorch's tensors are on the CPU, and print no device",
    r"tests/distributions/test_families\.py.*cdf-float32-Gumbel": "the message has a denormal",
    r"tests/tensor/test_convert\.py::test_questions_05": "the answers are about the CPU",
    r"tests/tensor/test_typed_storage\.py.*is_cuda": "the answer is about the CPU",
    r"tests/tensor/test_typed_storage\.py.*map2_": "for CPU tensors alone",
    r"tests/tensor/test_settings\.py::test_version": "PyTorch may be built for CUDA",
    r"test_random_functions\.py::test_refused.*(poisson|bernoulli|multinomial)": _ASYNC,
    r"test_promotion\.py::test_results_of_numbers": _NOT_READ,
    r"tests/ops/test_sizes\.py::test_views_beyond": "such a view is fine there, as for PyTorch",
    r"test_create\.py::test_tensor_of_a_dtype_01": "-2.0 as uint8 is undefined in C: it becomes 0",
}


@functools.cache
def torch_is_pinned() -> bool:
    """Whether the PyTorch beside us is the one whose behaviour is followed."""
    return importlib.metadata.version("torch").split("+")[0] == PINNED


def differs_by_version(name: str) -> str | None:
    """What another version of PyTorch does otherwise in the test `name`, or None."""
    return next((what for pattern, what in PINNED_TORCH.items() if re.search(pattern, name)), None)


def skip_reason(name: str, device: str) -> str | None:
    """Why the test `name` is skipped on a device, or None."""
    if device != "cuda":
        return None
    return next((what for pattern, what in ON_CUDA.items() if re.search(pattern, name)), None)
