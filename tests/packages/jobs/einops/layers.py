"""Rearranging tensors, and layers that do it in a model."""

import torch
from einops import (
    EinopsError,
    asnumpy,
    einsum,
    pack,
    parse_shape,
    rearrange,
    reduce,
    repeat,
    unpack,
)
from einops.layers.torch import EinMix, Rearrange, Reduce
from steps import step
from torch import nn

PATCHES = "b c (h p) (w q) -> b (h w) (p q c)"


@step("rearrange, and its gradient")
def _():
    x = torch.randn(4, 3, 8, 8, requires_grad=True)
    patches = rearrange(x, PATCHES, p=4, q=4)
    (patches**3).sum().backward()
    return patches, x.grad


@step("reduce by max, mean, min, prod and a function")
def _():
    x = torch.randn(2, 3, 4, 4)
    kinds = ("max", "mean", "min", "prod", lambda t, axes: t.logsumexp(axes))
    return [reduce(x, "b c (h 2) (w 2) -> b c h w", kind) for kind in kinds]


@step("reduce: the gradient of a max")
def _():
    x = torch.randn(2, 3, 4, 4, requires_grad=True)
    reduce(x, "b c (h 2) (w 2) -> b c h w", "max").square().sum().backward()
    return x.grad


@step("repeat")
def _():
    return repeat(torch.randn(2, 3), "a b -> a (b 2) c", c=2)


@step("einsum with names")
def _():
    x, y = torch.randn(2, 5, 4), torch.randn(2, 6, 4)
    return einsum(x, y, "batch i d, batch j d -> batch i j")


@step("pack and unpack")
def _():
    x, y = torch.randn(2, 3, 4, 5), torch.randn(2, 5)
    packed, shapes = pack([x, y], "b * d")
    return packed, unpack(packed, shapes, "b * d")


@step("a list of tensors is stacked; parse_shape; asnumpy")
def _():
    stacked = rearrange([torch.randn(2, 3) for _ in range(4)], "n a b -> a (n b)")
    return stacked, parse_shape(stacked, "rows columns"), asnumpy(stacked)


def model():
    return nn.Sequential(
        Rearrange(PATCHES, p=4, q=4),
        EinMix("b n i -> b n o", weight_shape="i o", bias_shape="o", i=48, o=16),
        nn.GELU(),
        Reduce("b n o -> b o", "mean"),
        nn.Linear(16, 3),
    )


@step("layers in a model: losses of ten steps, the weights after, saved and loaded")
def _():
    net, x = model(), torch.randn(4, 3, 8, 8)
    optimizer = torch.optim.AdamW(net.parameters(), 0.05)
    losses = []
    for _ in range(10):
        loss = nn.functional.cross_entropy(net(x), torch.arange(4) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.save(net.state_dict(), "net.pt")
    again = model()
    again.load_state_dict(torch.load("net.pt"))
    return losses, net[1].weight, again(x)


@step("layers in a compiled model")
def _():
    net = model()
    return torch.compile(net, backend="eager")(torch.randn(2, 3, 8, 8))


@step("a size that does not divide is refused", refused=True)
def _():
    rearrange(torch.randn(2, 3, 9, 8), PATCHES, p=4, q=4)


@step("a layer refuses another number of dimensions", refused=True)
def _():
    Rearrange(PATCHES, p=4, q=4)(torch.randn(3, 8, 8))


@step("a mean of integers is refused", refused=True)
def _():
    try:
        reduce(torch.arange(8).reshape(2, 4), "a (b 2) -> a b", "mean")
    except EinopsError as error:
        raise error from None


@step("einsum of sizes that do not agree is refused", refused=True)
def _():
    einsum(torch.ones(2, 3), torch.ones(4, 5), "a b, b c -> a c")
