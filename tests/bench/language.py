"""Language models in PyTorch's words: words (N, T) -> scores (N * T, vocabulary)."""

from __future__ import annotations

from typing import Any, NamedTuple

WORDS = 2000
LSTM_WIDTH, LSTM_LAYERS = 128, 2


class Decoder(NamedTuple):
    """The sizes of a decoder; `tied` where scores are products with the embedding's rows."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    length: int
    tied: bool


DECODERS = {
    "gpt": Decoder(WORDS, 128, 4, 4, 64, False),
    "gpt2": Decoder(50304, 768, 12, 12, 1024, True),  # 124 million; 50257 words, padded
}


def vocabulary(name: str) -> int:
    """How many words a model knows."""
    return DECODERS[name].vocabulary if name in DECODERS else WORDS


def model(torch: Any, name: str) -> Any:
    """``"lstm"``, ``"gpt"`` or ``"gpt2"`` over a library."""
    return gpt(torch, DECODERS[name]) if name in DECODERS else lstm(torch)


def lstm(torch: Any) -> Any:
    """Embedding, two layers of LSTM and scores."""
    nn = torch.nn

    class LanguageModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(WORDS, LSTM_WIDTH)
            self.lstm = nn.LSTM(LSTM_WIDTH, LSTM_WIDTH, LSTM_LAYERS, batch_first=True)
            self.head = nn.Linear(LSTM_WIDTH, WORDS)

        def forward(self, words: Any) -> Any:
            hidden, _ = self.lstm(self.embedding(words))
            return self.head(hidden).flatten(0, 1)

    return LanguageModel()


def gpt(torch: Any, sizes: Decoder) -> Any:
    """A decoder as GPT-2's (Radford et al. 2019), without dropout."""
    nn = torch.nn
    F = nn.functional
    width = sizes.width

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.wide = nn.Linear(width, 4 * width)
            self.narrow = nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            n, t, _ = x.shape
            heads = self.qkv(self.norm1(x)).view(n, t, 3, sizes.heads, width // sizes.heads)
            q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(n, t, width))
            return x + self.narrow(F.gelu(self.wide(self.norm2(x))))

    class LanguageModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(sizes.vocabulary, width)
            self.places = nn.Embedding(sizes.length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(sizes.layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, sizes.vocabulary, bias=False)
            if sizes.tied:
                self.head.weight = self.words.weight

        def forward(self, words: Any) -> Any:
            places = torch.arange(words.shape[1], device=words.device)
            x = self.words(words) + self.places(places)
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    return LanguageModel()
