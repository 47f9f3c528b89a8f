"""Einstein's notation over tensors: every operation, gradients, modules."""

import einx
import torch
from steps import step


def gradient(function, *shapes):
    given = [torch.randn(shape, requires_grad=True) for shape in shapes]
    out = function(*given)
    out.square().sum().backward()
    return out, [x.grad for x in given]


@step("id: rearranged, split, joined, repeated, with gradients")
def _():
    x = torch.arange(24.0).view(4, 6)
    return (
        gradient(lambda x: einx.id("a (b c) -> (c a) b", x, b=2), (4, 6)),
        einx.id("a b -> a b c", x, c=2),
        einx.id("a b, c b -> (a + c) b", x, x[:2]),
        einx.id("(a + c) b -> a b, c b", x, a=1),
        einx.id("a a -> a", x[:4, :4]),
    )


@step("dot: products, batches, attention's einsums")
def _():
    return (
        gradient(lambda a, b: einx.dot("a [b], [b] c -> a c", a, b), (3, 4), (4, 5)),
        gradient(
            lambda a, b: einx.dot("b q (h c), b k (h c) -> b q k h", a, b, h=2),
            (2, 3, 8),
            (2, 4, 8),
        ),
    )


for name in ("sum", "mean", "var", "std", "prod", "max", "min", "logsumexp"):

    @step(f"{name} over axes in brackets, its gradient", name)
    def _(name):
        return gradient(lambda x: getattr(einx, name)("a [b] c -> a c", x), (3, 4, 2))


@step("count_nonzero, any, all, argmax, argmin, argsort, sort, flip, roll")
def _():
    x = torch.randn(3, 4)
    return (
        einx.count_nonzero("a [b]", x > 0),
        einx.any("a [b]", x > 1),
        einx.all("[a] b", x > -1),
        einx.argmax("a [b] -> a", x),
        einx.sort("a [b]", x),
        einx.argsort("a [b]", x),
        einx.flip("a [b]", x),
        einx.roll("a [b]", x, shift=(1,)),
    )


@step("softmax and log_softmax")
def _():
    return (
        gradient(lambda x: einx.softmax("b q [k] h", x), (2, 3, 4, 2)),
        gradient(lambda x: einx.log_softmax("b [c]", x), (2, 3)),
    )


@step("elementwise operations that broadcast by names")
def _():
    x, y = torch.randn(3, 4), torch.randn(4)
    return (
        einx.add("a b, b", x, y),
        einx.multiply("a, b -> a b", x[:, 0], y),
        einx.subtract("a b, a", x, x[:, 0]),
        einx.maximum("a b, b", x, y),
        einx.where("a b, b, a", x > 0, y, x[:, 0]),
        einx.logaddexp("a b, b", x, y),
        einx.less("a b, b", x, y),
    )


@step("values by indices: get_at, set_at, add_at")
def _():
    table, index = torch.randn(6, 4), torch.tensor([1, 3, 3])
    return (
        gradient(lambda t: einx.get_at("[v] c, b -> b c", t, index), (6, 4)),
        einx.set_at("[v] c, b, b c -> [v] c", table.clone(), index[:2], torch.ones(2, 4)),
        einx.add_at("[v] c, b, b c -> [v] c", table.clone(), index, torch.ones(3, 4)),
    )


@step("a patch embedding, multi-head attention and group norm by einx")
def _():
    image = torch.randn(2, 3, 8, 8)
    patches = einx.id("b c (h p) (w q) -> b (h w) (c p q)", image, p=4, q=4)
    weight = torch.randn(48, 12, requires_grad=True)
    hidden = einx.dot("b n [d], [d] e -> b n e", patches, weight)
    scores = einx.softmax(
        "b q [k] h", einx.dot("b q (h c), b k (h c) -> b q k h", hidden, hidden, h=3)
    )
    out = einx.dot("b q k h, b k (h c) -> b q (h c)", scores, hidden)
    out.square().mean().backward()
    return out, weight.grad


@step("shapes that do not match", refused=True)
def _():
    try:
        einx.dot("a [b], [b] c -> a c", torch.ones(3, 4), torch.ones(5, 2))
    except Exception as error:
        raise RuntimeError(type(error).__name__) from error


@step("notation that does not parse", refused=True)
def _():
    einx.id("a (b -> a b", torch.ones(2, 2))
