"""What asks for values on the meta device, and what only seems to: as on PyTorch's meta device."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.ops.test_meta import first_words


def operands(m):
    """Tensors of a library on the meta device; `c...` are on the CPU."""
    made = {
        "x": m.ones(3, 4), "z": m.ones(()), "square": m.ones(3, 3), "i": m.ones(3).long(),
        "zi": m.ones(()).long(), "b": m.ones(3, 4).bool(),
    }  # fmt: skip
    on_cpu = {"cx": m.ones(3, 4), "cz": m.tensor(0.5), "ci": m.tensor([0, 2]), "cb": m.eye(3, 4)}
    on_cpu["cb"] = on_cpu["cb"].bool()
    return SimpleNamespace(**{name: t.to("meta") for name, t in made.items()}, **on_cpu)


def written(x, index, value):
    x[index] = value
    return x


#: By library m and its tensors t.
CALLS = {
    "item": lambda m, t: t.z.item(),
    "item of many": lambda m, t: t.x.item(),
    "bool": lambda m, t: bool(t.z),
    "bool of many": lambda m, t: bool(t.x),
    "float": lambda m, t: float(t.z),
    "int": lambda m, t: int(t.z),
    "complex": lambda m, t: complex(t.z),
    "index of a list": lambda m, t: [1, 2, 3][t.zi],
    "tolist": lambda m, t: t.x.tolist(),
    "numpy": lambda m, t: t.x.numpy(),
    "to the cpu": lambda m, t: t.x.cpu(),
    "copy_ to the cpu": lambda m, t: t.cx.copy_(t.x),
    "copy_ from the cpu": lambda m, t: t.x.copy_(t.cx),
    "contains": lambda m, t: 1.0 in t.x,
    "equal": lambda m, t: m.equal(t.x, t.x),
    "allclose": lambda m, t: m.allclose(t.x, t.x),
    "isclose": lambda m, t: m.isclose(t.x, t.x),
    "masked_select": lambda m, t: t.x.masked_select(t.b),
    "masked_fill": lambda m, t: t.x.masked_fill(t.b, t.z),
    "masked_scatter": lambda m, t: t.x.masked_scatter(t.b, t.x),
    "unique": lambda m, t: t.x.unique(),
    "unique along": lambda m, t: t.x.unique(dim=0),
    "unique_consecutive": lambda m, t: t.x.unique_consecutive(),
    "bincount": lambda m, t: m.bincount(t.i),
    "histc": lambda m, t: m.histc(t.x, 5),
    "histc in a range": lambda m, t: m.histc(t.x, 5, 0, 1),
    "repeat_interleave": lambda m, t: m.repeat_interleave(t.x, t.i, 0),
    "repeat_interleave to a size": lambda m, t: m.repeat_interleave(t.x, t.i, 0, output_size=7),
    "one_hot": lambda m, t: m.nn.functional.one_hot(t.i),
    "one_hot of classes": lambda m, t: m.nn.functional.one_hot(t.i, 5),
    "read at a number": lambda m, t: t.x[t.zi],
    "write at a number": lambda m, t: written(t.x, t.zi, 1.0),
    "slice to a number": lambda m, t: t.x[: t.zi],
    "write at a mask": lambda m, t: written(t.x, t.b, 1.0),
    "write a tensor at a mask": lambda m, t: written(t.x, t.b, t.z.expand(12)),
    "write at a mask of rows": lambda m, t: written(t.x, t.b[:, 0], 1.0),
    "write at a mask of columns": lambda m, t: written(t.x, (slice(None), t.b[0]), 1.0),
    "read at indices of the cpu": lambda m, t: t.x[t.ci],
    "read at a mask of the cpu": lambda m, t: t.x[t.cb],
    "read at a mask of columns of the cpu": lambda m, t: t.x[:, t.cb[0]],
    "write at indices of the cpu": lambda m, t: written(t.x, t.ci, 1.0),
    "write at a mask of the cpu": lambda m, t: written(t.x, t.cb, t.z.expand(3)),
    "index_fill": lambda m, t: t.x.index_fill(0, t.i, t.z),
    "index_put at a mask": lambda m, t: t.x.index_put((t.b,), t.z),
    "nonzero_static": lambda m, t: m.nonzero_static(t.x, size=1),
    "a number of the cpu": lambda m, t: (t.x + t.cz, t.cz * t.x, t.x**t.cz, t.x.lerp(t.x, t.cz)),
    "numbers in a list": lambda m, t: m.tensor([t.z, t.z]),
    "full of a number": lambda m, t: m.full((2,), t.z),
    "arange to a number": lambda m, t: m.arange(t.z),
    "clamp": lambda m, t: t.x.clamp(t.z, t.z),
    "inv": lambda m, t: m.linalg.inv(t.square),
    "solve": lambda m, t: m.linalg.solve(t.square, t.x),
    "cholesky": lambda m, t: m.linalg.cholesky(t.square),
    "matrix_rank": lambda m, t: m.linalg.matrix_rank(t.x),
    "matrix_exp": lambda m, t: m.matrix_exp(t.square),
    "quantile": lambda m, t: m.quantile(t.x, t.z),
    "isin": lambda m, t: m.isin(t.x, 1.0),
    "multinomial": lambda m, t: m.multinomial(t.x, 2),
    "normal": lambda m, t: m.normal(t.x, t.x),
    "rrelu": lambda m, t: m.nn.functional.rrelu(t.x, training=True),
    "multi_margin_loss": lambda m, t: m.nn.functional.multi_margin_loss(t.x, t.i),
    "embedding_bag": lambda m, t: m.nn.functional.embedding_bag(t.i, t.x, t.i[:2]),
    "ctc_loss": lambda m, t: m.nn.functional.ctc_loss(
        t.z.expand(5, 3, 4), t.i[:, None], (5, 5, 5), (1, 1, 1)
    ),
    "ctc_loss of lengths": lambda m, t: m.nn.functional.ctc_loss(
        t.z.expand(5, 3, 4), t.i[:, None], t.i, t.i
    ),
    "tril_indices": lambda m, t: m.tril_indices(3, 3, device="meta"),
    "segment_reduce": lambda m, t: m.segment_reduce(t.x, "sum", lengths=t.i),
    "clip_grad_norm_": lambda m, t: m.nn.utils.clip_grad_norm_([m.nn.Parameter(t.x)], 1.0),
}


def shapes(value):
    """Shapes, dtypes and devices."""
    if isinstance(value, (tuple, list)):
        return [shapes(item) for item in value]
    return tuple(value.shape), str(value.dtype), value.device.type


def outcome(name, m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shapes(CALLS[name](m, operands(m)))
        except Exception as error:
            return type(error), first_words(error)


@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(name):
    assert outcome(name, tlc) == outcome(name, torch)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.x[t.b],
        lambda t: t.x.nonzero(),
        lambda t: t.x.nonzero(as_tuple=True),
        lambda t: tlc.argwhere(t.x),
        lambda t: tlc.where(t.b),
        lambda t: t.x.to_sparse(),
        lambda t: tlc.histogram(t.x, 5),
    ],
)
def test_shapes_that_depend_on_values(call):
    with pytest.raises(NotImplementedError, match="aten::.*attempted to run this operator with"):
        call(operands(tlc))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.x + t.cx,
        lambda t: t.cx + t.x,
        lambda t: t.x @ t.cx.T,
        lambda t: t.x.add_(t.cx),
        lambda t: tlc.cat([t.x, t.cx]),
        lambda t: tlc.nn.functional.linear(t.x, t.cx),
    ],
)
def test_devices_do_not_mix(call):
    with pytest.raises(RuntimeError, match="Tensor on device .* is not on the expected device"):
        call(operands(tlc))


def test_gradients_of_what_is_written_at_a_mask():
    x, value = [tlc.ones(n, device="meta", requires_grad=True) for n in (4, 3)]
    mask = tlc.ones(4, dtype=tlc.bool, device="meta")
    y = x.clone()
    y[mask] = value
    y.masked_scatter(mask, value).sum().backward()
    assert x.grad.shape == (4,) and value.grad.shape == (3,)


def test_checks_of_numbers_in_lists_need_no_values_on_the_device():
    for device in ("cpu", "meta"):
        with pytest.raises(RuntimeError, match="cannot be converted"):
            tlc.tensor([300], dtype=tlc.uint8, device=device)
