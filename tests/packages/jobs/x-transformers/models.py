"""Transformers with many kinds of attention: training, generating, memory."""

import torch
from steps import step
from x_transformers import (
    AutoregressiveWrapper,
    ContinuousTransformerWrapper,
    CrossAttender,
    Decoder,
    Encoder,
    NonAutoregressiveWrapper,
    TransformerWrapper,
    ViTransformerWrapper,
    XLAutoregressiveWrapper,
    XTransformer,
)

SIZE = {"dim": 32, "depth": 2, "heads": 2, "attn_dim_head": 16}
VARIANTS = {
    "plain": {},
    "rotary": {"rotary_pos_emb": True},
    "ALiBi": {"alibi_pos_bias": True, "alibi_num_heads": 1},
    "T5's biases": {"rel_pos_bias": True},
    "dynamic positions": {"dynamic_pos_bias": True},
    "RMSNorm, GLU, Swish": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
    "one head of keys": {"attn_one_kv_head": True},
    "grouped queries, q and k normalized": {"attn_kv_heads": 1, "attn_qk_norm": True},
    "flash": {"attn_flash": True},
    "talking heads": {"attn_pre_talking_heads": True},
    "memory keys": {"attn_num_mem_kv": 3},
    "sparse top-k": {"attn_sparse_topk": 4},
    "gated values, shifted tokens": {"attn_gate_values": True, "shift_tokens": 1},
    "sandwich": {"sandwich_norm": True},
    "macaron": {"macaron": True},
    "residual gates": {"gate_residual": True},
    "residuals scaled": {"scale_residual": True},
    "squared ReLU": {"ff_relu_squared": True},
}
for name, options in VARIANTS.items():

    @step(f"a decoder, {name}: logits, loss, the gradients' size", options)
    def _(options):
        net = TransformerWrapper(
            num_tokens=40, max_seq_len=32, attn_layers=Decoder(**SIZE, **options)
        )
        x = torch.randint(40, (2, 16))
        logits = net(x)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        return (
            logits,
            loss,
            torch.stack([p.grad.norm() for p in net.parameters() if p.grad is not None]).norm(),
        )


def language():
    net = TransformerWrapper(
        num_tokens=40, max_seq_len=32, attn_layers=Decoder(**SIZE, rotary_pos_emb=True)
    )
    return AutoregressiveWrapper(net)


@step("a language model: losses of ten steps, greedy and sampled tokens, saved and loaded")
def _():
    net, x, losses = language(), torch.arange(48).reshape(3, 16) % 11, []
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(10):
        loss = net(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    greedy = net.generate(x[:, :4], 8, temperature=0.0)
    sampled = net.generate(x[:1, :4], 6, filter_logits_fn="top_p")
    torch.save(net.state_dict(), "net.pt")
    other = language()
    other.load_state_dict(torch.load("net.pt"))
    return losses, greedy, sampled, other(x)


@step("generating with a cache of keys and values gives the same tokens")
def _():
    net = language().eval()
    x = torch.randint(40, (1, 5))
    return [net.generate(x, 8, temperature=0.0, cache_kv=cached) for cached in (True, False)]


@step("an encoder with a mask, its embeddings and intermediates")
def _():
    net = TransformerWrapper(num_tokens=40, max_seq_len=32, attn_layers=Encoder(**SIZE)).eval()
    x, mask = torch.randint(40, (2, 12)), torch.arange(12) < torch.tensor([[12], [7]])
    out, hidden = net(x, mask=mask, return_embeddings=True, return_intermediates=True)
    return out, hidden.hiddens[-1]


@step("encoder and decoder: loss, generated tokens")
def _():
    net = XTransformer(
        dim=32,
        enc_num_tokens=40,
        enc_depth=1,
        enc_heads=2,
        enc_max_seq_len=16,
        dec_num_tokens=40,
        dec_depth=1,
        dec_heads=2,
        dec_max_seq_len=16,
        tie_token_emb=True,
    )
    source, target = torch.randint(40, (2, 10)), torch.randint(40, (2, 8))
    loss = net(source, target, mask=torch.ones_like(source).bool())
    loss.backward()
    return loss, net.generate(source, torch.ones(2, 1).long(), 6, temperature=0.0)


@step("pictures: ViT; a continuous transformer; cross attention")
def _():
    vit = ViTransformerWrapper(
        image_size=32, patch_size=8, num_classes=4, attn_layers=Encoder(**SIZE)
    )
    series = ContinuousTransformerWrapper(
        dim_in=5, dim_out=3, max_seq_len=16, attn_layers=Encoder(**SIZE)
    )
    cross = CrossAttender(dim=32, depth=1, heads=2)
    return (
        vit(torch.rand(2, 3, 32, 32)),
        series(torch.randn(2, 10, 5)),
        cross(torch.randn(1, 4, 32), context=torch.randn(1, 6, 32)),
    )


@step("Transformer-XL: memories from segment to segment")
def _():
    net = XLAutoregressiveWrapper(
        TransformerWrapper(
            num_tokens=40,
            max_seq_len=8,
            max_mem_len=8,
            attn_layers=Decoder(**SIZE, rel_pos_bias=True),
        )
    )
    x = torch.randint(40, (1, 24))
    loss = net(x)
    return loss, net.generate(x[:, :9], 6, temperature=0.0)


@step("masked tokens: a model that is not autoregressive")
def _():
    net = NonAutoregressiveWrapper(
        TransformerWrapper(num_tokens=41, max_seq_len=16, attn_layers=Encoder(**SIZE)),
        mask_id=40,
        steps=3,
    )
    loss = net(torch.randint(40, (2, 16))).loss
    loss.backward()
    return loss


@step("a sequence that is too long is refused", refused=True)
def _():
    TransformerWrapper(num_tokens=40, max_seq_len=8, attn_layers=Decoder(**SIZE))(
        torch.zeros(1, 9).long()
    )


@step("a token beyond the vocabulary is refused", refused=True)
def _():
    TransformerWrapper(num_tokens=40, max_seq_len=8, attn_layers=Decoder(**SIZE))(
        torch.full((1, 4), 40)
    )


@step("two kinds of positions are refused", refused=True)
def _():
    Decoder(**SIZE, alibi_pos_bias=True, rel_pos_bias=True)
