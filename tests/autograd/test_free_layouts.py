"""Storages that are told to be row-major and lie channels_last, on the CPU.

NumPy's ops lay nothing otherwise than told, so here a wrapper around convolutions, norms and pools
does; what programs see must be the same as without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch as oracle

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends, storage
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.dispatch import capture, hooks
from tensorflow_lite_clone.dispatch.result_layout import conversions
from tensorflow_lite_clone.ops.decorators.autocast import state as autocast
from tensorflow_lite_clone.storage import LazyStorage, lazily_contiguous
from tests.device import DEVICE

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="its device is the CPU")
nn, F = tlc.nn, tlc.nn.functional


def last(x: Any) -> Any:
    """An array's copy that is channels_last."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def lays_otherwise(op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    if op.name not in ("batch_norm", "cast_weight", "conv", "max_pool"):
        return call

    def laying(*arrays: Any, **parameters: Any) -> Any:
        result = call(*arrays, **parameters)
        if type(result) is not tuple:
            return last(result)
        return tuple([last(x) if x.ndim == 4 else x for x in result])

    return laying


@pytest.fixture(autouse=True)
def laying() -> Iterator[None]:
    cpu = backends.load("cpu")
    cpu.lays = True
    hooks.add(lays_otherwise)
    conversions.clear()
    yield
    hooks.remove(lays_otherwise)
    del cpu.lays


def convolved(lib: Any = tlc) -> Any:
    values = np.random.default_rng(0).normal(size=(2, 3, 5, 4)), np.ones((4, 3, 2, 2))
    return lib.nn.functional.conv2d(*[lib.tensor(x.astype(np.float32)) for x in values])


class Graph:
    """Stands for one that is captured."""


def is_free(x: tlc.Tensor) -> bool:
    return x._storage.__class__ is LazyStorage


LOOKS: dict[str, Callable[[Any], Any]] = {
    "view": lambda y: y.view(-1),
    "reshape": lambda y: y.reshape(8, 12),
    "flatten": lambda y: y.flatten(1),
    "permute": lambda y: y.permute(0, 2, 3, 1),
    "slice": lambda y: y[:, 1:],
    "pick": lambda y: y[0, 1],
    "data": lambda y: y.data,
    "as_strided": lambda y: y.as_strided((3, 5), (5, 1), 2),
    "unfold": lambda y: y.unfold(2, 2, 1),
    "chunk": lambda y: y.chunk(2, 1)[1],
    "diagonal": lambda y: y.diagonal(),
    "numpy": lambda y: y.numpy(),
}


@pytest.mark.parametrize("look", LOOKS)
def test_memory_access_materializes_row_major(look: str) -> None:
    y, theirs = convolved(), convolved(oracle)
    assert is_free(y)
    seen, expected = LOOKS[look](y), LOOKS[look](theirs)
    assert not is_free(y)
    assert conversions == {"settled": 1}
    np.testing.assert_allclose(np.asarray(seen), np.asarray(expected), rtol=1e-5, atol=1e-5)
    if look != "numpy":
        assert seen.stride() == expected.stride()
        assert seen.data_ptr() - y.data_ptr() == expected.data_ptr() - theirs.data_ptr()
    seen[...] = 7  # shared memory
    expected[...] = 7
    np.testing.assert_allclose(np.asarray(y), np.asarray(theirs), rtol=1e-5, atol=1e-5)


def test_questions_about_the_layout_copy_nothing() -> None:
    y = convolved()
    assert y.stride() == contiguous_strides(y.shape)
    assert y.is_contiguous() and not y.is_contiguous(memory_format=tlc.channels_last)
    assert y.contiguous() is y
    assert (y.shape, y.dtype, y.ndim, y.numel()) == ((2, 4, 4, 3), tlc.float32, 4, 96)
    assert is_free(y) and not conversions


def test_elementwise_ops_keep_the_layout() -> None:
    y = convolved()
    made = [
        y.relu(), y + 1, 2 * y, y * y, -y, y.exp(), y > 0, y + y.relu(), y.double(), y.detach(),
        F.silu(y), F.dropout(y, 0.3), y.clamp(0, 1), F.batch_norm(y, None, None, training=True),
        y + tlc.ones(4, 1, 1), tlc.where(y > 0, y, 0.0),
    ]  # fmt: skip
    for z in made:
        assert is_free(z)
        assert not z._storage.physical.flags.c_contiguous
    assert is_free(y) and not conversions


@pytest.mark.parametrize("told_last", [False, True])
def test_weights_that_autocast_casts_may_lie_otherwise(told_last: bool) -> None:
    random = np.random.default_rng(0)
    values = [random.normal(size=(n, 8, *size)).astype("f4") for n, *size in ((2, 5, 4), (8, 3, 3))]
    results = []
    for lib in (tlc, oracle):
        x, w = [lib.tensor(value, requires_grad=True) for value in values]
        given = x.contiguous(memory_format=lib.channels_last) if told_last else x * 1
        with lib.autocast("cpu", lib.bfloat16):
            y = lib.nn.functional.conv2d(given, w, padding=1)
            if lib is tlc:
                ((_, kept),) = autocast.cache.values()
                assert is_free(kept) is not told_last  # settled beside an input that is told so
            y = lib.nn.functional.conv2d(y, w, padding=1)
        grads = lib.autograd.grad(y.float().square().sum(), [x, w], create_graph=True)
        sum([grad.square().sum() for grad in grads]).backward()
        results.append([y, *grads, x.grad, w.grad])
    assert results[0][0].stride() == results[1][0].stride()
    assert results[0][-1].is_contiguous()
    for mine, theirs in zip(*results):
        assert str(mine.dtype) == str(theirs.dtype)
        mine, theirs = [value.detach().float().numpy() for value in (mine, theirs)]
        np.testing.assert_allclose(mine, theirs, rtol=2e-2, atol=2e-2 * np.abs(theirs).max())


def test_writes_in_place_keep_the_layout() -> None:
    y, theirs = convolved(), convolved(oracle)
    for z in (y, theirs):
        z.relu_()
        z += 1
        z.mul_(z)
        z.add_(z, alpha=2)
    assert is_free(y) and not conversions
    np.testing.assert_allclose(y.numpy(), theirs.numpy(), rtol=1e-5)


def test_new_tensors_like_a_free_one_copy_nothing() -> None:
    y = convolved()
    for made in (tlc.zeros_like(y), tlc.empty_like(y), tlc.rand_like(y)):
        assert not is_free(made)
        assert made.stride() == contiguous_strides(y.shape)
    assert is_free(y) and not conversions


def test_dropout_mask_is_independent_of_layout() -> None:
    for function in (F.alpha_dropout, F.feature_alpha_dropout, F.dropout2d):
        found = []
        for look in (False, True):
            y = convolved()
            if look:
                y.data_ptr()
            assert is_free(y) is not look
            tlc.manual_seed(0)
            found.append(function(y, 0.5, training=True).numpy())
        np.testing.assert_array_equal(*found)


def test_other_layouts_are_told_as_before() -> None:
    x = tlc.randn(2, 3, 5, 4).contiguous(memory_format=tlc.channels_last)
    y = F.conv2d(x, tlc.randn(4, 3, 2, 2))
    assert not is_free(y) and y.is_contiguous(memory_format=tlc.channels_last)
    transposed = tlc.randn(2, 4, 3, 4).transpose(2, 3)
    z = convolved()
    theirs = oracle.ones(2, 4, 4, 3) + oracle.ones(2, 4, 3, 4).mT
    assert (z + transposed).stride() == theirs.stride()
    assert conversions == {"settled": 1}


def gated(lib: Any) -> list[Any]:
    x, ones = lib.ones(2, 4, 6, 5), lib.ones
    y = lib.nn.functional.conv2d(x, ones(8, 4, 3, 3))
    mask = lib.nn.functional.conv2d(y, ones(1, 8, 1, 1))
    scale = lib.nn.functional.conv2d(y, ones(8, 8, 4, 3))
    return [y, mask, scale, y * mask, y * scale, mask + scale]


def test_axes_of_length_one_are_told_row_major(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "last", strided_last)
    for mine, theirs in zip(gated(tlc), gated(oracle), strict=True):
        assert mine.stride() == theirs.stride()
        np.testing.assert_array_equal(mine.view(-1), theirs.view(-1))


def strided_last(x: Any) -> Any:
    """`last` with the strides of channels_last, also where those of row-major would do."""
    n, c, h, w = x.shape
    strides = [size * x.itemsize for size in (h * w * c, 1, w * c, c)]
    made = np.lib.stride_tricks.as_strided(np.empty(x.size, x.dtype), x.shape, strides)
    made[...] = x
    return made


def network(lib: Any) -> Any:
    lib.manual_seed(0)
    return lib.nn.Sequential(
        lib.nn.Conv2d(3, 8, 3, padding=1), lib.nn.BatchNorm2d(8), lib.nn.ReLU(inplace=True),
        lib.nn.MaxPool2d(2), lib.nn.Conv2d(8, 6, 3, bias=False), lib.nn.SiLU(),
        lib.nn.Flatten(), lib.nn.Linear(6 * 4, 5),
    )  # fmt: skip


def trained(lib: Any) -> list[Any]:
    model = network(lib)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = lib.tensor(np.random.default_rng(1).normal(size=(4, 3, 8, 8)).astype(np.float32))
    found = []
    for _ in range(3):
        x.requires_grad_()
        x.grad = None
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), lib.tensor([0, 1, 2, 3]))
        loss.backward()
        optimizer.step()
        found += [loss.detach().numpy(), x.grad.numpy()]
        x = (x.detach() - x.grad).detach()
    for parameter in model.parameters():
        assert parameter.grad.stride() == parameter.stride()
        found.append(parameter.detach().numpy())
    return found


def test_training() -> None:
    for mine, theirs in zip(trained(tlc), trained(oracle), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_derivatives_of_higher_order() -> None:
    x, w = tlc.randn(2, 3, 4, 4).double(), tlc.randn(2, 3, 2, 2).double()
    x.requires_grad_()
    w.requires_grad_()

    def function(x: Any, w: Any) -> Any:
        return F.batch_norm(F.conv2d(x, w).tanh(), None, None, training=True) ** 2

    assert tlc.autograd.gradcheck(function, (x, w))
    assert tlc.autograd.gradgradcheck(function, (x, w))


def test_gradients_are_shown_row_major() -> None:
    x = tlc.randn(2, 3, 5, 4).requires_grad_()
    y = F.conv2d(x, tlc.ones(4, 3, 2, 2))
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g))
    y.retain_grad()
    z = y.relu()
    z.backward(freely_of(z))
    (again,) = tlc.autograd.grad(F.conv2d(x, tlc.ones(4, 3, 2, 2)).relu(), x, freely_of(z))
    for g in (*seen, y.grad, x.grad, again):
        assert g.stride() == contiguous_strides(g.shape)
        assert g.view(-1).stride() == (1,)


def freely_of(like: tlc.Tensor) -> tlc.Tensor:
    """Ones that lie channels_last and are told not to."""
    made = tlc.ones_like(like)
    made._storage = lazily_contiguous(last(np.ones(like.shape, np.float32)), made._storage.backend)
    assert is_free(made)
    return made


def test_a_gradient_lies_as_its_leaf() -> None:
    for leaf in (tlc.ones(2, 3, 4, 5), tlc.ones(2, 3, 4, 5).to(memory_format=tlc.channels_last)):
        leaf.requires_grad_()
        (leaf * 2).backward(freely_of(leaf))
        assert leaf.grad.stride() == leaf.stride()
        assert not is_free(leaf.grad)


def test_recorded_gradients_stay_free() -> None:
    x = freely_of(tlc.ones(2, 3, 4, 5)).requires_grad_()
    (g,) = tlc.autograd.grad((x * 2).tanh(), x, freely_of(x), create_graph=True)
    assert is_free(g) and is_free(x) and not conversions


def test_functional_gradients_lie_as_their_inputs() -> None:
    x = tlc.randn(2, 3, 4, 5)
    for made in (x, x.contiguous(memory_format=tlc.channels_last)):
        assert tlc.func.grad(lambda x: (2 * x).sin().sum())(made).stride() == made.stride()


def test_captures_begin_and_end_without_free_storages() -> None:
    y = convolved()
    capture.cross_boundary()
    assert not is_free(y)
    assert not storage._own.free()


def test_tracers_see_no_free_storages() -> None:
    from tensorflow_lite_clone.core.flags import flags

    y = convolved()
    with storage.contiguous_storages():
        assert not is_free(y)
        assert not flags.free_layouts
    assert flags.free_layouts


def test_copies_and_pickles() -> None:
    import copy
    import pickle

    y = convolved()
    expected = convolved(oracle).numpy()
    for made in (y.clone(), copy.deepcopy(convolved()), pickle.loads(pickle.dumps(convolved()))):
        assert made.stride() == contiguous_strides(made.shape)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)
    assert repr(y) == repr(convolved())


def test_a_row_major_operand_is_brought_along() -> None:
    y, other = convolved(), tlc.randn(2, 4, 4, 3)
    for z in (other + y, y + other):
        assert is_free(z)
        assert not z._storage.physical.flags.c_contiguous
        np.testing.assert_array_equal(z.numpy(), y.clone().numpy() + other.numpy())
    assert other._storage.array.flags.c_contiguous
    assert conversions["packed"] == 2


def test_both_memories_are_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another stream may have read the result as it lies, and reads its row-major copy later."""
    lent: list[Any] = []
    cpu = backends.load("cpu")
    monkeypatch.setattr(cpu, "lend", lambda array, *given: lent.append(array), raising=False)
    y = convolved()
    physical = y._storage.physical
    assert is_free(y)
    y.record_stream(None)
    assert len(lent) == 2 and lent[0] is physical and lent[1] is y._storage.physical is not physical
    y.record_stream(None)
    assert len(lent) == 3 and lent[2] is lent[1]


def test_reading_a_tensor_another_thread_captures_raises() -> None:
    made: list[Any] = []
    ready, looked = threading.Event(), threading.Event()

    def work() -> None:
        capture.begin(Graph())
        made.append(convolved())
        made[0].shape, made[0].stride()
        ready.set()
        looked.wait(10)
        made.append(convolved())
        made[1].numpy()  # its own
        capture.end()

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(10)
    with pytest.raises(RuntimeError, match="another thread captures"):
        made[0].numpy()
    assert is_free(made[0])
    looked.set()
    thread.join(10)
    np.testing.assert_array_equal(made[0].numpy(), made[1].numpy())


def test_copies_that_nobody_asked_for_are_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device all streams have to wait for them."""
    copied: list[Any] = []
    cpu = backends.load("cpu")

    def settled(array: Any) -> Any:
        copied.append(array)
        return np.ascontiguousarray(array)

    monkeypatch.setattr(cpu, "settled", settled, raising=False)
    y = convolved()
    physical = y._storage.physical
    y.numpy()
    assert [array is physical for array in copied] == [True]
