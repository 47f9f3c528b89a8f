"""Programs that both PyTorch and this package export: functions of the library that they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Program(NamedTuple):
    """A module, its arguments, and which of their dimensions are dynamic."""

    module: Any
    args: tuple
    kwargs: dict[str, Any] = {}  # noqa: RUF012  never written
    dynamic: Any = None
    others: tuple[tuple, ...] = ()  # further arguments, of other sizes


PROGRAMS: dict[str, Callable[[Any], Program]] = {}


def program(make: Callable[[Any], Program]) -> Callable[[Any], Program]:
    """Enter a function that makes a program."""
    PROGRAMS[make.__name__] = make
    return make


def of(torch: Any, function: Callable[..., Any]) -> Any:
    """A function of one or two arguments, ``x`` and ``y``, as a module."""

    class One(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    class Two(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return function(x, y)

    return One() if function.__code__.co_argcount == 1 else Two()


@program
def mlp(torch: Any) -> Program:
    nn = torch.nn
    layers = [nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2), nn.LogSoftmax(-1)]
    return Program(nn.Sequential(*layers).eval(), (torch.ones(5, 3),))


@program
def dynamic_batch(torch: Any) -> Program:
    batch = torch.export.Dim("batch", min=2, max=64)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU()).eval()
    others = ((torch.ones(7, 3),), (torch.ones(64, 3),))
    return Program(module, (torch.ones(4, 3),), {}, ({0: batch},), others)


class _Blocks:
    """The classes of a residual network, for one library."""

    def __init__(self, torch: Any) -> None:
        nn = torch.nn

        class Block(nn.Module):
            def __init__(self, before: int, after: int, stride: int) -> None:
                super().__init__()
                self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
                self.bn1 = nn.BatchNorm2d(after)
                self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
                self.bn2 = nn.BatchNorm2d(after)
                self.relu = nn.ReLU(inplace=True)
                self.down = None
                if stride != 1 or before != after:
                    conv = nn.Conv2d(before, after, 1, stride, bias=False)
                    self.down = nn.Sequential(conv, nn.BatchNorm2d(after))

            def forward(self, x: Any) -> Any:
                out = self.relu(self.bn1(self.conv1(x)))
                out = self.bn2(self.conv2(out))
                out += x if self.down is None else self.down(x)
                return self.relu(out)

        class Net(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
                self.bn1 = nn.BatchNorm2d(8)
                self.relu = nn.ReLU(inplace=True)
                self.maxpool = nn.MaxPool2d(3, 2, 1)
                self.layers = nn.ModuleList(
                    [
                        nn.Sequential(Block(a, b, s), Block(b, b, 1))
                        for a, b, s in ((8, 8, 1), (8, 12, 2), (12, 16, 2), (16, 24, 2))
                    ]
                )
                self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
                self.fc = nn.Linear(24, 5)

            def forward(self, x: Any) -> Any:
                x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
                for layer in self.layers:
                    x = layer(x)
                return self.fc(torch.flatten(self.avgpool(x), 1))

        self.Net = Net


@program
def resnet18(torch: Any) -> Program:
    batch = torch.export.Dim("batch")
    image = torch.linspace(-1, 1, 2 * 3 * 32 * 32).view(2, 3, 32, 32)
    return Program(
        _Blocks(torch).Net().eval(),
        (image,),
        {},
        {"x": {0: batch}},
        ((image[:1].repeat(5, 1, 1, 1),),),
    )


@program
def resnet18_in_training(torch: Any) -> Program:
    return Program(_Blocks(torch).Net(), (torch.linspace(-1, 1, 24576).view(2, 3, 64, 64),))


@program
def vision_transformer(torch: Any) -> Program:
    nn = torch.nn

    class Vit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch = nn.Conv2d(3, 16, 4, 4)
            self.cls = nn.Parameter(torch.zeros(1, 1, 16))
            self.pos = nn.Parameter(torch.zeros(1, 17, 16))
            self.layer = nn.TransformerEncoderLayer(
                16, 2, 32, activation="gelu", batch_first=True, norm_first=True
            )
            self.head = nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], dim=1) + self.pos
            return self.head(self.layer(x)[:, 0])

    image = torch.linspace(-1, 1, 2 * 3 * 16 * 16).view(2, 3, 16, 16)
    return Program(Vit().eval(), (image,))


@program
def lstm(torch: Any) -> Program:
    return Program(torch.nn.LSTM(3, 4, 2, batch_first=True), (torch.ones(2, 5, 3),))


@program
def gru_and_cell(torch: Any) -> Program:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.cell = nn.GRU(3, 4, bidirectional=True), nn.LSTMCell(8, 4)

        def forward(self, x: Any) -> Any:
            y, h = self.gru(x)
            return self.cell(y[-1])[0], h

    return Program(Net(), (torch.ones(5, 2, 3),))


@program
def encoder_layer(torch: Any) -> Program:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    return Program(layer, (torch.ones(2, 5, 8),))


@program
def encoder_layer_with_masks(torch: Any) -> Program:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    padding = torch.tensor([[False] * 5, [False] * 4 + [True]])
    return Program(layer, (torch.ones(2, 5, 8),), {"src_key_padding_mask": padding})


@program
def attention_weights(torch: Any) -> Program:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attn = nn.MultiheadAttention(8, 2)

        def forward(self, q: Any, k: Any) -> Any:
            return self.attn(q, k, k)

    return Program(Net().eval(), (torch.ones(3, 2, 8), torch.ones(4, 2, 8)))


@program
def bert_block(torch: Any) -> Program:
    nn, F = torch.nn, torch.nn.functional

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.word, self.position = nn.Embedding(20, 8, padding_idx=0), nn.Embedding(16, 8)
            self.norm = nn.LayerNorm(8)
            self.q, self.k, self.v, self.o = [nn.Linear(8, 8) for _ in range(4)]
            self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
            self.register_buffer("ids", torch.arange(16).unsqueeze(0), persistent=False)

        def heads(self, x: Any) -> Any:
            return x.view(x.size(0), x.size(1), 2, 4).transpose(1, 2)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            length = input_ids.size(1)
            x = self.word(input_ids) + self.position(self.ids[:, :length])
            x = F.dropout(self.norm(x), 0.1, self.training)
            mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
            q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
            scores = q @ k.transpose(-1, -2) / 2.0 + mask
            y = (F.softmax(scores, dim=-1) @ v).permute(0, 2, 1, 3).contiguous()
            x = self.norm(x + self.o(y.view(x.size(0), length, 8)))
            return {"hidden": x + self.down(F.gelu(self.up(x))), "pooled": torch.tanh(x[:, 0])}

    batch, length = torch.export.dims("batch", "length", min=2, max=16)
    ids = torch.tensor([[3, 4, 5, 6, 0], [7, 8, 9, 0, 0]])
    dims = {0: batch, 1: length}
    other = torch.tensor([[1, 2, 3]] * 4)
    return Program(Bert().eval(), (ids, (ids > 0).long()), {}, (dims, dims), ((other, other),))


@program
def gpt_block(torch: Any) -> Program:
    nn, F = torch.nn, torch.nn.functional

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wte, self.wpe = nn.Embedding(20, 8), nn.Embedding(16, 8)
            self.ln, self.attn, self.proj = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
            self.head = nn.Linear(8, 20, bias=False)
            self.head.weight = self.wte.weight
            mask = torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16)
            self.register_buffer("mask", mask)

        def forward(self, idx: Any) -> Any:
            b, t = idx.size()
            x = self.wte(idx) + self.wpe(torch.arange(t, device=idx.device))
            q, k, v = self.attn(self.ln(x)).split(8, dim=2)
            q, k, v = [y.view(b, t, 2, 4).transpose(1, 2) for y in (q, k, v)]
            att = (q @ k.transpose(-2, -1)) * 0.5
            att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
            y = (F.softmax(att, -1) @ v).transpose(1, 2).contiguous().view(b, t, 8)
            y = y + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(
                b, t, 8
            )
            return self.head(x + self.proj(y))

    length = torch.export.Dim("length", min=2, max=15)
    return Program(
        Gpt().eval(), (torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]),), {}, {"idx": {1: length}},
        ((torch.tensor([[1, 2, 3], [5, 6, 7]]),),),
    )  # fmt: skip


@program
def buffers_and_constants(torch: Any) -> Program:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 2)
            self.register_buffer("scale", torch.ones(2))
            self.register_buffer("shift", torch.ones(2), persistent=False)
            self.table = torch.tensor([1.0, 2.0])

        def forward(self, x: Any) -> Any:
            return self.fc(x) * self.scale + self.shift + self.table + torch.tensor([1.0, 2.0])

    return Program(Net(), (torch.ones(4, 3),))


@program
def modules_of_several_names(torch: Any) -> Program:
    nn = torch.nn
    linear, norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
    return Program(nn.Sequential(linear, norm, linear, norm), (torch.ones(4, 3),))


@program
def tied_parameters(torch: Any) -> Program:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.emb, self.out = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
            self.out.weight = self.emb.weight

        def forward(self, x: Any) -> Any:
            return self.out(self.emb(x))

    return Program(Net(), (torch.tensor([1, 2]),))


@program
def keywords_and_trees(torch: Any) -> Program:
    class Net(torch.nn.Module):
        def forward(self, x: Any, *rest: Any, scale: Any = None, options: Any) -> Any:
            y = x * options["a"][0] + rest[0]
            return {"y": y * scale, "parts": (rest[1], options["n"]), "none": None}

    args = (torch.ones(2), torch.ones(2), torch.ones(3))
    kwargs = {"options": {"a": [torch.ones(2)], "n": 3}, "scale": torch.ones(2)}
    return Program(Net(), args, kwargs)


@program
def without_gradients(torch: Any) -> Program:
    def run(x: Any) -> Any:
        with torch.no_grad():
            y = x * 2
            z = y + 1
        return y + z + x

    return Program(of(torch, run), (torch.ones(4, 2),))


@program
def dropout_in_training(torch: Any) -> Program:
    layers = [torch.nn.Dropout(0.0), torch.nn.Linear(2, 2)]
    return Program(torch.nn.Sequential(*layers), (torch.ones(4, 2),))


@program
def indexing(torch: Any) -> Program:
    def run(x: Any, y: Any) -> Any:
        x = x.clone()
        x[0] = 1.0
        x[:, 1] += 2
        picked = x[torch.tensor([0, 1])]
        views = x[..., None, ::2], x[-1], x[None], x[1:, 1], x[0, 1]
        return x[y], x[1:, y], picked, *views, x.T, x[:, [0, 1]]

    return Program(of(torch, run), (torch.ones(4, 3), torch.tensor([0, 1])))


@program
def einsum_and_where(torch: Any) -> Program:
    def run(x: Any, y: Any) -> Any:
        z = torch.einsum("bij,bkj->bik", x, y)
        z = torch.where(z > 0, z, 0.0).clamp(min=0.1).std(-1)
        return torch.stack([z, z * 2, 1 / z, 2 - z, z**2]).mean(0), x.softmax(-1).max(1)

    return Program(of(torch, run), (torch.ones(2, 3, 4), torch.ones(2, 5, 4)))


@program
def sizes(torch: Any) -> Program:
    def run(x: Any, y: Any) -> Any:
        rows = x.shape[0]
        z = x.reshape(rows, -1) + torch.zeros(rows, 1)
        z = torch.cat([z, z[:, :1]], 1)
        return {"z": z.reshape(rows * 7, -1) * x.size(0), "n": [rows, z.shape[0] // 2, y]}

    rows = torch.export.Dim("rows", min=2, max=64)
    other = (torch.ones(3, 2, 3), torch.ones(2))
    return Program(
        of(torch, run), (torch.ones(4, 2, 3), torch.ones(2)), {}, {"x": {0: rows}, "y": None},
        (other,),
    )  # fmt: skip


@program
def equal_sizes_by_themselves(torch: Any) -> Program:
    auto = torch.export.Dim.AUTO
    other = (torch.ones(6, 2), torch.ones(6, 2))
    return Program(
        of(torch, lambda x, y: x + y), (torch.ones(4, 2), torch.ones(4, 2)), {},
        ({0: auto}, {0: auto, 1: auto}), (other,),
    )  # fmt: skip


@program
def derived_sizes(torch: Any) -> Program:
    half = torch.export.Dim("half")
    return Program(
        of(torch, lambda x, y: x[::2] + y), (torch.ones(8, 2), torch.ones(4, 2)), {},
        ({0: 2 * half}, {0: half}), ((torch.ones(6, 2), torch.ones(3, 2)),),
    )  # fmt: skip


@program
def losses(torch: Any) -> Program:
    F = torch.nn.functional

    def run(x: Any, y: Any) -> Any:
        return (
            F.cross_entropy(x, y), F.cross_entropy(x, y, reduction="sum", label_smoothing=0.1),
            F.nll_loss(F.log_softmax(x, 1), y), F.kl_div(x, x.exp(), reduction="batchmean"),
            F.binary_cross_entropy_with_logits(x, x.sigmoid()), F.cosine_similarity(x, x * 2),
        )  # fmt: skip

    return Program(
        of(torch, run), (torch.linspace(-1, 1, 12).view(4, 3), torch.tensor([0, 1, 2, 1]))
    )


@program
def images(torch: Any) -> Program:
    F = torch.nn.functional

    def run(x: Any) -> Any:
        return (
            F.interpolate(x, scale_factor=2), F.interpolate(x, size=(6, 6), mode="bilinear"),
            F.interpolate(x, size=(6, 6), mode="bicubic", align_corners=True),
            F.pad(x, (1, 1, 0, 1)), F.pad(x, (1, 1, 1, 1), mode="reflect"), F.avg_pool2d(x, 2),
            F.max_pool2d(x, 2, return_indices=True)[0], F.adaptive_avg_pool2d(x, (None, 2)),
            F.pixel_shuffle(x, 2), F.unfold(x, 2), F.instance_norm(x), F.group_norm(x, 2),
            F.normalize(x), F.conv_transpose2d(x, torch.ones(4, 2, 3, 3), stride=2),
        )  # fmt: skip

    return Program(of(torch, run), (torch.linspace(-1, 1, 64).view(1, 4, 4, 4),))


@program
def casts_and_creation(torch: Any) -> Program:
    def run(x: Any) -> Any:
        return (
            x.to(torch.float64), x.long(), x.to("cpu"), x.to(dtype=torch.int32), x.type_as(x),
            torch.zeros(2), torch.full((2,), 1.0), torch.arange(1, 3), torch.ones_like(x),
            x.new_zeros(2), torch.eye(3), torch.linspace(0, 1, 3),
        )  # fmt: skip

    return Program(of(torch, run), (torch.ones(4, 6),))
