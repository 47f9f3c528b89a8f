"""Names that code in the wild imports from PyTorch's own files, and what they do."""

from __future__ import annotations

import importlib
import inspect
import io
import math
import pkgutil
import typing
from collections import OrderedDict

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.nn.against_torch import LIBRARIES, raises, same

NAMES = """
nn.modules.utils: _single _pair _triple _quadruple _ntuple _reverse_repeat_tuple _list_with_default consume_prefix_in_state_dict_if_present
nn.modules.conv: _ConvNd _ConvTransposeNd _LazyConvXdMixin
nn.modules.batchnorm: _BatchNorm _NormBase _LazyNormBase
nn.modules.instancenorm: _InstanceNorm
nn.modules.loss: _Loss _WeightedLoss
nn.modules.dropout: _DropoutNd
nn.modules.padding: _ConstantPadNd _ReflectionPadNd _ReplicationPadNd _CircularPadNd
nn.modules.pooling: _MaxPoolNd _AvgPoolNd _LPPoolNd _AdaptiveAvgPoolNd _AdaptiveMaxPoolNd _MaxUnpoolNd
nn.modules.lazy: LazyModuleMixin
nn.modules.linear: NonDynamicallyQuantizableLinear
nn.modules.module: Module _IncompatibleKeys _addindent _global_forward_hooks _global_forward_pre_hooks _global_backward_hooks _has_any_global_hook
nn.modules.container: Container _addindent
nn.modules.transformer: _get_activation_fn _get_clones _generate_square_subsequent_mask _get_seq_len _detect_is_causal_mask
nn.modules._functions: CrossMapLRN2d
nn.parameter: Parameter Buffer UninitializedParameter UninitializedBuffer UninitializedTensorMixin is_lazy
nn.functional: _Reduction _canonical_mask _in_projection _in_projection_packed _none_or_dtype GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES
nn._reduction: get_enum legacy_get_string legacy_get_enum
nn.init: _no_grad_uniform_ _no_grad_normal_ _no_grad_trunc_normal_ _no_grad_fill_ _no_grad_zero_ _calculate_correct_fan _calculate_fan_in_and_fan_out
nn.common_types: _size_1_t _size_2_t _size_3_t _size_any_t _size_2_opt_t _ratio_2_t _maybe_indices_t _scalar_or_tuple_2_t
nn.grad: conv1d_input conv1d_weight conv2d_input conv2d_weight conv3d_input conv3d_weight
utils.hooks: RemovableHandle unserializable_hook warn_if_has_hooks
"""  # noqa: E501  (a table)
PLACES = [line.split(": ") for line in NAMES.strip().split("\n")]


@pytest.mark.parametrize(("place", "names"), PLACES, ids=[place for place, _ in PLACES])
def test_names(place, names):
    ours, theirs = (importlib.import_module(f"{lib.__name__}.{place}") for lib in LIBRARIES)
    for name in names.split():
        kinds = [kind.__name__ for kind in type(getattr(ours, name)).__mro__]
        assert kinds[0] == "type" or type(getattr(theirs, name)).__name__ in kinds


#: Files of ``torch.nn.modules`` that hold nothing but PyTorch's own machinery.
MACHINERY = {"linear_cross_entropy"}


def test_every_file_of_modules_is_here():
    files = {file.name for file in pkgutil.iter_modules(torch.nn.modules.__path__)} - MACHINERY
    for file in files:
        theirs = importlib.import_module(f"torch.nn.modules.{file}")
        ours = importlib.import_module(f"tensorflow_lite_clone.nn.modules.{file}")
        for name in getattr(theirs, "__all__", ()):
            if name != "SyncBatchNorm":
                assert hasattr(ours, name), f"{file}.{name}"
    assert len(files) > 20


def constructor(kind):
    return [(p.name, p.default) for p in inspect.signature(kind).parameters.values()]


@pytest.mark.parametrize(
    "name",
    (
        "conv._ConvNd conv._ConvTransposeNd batchnorm._BatchNorm batchnorm._NormBase "
        "instancenorm._InstanceNorm loss._Loss loss._WeightedLoss dropout._DropoutNd "
        "pooling._MaxPoolNd pooling._LPPoolNd pooling._AdaptiveAvgPoolNd"
    ).split(),
)
def test_bases(name):
    """Layers in the wild derive from these, and call their constructors."""
    file, kind = name.split(".")
    ours, theirs = (getattr(getattr(lib.nn.modules, file), kind) for lib in LIBRARIES)
    assert constructor(ours) == constructor(theirs)


def derived(lib):
    """A convolution, a normalisation and a loss as third parties write them."""
    nn = lib.nn
    _pair = nn.modules.utils._pair

    class Conv(nn.modules.conv._ConvNd):
        def __init__(self, in_channels, out_channels, kernel_size, padding=0):
            super().__init__(
                in_channels, out_channels, _pair(kernel_size), _pair(1), _pair(padding), _pair(1),
                False, _pair(0), 1, True, "zeros",
            )  # fmt: skip

        def forward(self, x):
            weight = self.weight - self.weight.mean(dim=(1, 2, 3), keepdim=True)
            return nn.functional.conv2d(x, weight, self.bias, self.stride, self.padding)

    class Standardized(nn.Conv2d):
        def forward(self, x):
            return self._conv_forward(x, self.weight * 2, self.bias)

    class Norm(nn.modules.batchnorm._BatchNorm):
        def _check_input_dim(self, x):
            if x.dim() < 2:
                raise ValueError("too few")

    class Focal(nn.modules.loss._WeightedLoss):
        def __init__(self, weight=None, gamma=2.0, reduction="mean"):
            super().__init__(weight, reduction=reduction)
            self.gamma = gamma

        def forward(self, logits, target):
            loss = nn.functional.cross_entropy(logits, target, self.weight, reduction="none")
            return ((1 - (-loss).exp()) ** self.gamma * loss).mean()

    lib.manual_seed(0)
    parts = [Conv(2, 3, 3, 1), Standardized(2, 3, 3, padding=1, padding_mode="reflect"), Norm(3)]
    x = lib.arange(32.0).reshape(1, 2, 4, 4) / 32
    y = parts[2](parts[0](x) + parts[1](x))
    loss = Focal(lib.ones(3))(y, lib.zeros(1, 4, 4, dtype=lib.int64))
    shown = [repr(part) for part in (*parts, Focal())]
    return shown, [round(value, 4) for value in y.flatten()[:6].tolist()], round(loss.item(), 4)


SAME = {
    "derived": derived,
    "tuples": lambda lib: [
        getattr(lib.nn.modules.utils, name)(value)
        for name in ("_single", "_pair", "_triple", "_quadruple")
        for value in (3, [1, 2], (4,), "ab", None)
    ],
    "ntuple": lambda lib: (
        lib.nn.modules.utils._ntuple(5)(2),
        lib.nn.modules.utils._ntuple(2, "x").__name__,
        lib.nn.modules.utils._reverse_repeat_tuple((1, 2), 2),
        lib.nn.modules.utils._list_with_default([1, None], [3, 4, 5]),
        lib.nn.modules.utils._list_with_default(3, [5]),
    ),
    "prefixes": lambda lib: prefixes(lib),
    "reductions": lambda lib: [
        lib.nn._reduction.get_enum("elementwise_mean"),
        lib.nn._reduction.get_enum("none"),
        lib.nn.functional._Reduction.legacy_get_string(False, True),
        lib.nn.functional._Reduction.legacy_get_string(None, False, emit_warning=False),
        lib.nn.functional._Reduction.legacy_get_enum(True, None),
    ],
    "projections": lambda lib: projections(lib),
    "canonical masks": lambda lib: [
        lib.nn.functional._canonical_mask(mask, "this", other, "that", lib.float32)
        for mask in (None, lib.tensor([True, False]), lib.ones(2))
        for other in (None, lib.bool, lib.float32)
    ],
    "grids": lambda lib: (
        lib.nn.functional.GRID_SAMPLE_INTERPOLATION_MODES,
        lib.nn.functional.GRID_SAMPLE_PADDING_MODES,
    ),
    "fans": lambda lib: [
        lib.nn.init._calculate_correct_fan(lib.ones(2, 3, 4), mode)
        for mode in ("fan_in", "fan_out", "FAN_IN")
    ],
    "draws": lambda lib: draws(lib),
    "indent": lambda lib: lib.nn.modules.module._addindent("a\nb\n c", 4),
    "masks": lambda lib: (
        lib.nn.modules.transformer._generate_square_subsequent_mask(3).exp(),
        lib.nn.modules.transformer._detect_is_causal_mask(
            lib.nn.Transformer.generate_square_subsequent_mask(3), size=3
        ),
        lib.nn.modules.transformer._detect_is_causal_mask(lib.zeros(3, 3)),
        lib.nn.modules.transformer._get_seq_len(lib.ones(3, 2, 4), True),
        repr(lib.nn.modules.transformer._get_clones(lib.nn.ReLU(), 2)),
    ),
    "factory kwargs": lambda lib: [
        lib.nn.factory_kwargs(None),
        lib.nn.factory_kwargs({"device": 1, "dtype": 2}),
        lib.nn.factory_kwargs({"device": 1, "factory_kwargs": {"dtype": 3, "other": 5}}),
    ],
    "padding row": lambda lib: padding_row(lib),
    "options": lambda lib: [
        repr(lib.nn.LinearCrossEntropyOptions(**options))
        for options in (
            {},
            {"batch_chunk_size": 3, "acc_policy": "accurate"},
            {"chunking_method": "aspect_ratio:3", "acc_dtype": lib.float32},
        )
    ],
}


def prefixes(lib):
    state = OrderedDict([("module.a", 1), ("b", 2), ("module.c.d", 3)])
    state._metadata = OrderedDict([("", 1), ("module", 2), ("module.c", 3), ("x", 4)])
    lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state.items()), list(state._metadata.items())


def projections(lib):
    q, k, w = lib.ones(3, 1, 2), lib.ones(2, 1, 2), lib.arange(12.0).reshape(6, 2)
    functions = lib.nn.functional
    return [
        [part.contiguous() for part in parts]
        for parts in (
            functions._in_projection_packed(q, q, q, w),
            functions._in_projection_packed(q, k, k, w, lib.ones(6)),
            functions._in_projection(q, k, k, w[:2], w[2:4], w[4:], b_k=lib.ones(2)),
        )
    ] + [functions._none_or_dtype(None), functions._none_or_dtype(q)]


def draws(lib):
    lib.manual_seed(0)
    init, x = lib.nn.init, lib.empty(3, 2)
    values = [
        init._no_grad_uniform_(x.clone(), -1, 1),
        init._no_grad_trunc_normal_(x.clone(), 0.0, 1.0, -2.0, 2.0, generator=None),
        init._no_grad_fill_(x.clone(), 3.0),
        init._no_grad_zero_(x.clone()),
    ]
    return [[round(v, 4) for v in value.flatten().tolist()] for value in values]


def padding_row(lib):
    table = lib.nn.Embedding(3, 2, padding_idx=1)
    lib.nn.init.ones_(table.weight)
    table._fill_padding_idx_with_zero()
    return table.weight


@pytest.mark.parametrize("name", SAME)
def test_nn_internals_match_pytorch(name):
    same(SAME[name])


WRONG = {
    "list with default": lambda lib: lib.nn.modules.utils._list_with_default([1, None], [5, 6]),
    "reduction": lambda lib: lib.nn._reduction.get_enum("x"),
    "integer mask": lambda lib: lib.nn.functional._canonical_mask(
        lib.tensor([1, 0]), "this", None, "that", lib.float32
    ),
    "no tensor": lambda lib: lib.nn.functional._none_or_dtype(3),
    "fan": lambda lib: lib.nn.init._calculate_correct_fan(lib.ones(2, 3), "x"),
    "activation": lambda lib: lib.nn.modules.transformer._get_activation_fn("x"),
    "factory twice": lambda lib: lib.nn.factory_kwargs(
        {"device": 1, "factory_kwargs": {"device": 2}}
    ),
    "factory unknown": lambda lib: lib.nn.factory_kwargs({"foo": 1}),
    "hardtanh": lambda lib: lib.nn.Hardtanh(1, 1),
    "hardtanh old": lambda lib: lib.nn.Hardtanh(max_value=-2),
    "dropout": lambda lib: lib.nn.Dropout2d(-1),
    "margin p": lambda lib: lib.nn.MultiMarginLoss(p=3),
    "margin weight": lambda lib: lib.nn.MultiMarginLoss(weight=lib.ones(2, 2)),
    "triplet": lambda lib: lib.nn.TripletMarginLoss(margin=-1),
    "triplet with distance": lambda lib: lib.nn.TripletMarginWithDistanceLoss(margin=0),
    "gaussian": lambda lib: lib.nn.GaussianNLLLoss(True),
    "unflatten": lambda lib: lib.nn.Unflatten(1, 2),
    "unflatten element": lambda lib: lib.nn.Unflatten(1, (2, "a")),
    "bag padding": lambda lib: lib.nn.EmbeddingBag(3, 2, padding_idx=5),
    "bag weight": lambda lib: lib.nn.EmbeddingBag(3, 2, _weight=lib.ones(2, 2)),
    "bag table": lambda lib: lib.nn.EmbeddingBag.from_pretrained(lib.ones(2)),
    "cutoffs empty": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, []),
    "cutoffs order": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [3, 2]),
    "cutoffs high": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [20]),
    "cutoffs fraction": lambda lib: lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [3.5, 4]),
    "adaptive target": lambda lib: adaptive(lib)(lib.ones(2, 8), lib.tensor([1, 20])),
    "adaptive batch": lambda lib: adaptive(lib)(lib.ones(2, 8), lib.tensor([1])),
    "adaptive single": lambda lib: adaptive(lib)(lib.ones(8), lib.tensor([1] * 8)),
    "adaptive no batch": lambda lib: adaptive(lib)(lib.ones(2, 8), lib.tensor(1)),
    "adaptive targets": lambda lib: adaptive(lib)(lib.ones(2, 8), lib.ones(2, 2).long()),
    "smoothing": lambda lib: lib.nn.LinearCrossEntropyLoss(3, 4, label_smoothing=3),
    "class weight": lambda lib: lib.nn.LinearCrossEntropyLoss(3, 4, weight=lib.ones(3)),
    "chunk size": lambda lib: lib.nn.LinearCrossEntropyOptions(batch_chunk_size=-1),
    "chunking": lambda lib: lib.nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:x"),
    "policy": lambda lib: lib.nn.LinearCrossEntropyOptions(acc_policy="foo"),
    "accumulation": lambda lib: lib.nn.LinearCrossEntropyOptions(acc_dtype=lib.int32),
    "delta": lambda lib: lib.nn.HuberLoss(delta=1 + 0j),
    "lrn": lambda lib: lib.nn.CrossMapLRN2d(3)(lib.ones(2, 3, 4)),
    "instance norm": lambda lib: lib.nn.InstanceNorm1d(3, affine=True)(lib.ones(4, 5)),
    "old statistics": lambda lib: lib.nn.InstanceNorm1d(3).load_state_dict(
        {"running_mean": lib.ones(3)}
    ),
    "shuffle": lambda lib: lib.nn.PixelShuffle(2)(lib.ones(1, 3, 2, 2)),
    "norm base": lambda lib: lib.nn.modules.batchnorm._BatchNorm(3)(lib.ones(2, 3)),
    "output size too large": lambda lib: lib.nn.ConvTranspose2d(1, 1, 3, 2)(
        lib.ones(1, 4, 4), (9, 30)
    ),
    "output size": lambda lib: lib.nn.ConvTranspose2d(1, 1, 3)(lib.ones(1, 1, 4, 4), [3]),
}


def adaptive(lib):
    return lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 9], div_value=2.0)


@pytest.mark.parametrize("name", WRONG)
def test_nn_internals_invalid_calls_raise(name):
    if name == "norm base":  # PyTorch's has no message, so `raises` would be right by accident
        for lib in LIBRARIES:
            with pytest.raises(NotImplementedError):
                WRONG[name](lib)
    else:
        raises(WRONG[name])


def test_adaptive_predictions():
    """All log probabilities, and the most probable class."""
    results = []
    for lib in LIBRARIES:
        lib.manual_seed(0)
        module = lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 9], div_value=2.0)
        x = lib.tensor(np.random.default_rng(0).standard_normal((30, 8)).astype("f4") * 9)
        results.append((module.log_prob(x).tolist(), module.predict(x).tolist()))
        assert math.isclose(module.log_prob(x[:1]).exp().sum().item(), 1, rel_tol=1e-5)
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-4, atol=1e-4)
    assert results[0][1] == results[1][1]
    assert max(results[0][1]) >= 9 > 4 > min(results[0][1])


def test_instance_norm_of_other_channels_warns():
    same(lambda lib: lib.nn.InstanceNorm1d(3)(lib.zeros(2, 4, 5)))


def test_pretrained_bags():
    for freeze in (True, False):
        script = lambda lib, freeze=freeze: (
            lib.nn.EmbeddingBag.from_pretrained(lib.ones(3, 2), freeze, mode="sum").weight
        )
        same(script)


@pytest.mark.parametrize("dimensions", (1, 2, 3))
def test_gradients_of_convolutions(dimensions):
    rng = np.random.default_rng(0)
    x, w = (
        rng.standard_normal((2, 4) + (5,) * dimensions),
        rng.standard_normal((6, 2) + (3,) * dimensions),
    )
    options = {"stride": 2, "padding": 1, "groups": 2}
    g = rng.standard_normal((2, 6) + (3,) * dimensions)
    results = []
    for lib in LIBRARIES:
        device = DEVICE if lib is tlc else "cpu"
        a, b, c = (lib.tensor(v.astype("f4"), device=device) for v in (x, w, g))
        grad = lib.nn.grad
        of_input = getattr(grad, f"conv{dimensions}d_input")(a.shape, b, c, **options)
        of_weight = getattr(grad, f"conv{dimensions}d_weight")(a, b.shape, c, **options)
        assert not of_input.requires_grad
        results.append((of_input.cpu().numpy(), of_weight.cpu().numpy()))
    for mine, other in zip(*results):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def test_types_of_sizes():
    types = tlc.nn.common_types
    assert types._size_2_t == typing.Union[int, tuple[int, int]]  # noqa: UP007
    assert types._scalar_or_tuple_2_t[str] == typing.Union[str, tuple[str, str]]  # noqa: UP007


def test_hooks_that_a_file_does_not_hold():
    def script(lib):
        hooks = lib.utils.hooks
        x = lib.ones(1, requires_grad=True)
        x.register_hook(hooks.unserializable_hook(lambda g: g))
        hooks.warn_if_has_hooks(x)

    same(script)


def test_options_cross_in_a_file():
    theirs = torch.nn.LinearCrossEntropyLoss(
        3, 4, options=torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    )
    file = io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    with pytest.warns(UserWarning, match="weights_only=False"):
        ours = tlc.load(file, weights_only=False)
    assert ours.options == tlc.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
