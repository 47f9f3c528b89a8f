"""Steps with DistributedDataParallel that are captured and replayed."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends, nn
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone.nn.parallel import DistributedDataParallel
from tests.distributed.process_groups import gpu_world, world
from tests.distributed.ranks import host, part

SMALL = 1e-4  # MiB


def network(device, norm=False):
    """A small model; a bias before the batch norm would have rounding noise as its gradient."""
    tlc.manual_seed(0)
    middle = nn.BatchNorm1d(8) if norm else nn.Tanh()
    return nn.Sequential(nn.Linear(4, 8, bias=not norm), middle, nn.Linear(8, 2)).to(device)


def batches(count, device):
    values = np.random.default_rng(1).standard_normal((count, 8, 4)).astype(np.float32)
    return tlc.tensor(values).to(device)


def state(model):
    return [host(value) for value in (*model.parameters(), *model.buffers())]


def trained(call, model, rank, size, count, device):
    """The losses of some steps, every third of which only adds to the gradient."""
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step, x in enumerate(batches(count, device)):
        x = part(x, rank, size)
        if step % 3 == 2:
            with model.no_sync():
                call(x).pow(2).mean().backward()
            continue
        loss = call(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


# -- on a device that captures without a GPU ----------------------------------------------------


def captured_model(rank, size, way):
    import tests.tape_backend  # noqa: F401  (the device)

    group = dist.new_group(backend="cpu:gloo,tape:gloo")
    results = []
    for how in ("eager", way):
        before = len(backends.load("tape").graphs.captured)
        model = network("tape")
        if how == "before":
            sample = part(batches(1, "tape")[0], rank, size)
            model = tlc.cuda.make_graphed_callables(model, (sample,))
        model = DistributedDataParallel(model, process_group=group, bucket_cap_mb=SMALL)
        call = tlc.compile(model) if how == "around" else model
        if how == "in place":
            model.compile()
        losses = trained(call, model, rank, size, 12, "tape")
        results.append((losses, state(model)))
    graphs = backends.load("tape").graphs.captured[before:]
    return results, len(graphs), max(graph.launches for graph in graphs)


@pytest.mark.parametrize("way", ["around", "in place", "before"])
def test_a_captured_model_reduces_at_each_replay(way):
    found = world(2).run(captured_model, way)
    for (plain, compiled), graphs, launches in found:
        assert graphs >= 2 and launches > 5
        np.testing.assert_allclose(compiled[0], plain[0], 1e-5)
        for one, other in zip(compiled[1], plain[1], strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-6)
    for one, other in zip(found[0][0][1][1], found[1][0][1][1], strict=True):
        np.testing.assert_array_equal(one, other)


def compiled_step(rank, size, options):
    import tests.tape_backend  # noqa: F401

    groups = [dist.new_group([each], backend="cpu:gloo,tape:gloo") for each in range(size)]
    results = []
    for compiled in (False, True):
        model = DistributedDataParallel(
            network("tape", norm=True), process_group=groups[rank], bucket_cap_mb=SMALL, **options
        )
        optimizer = tlc.optim.AdamW(model.parameters(), lr=0.01)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad(set_to_none=options.get("static_graph") is None)
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        call = tlc.compile(step, fullgraph=True) if compiled else step
        losses = [call(x).item() for x in batches(10, "tape")]
        results.append((losses, state(model)))
    return results


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_as_bucket_view": True},
        {"static_graph": True, "gradient_as_bucket_view": True},
    ],
    ids=["plain", "views", "static"],
)
def test_a_whole_step_can_be_captured(options):
    for plain, compiled in world(2).run(compiled_step, options):
        np.testing.assert_allclose(compiled[0], plain[0], 1e-5)
        for one, other in zip(compiled[1], plain[1], strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-6)


def compiled_forward(rank, size):
    """A function that leaves the backward pass outside must not be captured."""
    import tests.tape_backend  # noqa: F401

    group = dist.new_group(backend="cpu:gloo,tape:gloo")
    model = DistributedDataParallel(network("tape"), process_group=group)
    loss = tlc.compile(lambda x: model(x).pow(2).mean(), fullgraph=True)
    x = part(batches(1, "tape")[0], rank, size)
    with pytest.raises(RuntimeError, match="calls a DistributedDataParallel, and has no backward"):
        loss(x)


def test_a_captured_function_must_have_the_whole_step():
    world(2).run(compiled_forward)


# -- on GPUs ------------------------------------------------------------------------------------


def captured(rank, size, options, way):
    """Losses and state after steps that are eager, and captured after a few."""
    results = []
    for capture in (False, True):
        model = DistributedDataParallel(network("cuda", norm=True), bucket_cap_mb=SMALL, **options)
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        static = tlc.zeros(8 // size, 4, device="cuda")

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss

        call = tlc.compile(step, fullgraph=True) if capture and way == "compile" else step
        graph, losses = None, []
        for number, x in enumerate(batches(12, "cuda")):
            static.copy_(part(x, rank, size))
            if capture and way == "graph" and number >= 3:
                if graph is None:
                    tlc.cuda.synchronize()
                    graph = tlc.cuda.CUDAGraph()
                    with tlc.cuda.graph(graph):
                        loss = call(static)
                graph.replay()
            else:
                loss = call(static)
            losses.append(loss.clone())
        results.append(([loss.item() for loss in losses], state(model)))
    return results


@pytest.mark.cuda
@pytest.mark.multi_gpu
@pytest.mark.parametrize("way", ["graph", "compile"])
@pytest.mark.parametrize(
    "options",
    [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}],
    ids=["plain", "views", "static"],
)
def test_a_captured_step_equals_an_eager_one(options, way):
    for plain, replayed in gpu_world(2).run(captured, options, way):
        np.testing.assert_allclose(replayed[0], plain[0], 1e-4)
        for one, other in zip(replayed[1], plain[1], strict=True):
            np.testing.assert_allclose(one, other, 1e-4, 1e-5)


def overlapped(rank, size):
    """The streams of reductions, and how many gradients were there when the first one began."""
    model = DistributedDataParallel(network("cuda"), bucket_cap_mb=SMALL)
    x = part(batches(1, "cuda")[0], rank, size)
    model(x).sum().backward()
    channel = type(dist.group.WORLD.engine("cuda")._on())
    seen, reduce = [], channel.all_reduce

    def watched(self, *args):
        current = tlc.cuda.current_stream().cuda_stream
        seen.append((self.stream.ptr, current, len(model.reducer._ready)))
        return reduce(self, *args)

    channel.all_reduce = watched
    try:
        model(x).sum().backward()
    finally:
        channel.all_reduce = reduce
    return seen, len(list(model.parameters()))


@pytest.mark.cuda
@pytest.mark.multi_gpu
def test_reductions_have_a_stream_of_their_own():
    for seen, count in gpu_world(2).run(overlapped):
        assert all(stream != current for stream, current, _ in seen)
        assert seen[0][2] < count
