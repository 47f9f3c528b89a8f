"""Two small language models in PyTorch's words: words (N, T) -> scores (N * T, `WORDS`)."""

from __future__ import annotations

from typing import Any

WORDS = 2000
LSTM_WIDTH, LSTM_LAYERS = 128, 2
GPT_WIDTH, GPT_LAYERS, GPT_HEADS, GPT_LENGTH = 128, 4, 4, 64


def model(torch: Any, name: str) -> Any:
    """``"lstm"`` or ``"gpt"`` over a library."""
    return {"lstm": lstm, "gpt": gpt}[name](torch)


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


def gpt(torch: Any) -> Any:
    """A decoder as GPT-2's (Radford et al. 2019), without dropout."""
    nn = torch.nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(GPT_WIDTH), nn.LayerNorm(GPT_WIDTH)
            self.qkv = nn.Linear(GPT_WIDTH, 3 * GPT_WIDTH)
            self.out = nn.Linear(GPT_WIDTH, GPT_WIDTH)
            self.wide = nn.Linear(GPT_WIDTH, 4 * GPT_WIDTH)
            self.narrow = nn.Linear(4 * GPT_WIDTH, GPT_WIDTH)

        def forward(self, x: Any) -> Any:
            n, t, width = x.shape
            heads = self.qkv(self.norm1(x)).view(n, t, 3, GPT_HEADS, width // GPT_HEADS)
            q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(n, t, width))
            return x + self.narrow(F.gelu(self.wide(self.norm2(x))))

    class LanguageModel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(WORDS, GPT_WIDTH)
            self.places = nn.Embedding(GPT_LENGTH, GPT_WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(GPT_LAYERS)])
            self.norm = nn.LayerNorm(GPT_WIDTH)
            self.head = nn.Linear(GPT_WIDTH, WORDS, bias=False)

        def forward(self, words: Any) -> Any:
            x = self.words(words) + self.places(torch.arange(words.shape[1]))
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    return LanguageModel()
