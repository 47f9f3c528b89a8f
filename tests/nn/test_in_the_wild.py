"""What third-party code does with modules: derives from them, calls them, looks inside."""

from __future__ import annotations

import copy

import pytest

from tests.nn.against_torch import same


def fixed_argument(lib):
    class Relu(lib.nn.ReLU):
        def __init__(self):
            super().__init__(inplace=True)

    return Relu()(lib.ones(2) * -1), Relu()


def further_argument(lib):
    class Scaled(lib.nn.MaxPool2d):
        def __init__(self, kernel_size, scale=1):
            super().__init__(kernel_size)
            self.scale = scale

        def forward(self, x):
            return super().forward(x) * self.scale

    return Scaled(2, 3)(lib.ones(1, 1, 4, 4)), Scaled(2)


def keywords(lib):
    loss = lib.nn.CrossEntropyLoss()(input=lib.ones(2, 3), target=lib.tensor([0, 1]))
    return (
        loss,
        lib.nn.Tanh()(input=lib.zeros(2)),
        lib.nn.CosineSimilarity()(x1=lib.ones(1, 2), x2=lib.ones(1, 2)),
    )


def implicit_dimensions(lib):
    nn = lib.nn
    return (
        nn.Softmax()(lib.ones(2, 3)),
        nn.LogSoftmax()(lib.ones(2)),
        nn.Softmin()(lib.ones(1, 2, 3)),
    )


def attributes(lib):
    nn = lib.nn
    upsample, attention, rnn = (
        nn.Upsample(scale_factor=2),
        nn.MultiheadAttention(4, 2),
        nn.LSTM(2, 3),
    )
    convolution = nn.Conv2d(2, 4, 3, padding="same", dilation=2)
    return (
        (upsample.name, upsample.scale_factor, upsample.size),
        (attention.head_dim, attention._qkv_same_embed_dim, type(attention.out_proj).__name__),
        ([list(weight.shape) for weight in rnn._flat_weights], len(rnn.all_weights)),
        (convolution._reversed_padding_repeated_twice, convolution.transposed),
        nn.PairwiseDistance(3).norm,
        [
            (type(m.padding).__name__, m.padding)
            for m in (nn.ZeroPad2d(1), nn.ReflectionPad1d([1, 2]))
        ],
        (nn.ReLU6().min_val, nn.ReLU6().max_val),
    )


def weights_of_losses(lib):
    logits = lib.nn.BCEWithLogitsLoss(lib.ones(2), pos_weight=lib.ones(2))
    entropy = lib.nn.CrossEntropyLoss(weight=lib.nn.Parameter(lib.ones(3)))
    return [list(loss.state_dict()) for loss in (logits, entropy)], [
        len(list(loss.parameters())) for loss in (logits, entropy)
    ]


def distance_of_ones_own(lib):
    loss = lib.nn.TripletMarginWithDistanceLoss(
        distance_function=lambda x, y: (x - y).abs().sum(-1), margin=2.5
    )
    return loss(lib.ones(2, 3), lib.zeros(2, 3), lib.ones(2, 3) * 2), loss


def named_output(lib):
    module = lib.nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2])
    output = module(lib.ones(1, 4), lib.tensor([1]))
    return type(output).__name__, output._fields


def shallow_copies(lib):
    module = lib.nn.Linear(1, 1)
    twin = copy.copy(module)
    twin.extra = 1
    return hasattr(module, "extra"), twin.weight is module.weight


def assigned_state(lib):
    frozen, module = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)
    frozen.weight.requires_grad_(False)
    module.load_state_dict(frozen.state_dict(), assign=True)
    return module.weight.requires_grad


def blocks_of_a_transformer(lib):
    class NoAttention(lib.nn.TransformerEncoderLayer):
        def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
            return x * 0

    class NoMemory(lib.nn.TransformerDecoderLayer):
        def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
            return x * 0

        def _ff_block(self, x):
            return x

    results = []
    for kind in (NoAttention, NoMemory):
        lib.manual_seed(0)
        layer = kind(4, 2, 8, dropout=0.0, batch_first=True)
        x = lib.arange(8.0).reshape(1, 2, 4)
        y = layer(x) if kind is NoAttention else layer(x, x)
        results.append([round(value, 4) for value in y.flatten().tolist()])
    return results


SCRIPTS = [
    fixed_argument,
    further_argument,
    keywords,
    implicit_dimensions,
    attributes,
    weights_of_losses,
    distance_of_ones_own,
    named_output,
    shallow_copies,
    assigned_state,
    blocks_of_a_transformer,
]


@pytest.mark.parametrize("script", SCRIPTS, ids=[script.__name__ for script in SCRIPTS])
def test_module_idioms_match_pytorch(script):
    same(script)
