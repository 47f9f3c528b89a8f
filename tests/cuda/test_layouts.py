"""Activations stay channels_last between convolutions, and programs see PyTorch's layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from examples.cifar.models import resnet20
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.dispatch.result_layout import conversions
from tensorflow_lite_clone.storage import LazyStorage
from tests.cuda.programs import host, labels, tensor

pytestmark = pytest.mark.cuda
nn, F = tlc.nn, tlc.nn.functional


@pytest.fixture(autouse=True)
def tensor_cores() -> Iterator[None]:
    with tlc.backends.cudnn.flags(allow_tf32=True):
        yield


def image_network() -> nn.Module:
    tlc.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.Dropout(0.0), nn.SiLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, groups=4, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
    ).cuda()  # fmt: skip


def is_free(x: tlc.Tensor) -> bool:
    return x._storage.__class__ is LazyStorage


def test_results_lie_as_suits_and_look_row_major() -> None:
    x = tensor("cuda", 1, 4, 3, 16, 16)
    for layer in image_network():
        x = layer(x)
        assert x._storage.physical.strides[1] == 4
        assert len(x.shape) == 4 and x.dtype is tlc.float32 and is_free(x)
        assert is_free(x)
        assert x.stride() == contiguous_strides(x.shape)
        assert x.is_contiguous() and not x.is_contiguous(memory_format=tlc.channels_last)


def test_a_view_shares_memory() -> None:
    y = F.conv2d(tensor("cuda", 1, 2, 8, 6, 6), tensor("cuda", 2, 16, 8, 3, 3))
    expected = y.cpu().numpy().copy()
    assert not is_free(y)
    y = F.conv2d(tensor("cuda", 1, 2, 8, 6, 6), tensor("cuda", 2, 16, 8, 3, 3))
    assert is_free(y)
    line = y.view(-1)
    assert not is_free(y)
    assert line.data_ptr() == y.data_ptr()
    np.testing.assert_array_equal(line.cpu().numpy(), expected.reshape(-1))
    line[5] = 7
    assert y[0, 0, 1, 1].item() == 7


@pytest.mark.parametrize("look", [
    lambda y: y.data_ptr(), lambda y: y._storage.array,
    lambda y: y.numpy(force=True), lambda y: y[:, 2:], lambda y: y.permute(0, 2, 3, 1),
    lambda y: y.flatten(1), lambda y: y.__dlpack__(), lambda y: y.untyped_storage().data_ptr(),
])  # fmt: skip
def test_memory_access_materializes_row_major(look: Any) -> None:
    y = F.conv2d(tensor("cuda", 1, 2, 8, 6, 6), tensor("cuda", 2, 16, 8, 3, 3))
    before = conversions["settled"]
    look(y)
    assert conversions["settled"] == before + 1
    assert y._storage.array.flags.c_contiguous
    look(y)
    assert conversions["settled"] == before + 1


def step_of(model: nn.Module, rate: float = 0.05) -> Any:
    optimizer = tlc.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def losses(count: int, captured: bool) -> list[float]:
    tlc.manual_seed(0)
    step = step_of(resnet20().cuda())
    if captured:
        step = tlc.compile(step, fullgraph=True)
    x, y = tensor("cuda", 1, 32, 3, 32, 32), labels("cuda", 2, 32, 10)
    return [step(x, y).item() for _ in range(count)]


def test_training_is_the_same() -> None:
    flags.free_layouts = False
    try:
        expected = losses(6, False)
    finally:
        flags.free_layouts = True
    np.testing.assert_allclose(losses(6, False), expected, rtol=2e-2)
    np.testing.assert_allclose(losses(6, True), losses(6, False), rtol=2e-3)


def test_a_residual_network_converts_at_its_edges_alone() -> None:
    from tensorflow_lite_clone.vision.models import resnet18

    tlc.manual_seed(0)
    model = resnet18(num_classes=10).cuda()
    step, x, y = step_of(model), tensor("cuda", 1, 8, 3, 64, 64), labels("cuda", 2, 8, 10)
    step(x, y)
    conversions.clear()
    step(x, y)
    assert conversions["settled"] == 0
    assert conversions["packed"] <= 3  # the images, for the product and the weight's gradient
    for parameter in model.parameters():
        assert parameter.grad.stride() == parameter.stride()


def test_results_of_a_captured_graph_stay_its_own() -> None:
    weight = tensor("cuda", 2, 16, 8, 3, 3)
    x = tensor("cuda", 1, 2, 8, 6, 6)
    inside = F.conv2d(x, tensor("cuda", 3, 8, 8, 3, 3), padding=1)  # made before, used within
    for _ in range(2):
        F.relu(F.conv2d(inside, weight))
    graph = tlc.cuda.CUDAGraph()
    with tlc.cuda.graph(graph):
        y = F.relu(F.conv2d(inside, weight))
    inside.copy_(tensor("cuda", 4, 2, 8, 6, 6))
    line = y.view(-1)
    graph.replay()
    expected = F.relu(F.conv2d(inside.clone(), weight))
    np.testing.assert_allclose(line.cpu(), expected.flatten().cpu(), rtol=1e-3, atol=1e-3)


def test_hooks_and_gradients_see_row_major() -> None:
    x = tensor("cuda", 1, 2, 8, 6, 6).requires_grad_()
    weight = tensor("cuda", 2, 16, 8, 3, 3).requires_grad_()
    y = F.conv2d(x, weight, padding=1)
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g))
    y.retain_grad()
    F.relu(y).square().sum().backward()
    for tensor_ in (x.grad, weight.grad, y.grad, *seen):
        assert tensor_.is_contiguous()
        assert tensor_.reshape(-1).data_ptr() == tensor_.data_ptr()


@pytest.mark.parametrize("size", [(4, 4), (8, 8), (20, 13)])
@pytest.mark.parametrize("dtype", [tlc.float32, tlc.float16])
def test_means_over_pixels(size: tuple, dtype: Any) -> None:
    x = tensor("cuda", 1, 3, 24, *size).to(dtype)
    y = F.conv2d(x, tlc.eye(24, dtype=dtype, device="cuda")[..., None, None])
    assert is_free(y)
    for keepdim in (False, True):
        found = y.mean((2, 3), keepdim=keepdim)
        assert is_free(y)
        expected = host(y).astype(np.float64).mean((2, 3), keepdims=keepdim)
        np.testing.assert_allclose(host(found), expected, rtol=2e-3, atol=2e-3)
        y = F.conv2d(x, tlc.eye(24, dtype=dtype, device="cuda")[..., None, None])


def test_a_captured_pair_leaves_what_backward_reads_as_it_lies() -> None:
    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = image_network()

        def forward(self, x: tlc.Tensor) -> tlc.Tensor:
            y = self.layers[:3](x)
            self.kept = y.detach() * 2
            return self.layers[3:](y)

    def gradients(model: Any, network: Network) -> list[np.ndarray]:
        found = []
        for seed in range(4):
            network.zero_grad()
            y = model(tensor("cuda", seed, 4, 3, 16, 16))
            y.square().sum().backward()
            found += [host(y), host(network.kept.reshape(-1)), host(network.layers[0].weight.grad)]
        return found

    networks = Network().cuda(), Network().cuda()
    networks[1].load_state_dict(networks[0].state_dict())
    expected = gradients(networks[0], networks[0])
    compiled = tlc.compile(networks[1])
    for mine, true in zip(gradients(compiled, networks[1]), expected, strict=True):
        np.testing.assert_allclose(mine, true, rtol=2e-2, atol=2e-2 * np.abs(true).max())


@pytest.mark.parametrize("dtype", [tlc.float32, tlc.bfloat16])
def test_large_tensors_change_their_layout(dtype: Any) -> None:
    x = tensor("cuda", 1, 5, 24, 40, 36).to(dtype)
    last = x.contiguous(memory_format=tlc.channels_last)
    assert last.stride() == (24 * 40 * 36, 1, 24 * 36, 24)
    assert bool((last == x).all())
    assert bool((last.contiguous() == x).all())


def test_a_copy_that_another_stream_makes_is_waited_for() -> None:
    """No program waits for it: it asked for a view, which copies nothing in PyTorch."""
    weight, images = tensor("cuda", 2, 16, 8, 3, 3), tensor("cuda", 1, 16, 8, 34, 34)
    expected = F.conv2d(images, weight).cpu().numpy()
    side, large = tlc.cuda.Stream(), tlc.randn(4096, 4096, device="cuda")
    for _ in range(3):
        y = F.conv2d(images, weight)
        assert is_free(y)
        side.wait_stream(tlc.cuda.current_stream())
        with tlc.cuda.stream(side):
            tlc.full((16, 16, 32, 32), float("nan"), device="cuda")  # what its memory held before
            for _ in range(20):
                large = (large @ large).clamp(-1, 1)
            view = y[:, 1:]
        assert not is_free(y)
        np.testing.assert_array_equal((y * 1).cpu().numpy(), expected)
        np.testing.assert_array_equal(view.cpu().numpy(), expected[:, 1:])
