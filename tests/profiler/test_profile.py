"""`profiler.profile`: what it notes, how it sums, and that programs go on as without it."""

from __future__ import annotations

import gzip
import json
import threading
import warnings

import pytest
from torch.profiler import schedule as torch_schedule

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import profiler
from tensorflow_lite_clone.autograd import profiler as older
from tensorflow_lite_clone.dispatch import hooks, table
from tensorflow_lite_clone.profiler import recorder
from tests.device import DEVICE

nn = tlc.nn
RELU = "relu_" if DEVICE == "cuda" else "relu"  # in place: by one kernel there, else a copy after


def network() -> nn.Module:
    tlc.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8 * 36, 10)
    ).to(DEVICE)


def images() -> tlc.Tensor:
    return tlc.ones(4, 3, 8, 8, device=DEVICE)


def step(model: nn.Module, optimizer: tlc.optim.Optimizer) -> float:
    optimizer.zero_grad()
    loss = model(images()).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def profiled(**options) -> profiler.profile:
    """A profile of one training step, after one without."""
    model = network()
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.01)
    step(model, optimizer)
    with profiler.profile(**options) as found:
        step(model, optimizer)
    return found


def names(profile: profiler.profile) -> list[str]:
    """What ran, but for kernels, which ops have on some devices."""
    return [event.name for event in profile.events() if event.kind != "kernel"]


def nothing_is_watched() -> bool:
    return not (
        hooks.around_op
        or hooks.around_write
        or hooks.around_gradient
        or hooks.around_region
        or hooks.on_launch
        or hooks.on_wait
        or hooks.on_node
        or hooks.on_storage
        or recorder.recorders
    )


def test_ops_gradients_and_steps_are_events() -> None:
    found = {event.key: event for event in profiled().key_averages()}
    for name in ("conv", RELU, "linear", "mean", "ConvolutionBackward0", "AddmmBackward0"):
        assert found[name].count == 1, name
    assert found["Optimizer.step#SGD.step"].count == 1
    assert found["ConvolutionBackward0"].kind == "backward" and found["conv"].kind == "op"
    assert nothing_is_watched()


def test_events_nest_and_self_times_add_up() -> None:
    tlc.zeros(1)
    with profiler.profile() as found, profiler.record_function("outer"):
        with profiler.record_function("inner"):
            tlc.ones(3, device=DEVICE).exp()
        tlc.ones(3, device=DEVICE).sin()
    events = {event.name: event for event in found.events()}
    outer, inner = events["outer"], events["inner"]
    assert inner.cpu_parent is outer and events["exp"].cpu_parent is inner
    assert outer.is_user_annotation and outer.scope == 7 and events["exp"].scope == 0
    assert events["exp"] in inner.cpu_children and events["sin"].cpu_parent is outer
    assert 0 < inner.cpu_time_total < outer.cpu_time_total
    sums = sum([event.self_cpu_time_total for event in found.events()])
    assert sums == pytest.approx(outer.cpu_time_total)
    assert all([event.self_cpu_time_total >= 0 for event in found.events()])


def test_gradients_have_the_sequence_numbers_of_their_ops() -> None:
    events = profiled(with_stack=True).events()
    forward = {e.sequence_nr: e for e in events if e.kind == "op" and e.sequence_nr >= 0}
    pairs = {forward[e.sequence_nr].name: e for e in events if e.kind == "backward"}
    assert pairs["conv"].name == "ConvolutionBackward0"
    assert pairs[RELU].name == "ReluBackward0"
    assert pairs["linear"].name == "AddmmBackward0"
    # a gradient is shown where its op was called, not where backward was
    assert pairs["conv"].stack == forward[pairs["conv"].sequence_nr].stack != []
    assert "test_profile.py" in pairs["conv"].stack[0] and ": step" in pairs["conv"].stack[0]


def test_shapes_operations_and_bytes() -> None:
    found = profiled(record_shapes=True, with_flops=True)
    events = {event.name: event for event in found.events()}
    assert events["conv"].input_shapes == [[4, 3, 8, 8], [8, 3, 3, 3], [8]]
    assert events["conv"].input_dtypes == ["float32"] * 3
    assert events["conv"].flops == 2 * (4 * 8 * 6 * 6) * 27
    elements = 4 * 3 * 8 * 8 + 8 * 3 * 3 * 3 + 8 + 4 * 8 * 6 * 6
    assert events["conv"].bytes == 4 * elements
    # gradients of weight and bias; the image wants none
    assert events["ConvolutionBackward0"].flops == events["conv"].flops
    assert events["AddmmBackward0"].flops == 2 * events["linear"].flops


def test_averages_by_shape_and_by_line() -> None:
    a, b = tlc.ones(2, device=DEVICE), tlc.ones(3, device=DEVICE)
    with profiler.profile(record_shapes=True, with_stack=True) as found:
        a.exp()
        for _ in range(2):
            b.exp()
    (total,) = [e for e in found.key_averages() if e.key == "exp"]
    assert total.count == 3 and total.input_shapes == []
    shaped = found.key_averages(group_by_input_shape=True)
    counts = {str(e.input_shapes): e.count for e in shaped if e.key == "exp"}
    assert counts == {"[[2]]": 1, "[[3]]": 2}
    lines = [e for e in found.key_averages(group_by_stack_n=1) if e.key == "exp"]
    assert sorted([e.count for e in lines]) == [1, 2] and len(lines[0].stack) == 1
    whole = found.key_averages().total_average()
    assert whole.count == sum([e.count for e in found.key_averages()])


def test_tables() -> None:
    found = profiled(record_shapes=True, profile_memory=True, with_flops=True, with_stack=True)
    text = found.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total")
    head = text.splitlines()[1]
    for title in ("Name", "Self CPU %", "CPU total", "# of Calls", "Input Shapes", "Total FLOPs"):
        assert title in head
    assert "[[4, 3, 8, 8], [8, 3, 3, 3], [8]]" in text and "Self CPU time total:" in text
    short = found.key_averages().table(sort_by="self_cpu_time_total", row_limit=2, time_unit="ms")
    rows = short.split(short.splitlines()[0])[2].splitlines()[1:]
    assert len(rows) == 2 and all(["ms" in row for row in rows])
    times = [float(row.split("%")[0].split()[-1]) for row in rows]
    assert times == sorted(times, reverse=True)
    assert found.key_averages().table(header="TITLE").startswith("TITLE\n")
    assert len(found.events().table(row_limit=-1).splitlines()) > len(found.events())
    with pytest.raises(AttributeError, match="nope"):
        found.key_averages().table(sort_by="nope")
    assert "conv" in found.report() and str(found.key_averages()) == found.key_averages().table()


def test_printing_without_a_terminal_is_the_table(capsys) -> None:
    sums = profiled().key_averages()
    sums.print(sort_by="cpu_time_total", row_limit=3)
    assert capsys.readouterr().out == sums.table(sort_by="cpu_time_total", row_limit=3) + "\n"


@pytest.mark.parametrize("repeat", [0, 1, 2])
@pytest.mark.parametrize("skip", [(0, 0), (2, 0), (1, 1)])
def test_schedules_are_those_of_torch(repeat: int, skip: tuple[int, int]) -> None:
    options = {"wait": 1, "warmup": 2, "active": 2, "repeat": repeat}
    options |= {"skip_first": skip[0], "skip_first_wait": skip[1]}
    ours, theirs = profiler.schedule(**options), torch_schedule(**options)
    assert [ours(i).name for i in range(20)] == [theirs(i).name for i in range(20)]


def test_cycles_of_a_schedule() -> None:
    handed = []

    def ready(found) -> None:
        names = [event.name for event in found.events() if event.is_user_annotation]
        handed.append((names, [e.name for e in found.events() if e.kind == "op"]))

    x = tlc.ones(3, device=DEVICE)
    ops = [x.exp, x.sin, x.cos, x.tan, x.exp, x.sin, x.cos, x.tan, x.log]
    plan = profiler.schedule(wait=1, warmup=1, active=2)
    with profiler.profile(schedule=plan, on_trace_ready=ready) as found:
        for op in ops:
            op()
            found.step()
    assert [ops for _, ops in handed] == [["cos", "tan"], ["cos", "tan"]]
    assert handed[0][0] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert nothing_is_watched()


def test_while_a_schedule_waits_nothing_is_watched() -> None:
    with profiler.profile(schedule=profiler.schedule(wait=1, warmup=1, active=1)) as found:
        assert nothing_is_watched()
        found.step()
        assert not nothing_is_watched()


def test_several_profiles_at_once() -> None:
    x = tlc.ones(3, device=DEVICE)
    first, second = profiler.profile(), profiler.profile()
    first.start()
    x.exp()
    second.start()
    with profiler.record_function("both"):
        x.sin()
    first.stop()
    x.cos()
    second.stop()
    assert names(first) == ["exp", "both", "sin"]
    assert names(second) == ["both", "sin", "cos"]
    assert nothing_is_watched()


def test_an_error_in_the_program_passes_and_ends_the_profile() -> None:
    found = profiler.profile(with_modules=True)
    with pytest.raises(RuntimeError, match="size of tensor a"), found:
        tlc.ones(2, device=DEVICE).exp()
        tlc.ones(2, device=DEVICE) + tlc.ones(3, device=DEVICE)
    assert names(found) == ["exp"]
    assert nothing_is_watched()


def test_results_are_the_same() -> None:
    def losses(watched: bool) -> list[float]:
        model = network()
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        options = dict(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True)
        if watched:
            with profiler.profile(with_modules=True, **options):
                return [step(model, optimizer) for _ in range(3)]
        return [step(model, optimizer) for _ in range(3)]

    assert losses(True) == losses(False)


def test_views_writes_and_numbers_are_seen() -> None:
    x = tlc.ones(4, 4, device=DEVICE)
    with profiler.profile(record_shapes=True) as found:
        x[1]
        x[1:3]
        x[0, 1]
        x.expand(2, 4, 4)
        x.add_(1)
        x += x
        x.sigmoid_()
        x.fill_(3)
        x.zero_()
        x[0] = 1
        x.copy_(x)
    names = [event.name for event in found.events()]
    for name in ("select", "slice", "expand", "add_", "sigmoid", "fill_", "zero_", "copy_into_"):
        assert name in names, (name, names)
    (_, added) = [event for event in found.events() if event.name == "add_"]
    assert added.input_shapes == [[4, 4], [4, 4]] and added.bytes == 3 * 64  # x += x


def test_other_threads_are_seen() -> None:
    x = tlc.ones(3, device=DEVICE)
    with profiler.profile() as found:
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
        x.sin()
    threads = {event.name: event.thread for event in found.events()}
    assert threads["exp"] != threads["sin"]


def test_modules() -> None:
    model = network()
    with profiler.profile(with_modules=True) as found:
        model(images())
    events = {event.name: event for event in found.events()}
    assert events["conv"].cpu_parent is events["nn.Module: Conv2d_0"]
    assert events["nn.Module: Linear_0"].cpu_parent is events["nn.Module: Sequential_0"]


def test_data_loaders_are_seen() -> None:
    data = tlc.utils.data.TensorDataset(tlc.arange(6))
    loader = tlc.utils.data.DataLoader(data, batch_size=2)
    with profiler.profile() as found:
        batches = list(loader)
    name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert len([e for e in found.events() if e.name == name]) == len(batches)


def test_declined_overrides_are_counted() -> None:
    x = tlc.ones(2, 3, requires_grad=True)
    with profiler.profile() as found:
        x.softmax(0).sum().backward()  # NumPy's form is for the last axis
    assert found.fallbacks() == {(f"softmax{part}", "numpy"): 1 for part in ("", "_backward")}
    assert "softmax_backward" in found.report()
    assert table.declined["softmax_backward", "numpy"] >= 1


@pytest.mark.skipif(DEVICE == "cuda", reason="costs are told from shapes, as on the CPU")
def test_every_op_of_the_table_can_be_profiled(monkeypatch) -> None:
    """Costs and shapes are noted without an error, whatever an op and its gradient are given."""
    from tests.ops.test_override import run_the_table  # which passes over what rows raise

    errors = []

    def watched(call):
        def watching(*args):
            try:
                return call(*args)
            except Exception as error:
                errors.append((call.__name__, *map(str, args), error))
                raise

        return watching

    for name in ("flops_of", "bytes_of", "flops_of_gradient", "bytes_of_gradient"):
        monkeypatch.setattr(recorder, name, watched(getattr(recorder, name)))
    with profiler.profile(record_shapes=True, with_flops=True, profile_memory=True) as found:
        run_the_table()
    assert errors == []
    kinds = {event.kind for event in found.events()}
    assert kinds >= {"op", "backward"} and len(found.key_averages()) > 500


def test_older_profiler() -> None:
    with older.profile(record_shapes=True) as found:
        tlc.ones(3, device=DEVICE).exp()
    assert [event.name for event in found.function_events] == ["exp"]
    assert "exp" in str(found) and found.total_average().count == 1
    assert found.self_cpu_time_total > 0 and "exp" in found.table(sort_by="cpu_time_total")
    with older.profile(enabled=False) as off:
        tlc.ones(3, device=DEVICE).exp()
    assert "unfinished" in str(off)


def test_asking_too_early() -> None:
    found = profiler.profile()
    with pytest.raises(RuntimeError, match="didn't finish"):
        found.key_averages()
    found.start()
    with pytest.raises(RuntimeError, match="didn't finish"):
        found.events()
    found.stop()
    assert found.events() == []


def test_record_function_decorates() -> None:
    @profiler.record_function("mine")
    def double(x: tlc.Tensor) -> tlc.Tensor:
        return x + x

    with profiler.profile() as found:
        double(double(tlc.ones(2, device=DEVICE)))
    assert names(found) == ["mine", "add", "mine", "add"]
    assert double(tlc.ones(1, device=DEVICE)).item() == 2


# ---- files


def test_chrome_traces(tmp_path) -> None:
    found = profiled(record_shapes=True, with_stack=True, profile_memory=True)
    found.add_metadata("who", "me")
    found.add_metadata_json("what", '{"a": 1}')
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    content = json.loads((tmp_path / "trace.json").read_text())
    assert content["who"] == "me" and content["what"] == {"a": 1}
    spans = {e["name"]: e for e in content["traceEvents"] if e["ph"] == "X" and e["pid"] == 0}
    assert spans["conv"]["cat"] == "cpu_op" and spans["conv"]["dur"] > 0
    assert spans["conv"]["args"]["Input Dims"] == [[4, 3, 8, 8], [8, 3, 3, 3], [8]]
    assert any([e["ph"] == "C" and e["args"]["bytes"] > 0 for e in content["traceEvents"]])
    found.events().export_chrome_trace(str(tmp_path / "trace.json.gz"))
    with gzip.open(tmp_path / "trace.json.gz") as file:
        assert json.load(file)["traceEvents"]
    assert sorted([path.name for path in tmp_path.iterdir()]) == ["trace.json", "trace.json.gz"]


def test_stacks(tmp_path) -> None:
    found = profiled(with_stack=True)
    found.export_stacks(str(tmp_path / "stacks.txt"), "self_cpu_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines
    for line in lines:
        stack, _, time = line.rpartition(" ")
        assert int(time) > 0 and "test_profile.py" in stack.split(";")[-1]
    with pytest.raises(ValueError, match="metric should be one of"):
        found.export_stacks(str(tmp_path / "x"), "nope")


def test_a_full_disk_leaves_no_half_file(tmp_path) -> None:
    found = profiled()
    target = tmp_path / "trace.json"
    target.write_text("before")
    with pytest.raises(OSError):
        found.export_chrome_trace("/dev/full/trace.json")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        found.export_chrome_trace(str(tmp_path / "folder"))  # a folder is in the way
    assert sorted([path.name for path in tmp_path.iterdir()]) == ["folder", "trace.json"]
    assert target.read_text() == "before"


def test_training_goes_on_where_a_trace_cannot_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    handler = profiler.tensorboard_trace_handler(str(tmp_path / "file"))
    plan = profiler.schedule(wait=0, warmup=0, active=1)
    x = tlc.ones(3, device=DEVICE)
    done = 0
    with (
        pytest.warns(UserWarning, match="could not be handed over"),
        profiler.profile(schedule=plan, on_trace_ready=handler) as found,
    ):
        for _ in range(3):
            x.exp()
            found.step()
            done += 1
    assert done == 3


def test_trace_handler_writes_a_file_a_cycle(tmp_path) -> None:
    handler = profiler.tensorboard_trace_handler(str(tmp_path), "worker", use_gzip=True)
    plan = profiler.schedule(wait=0, warmup=0, active=1)
    with profiler.profile(schedule=plan, on_trace_ready=handler) as found:
        for _ in range(2):
            tlc.ones(3).exp()
            found.step()
    names = [path.name for path in tmp_path.iterdir()]
    assert len(names) == 3  # the last step, which had not ended, too
    assert all([n.startswith("worker.") and n.endswith(".pt.trace.json.gz") for n in names])


# ---- memory


def test_memory_by_op() -> None:
    x = tlc.ones(1000, device=DEVICE)
    with profiler.profile(profile_memory=True) as found:
        y = x.exp()
        z = y.sin()
        del y
    events = {event.name: event for event in found.events()}
    name = "device_memory_usage" if DEVICE == "cuda" else "cpu_memory_usage"
    assert getattr(events["exp"], name) >= 4000 and getattr(events["sin"], name) >= 4000
    taken = [event for event in found.memory_events() if event.where != "before the profile"]
    assert [event.delta_bytes > 0 for event in taken] == [True, True, False]
    assert taken[0].where.startswith(__file__) and taken[2].where == taken[0].where
    assert taken[-1].total_bytes - found.memory_events()[0].total_bytes == pytest.approx(
        z.nbytes, abs=512
    )


def test_meta_tensors_take_no_memory_and_no_time() -> None:
    x = tlc.ones(1000, 1000, device="meta", requires_grad=True)
    with profiler.profile(profile_memory=True, with_flops=True) as found:
        (x @ x).exp().sum().backward()
        x.grad.zero_()
    assert {event.cpu_memory_usage for event in found.events()} == {0}
    assert "meta" not in {event.device for event in found.memory_events()}
    costs = {event.key: (event.flops, event.bytes, event.roof) for event in found.key_averages()}
    assert costs["mm"] == (2e9, 12e6, 0.0)
    assert costs["MmBackward0"][0] == 4e9
    assert {roof for _, _, roof in costs.values()} == {0.0}


def test_memory_ends_where_it_began() -> None:
    model = network()
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.01)
    step(model, optimizer)
    step(model, optimizer)
    with profiler.profile(profile_memory=True) as found:
        step(model, optimizer)
    events = [e for e in found.memory_events() if e.device.startswith(DEVICE.replace("strict", ""))]
    assert events[-1].total_bytes == events[0].total_bytes
    peak = max([event.total_bytes for event in events])
    assert peak > events[0].total_bytes + 4 * 8 * 36 * 4  # the activations of the convolution
    lines = {event.where for event in events}
    assert any([line.endswith("(gradient)") for line in lines])


def test_no_warning_and_nothing_left_after_a_training_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profiled(profile_memory=True, with_stack=True)
    assert nothing_is_watched()
