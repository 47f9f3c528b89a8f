"""The loop of Accelerate: prepare, accumulate, clip, gather, save and load, precision."""

import json
import subprocess
from pathlib import Path

import torch
from accelerate import Accelerator, DataLoaderConfiguration, ProfileKwargs, skip_first_batches
from accelerate.state import AcceleratorState, GradientState
from accelerate.utils import (
    ProjectConfiguration,
    broadcast_object_list,
    find_batch_size,
    find_executable_batch_size,
    gather_object,
    pad_across_processes,
    recursively_apply,
    release_memory,
    send_to_device,
    set_seed,
)
from steps import python, step
from torch.utils.data import DataLoader, TensorDataset


def reset():
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def parts(batch=4):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    x = torch.randn(32, 4)
    data = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=batch, shuffle=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 / (1 + n))
    return net, optimizer, data, schedule


def trained(accelerator, net, optimizer, data, schedule, clip=1.0, epochs=2):
    losses, norms = [], []
    for _ in range(epochs):
        for x, y in data:
            with accelerator.accumulate(net):
                loss = torch.nn.functional.cross_entropy(net(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norms.append(float(accelerator.clip_grad_norm_(net.parameters(), clip)))
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.item())
    return losses, norms


@step("prepare, backward, clip, a schedule")
def _():
    reset()
    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(*parts())
    found = trained(accelerator, *prepared)
    net = accelerator.unwrap_model(prepared[0])
    return found, net[0].weight, prepared[3].get_last_lr(), type(prepared[1]).__name__


@step("gradient accumulation over 3 batches")
def _():
    reset()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    prepared = accelerator.prepare(*parts())
    return trained(accelerator, *prepared), prepared[0][0].weight


for precision in ("no", "bf16", "fp16"):

    @step(f"mixed precision: {precision}", precision)
    def _(precision):
        reset()
        accelerator = Accelerator(cpu=True, mixed_precision=precision)
        net, optimizer, data, schedule = accelerator.prepare(*parts())
        x, y = next(iter(data))
        with accelerator.autocast():
            dtype = str((x @ x.T).dtype)
        losses, _ = trained(accelerator, net, optimizer, data, schedule, epochs=1)
        return dtype, [round(each, 2) for each in losses[:2]], net(x).dtype


@step("save_state and load_state, rotation of checkpoints, skipped batches")
def _():
    reset()
    project = ProjectConfiguration("project", automatic_checkpoint_naming=True, total_limit=2)
    accelerator = Accelerator(cpu=True, project_config=project)
    prepared = accelerator.prepare(*parts())
    for _ in range(3):
        trained(accelerator, *prepared, epochs=1)
        accelerator.save_state()
    after = trained(accelerator, *prepared, epochs=1)
    accelerator.load_state("project/checkpoints/checkpoint_2")
    again = trained(accelerator, *prepared, epochs=1)
    names = sorted(each.name for each in Path("project/checkpoints").iterdir())
    files = sorted(each.name for each in Path("project/checkpoints/checkpoint_2").iterdir())
    rest = [y for _, y in skip_first_batches(prepared[2], 6)]
    return after, again, names, files, rest


@step("save_model in shards, load_checkpoint_in_model")
def _():
    from accelerate import load_checkpoint_in_model

    reset()
    accelerator = Accelerator(cpu=True)
    net, *_ = accelerator.prepare(*parts())
    accelerator.save_model(net, "saved", max_shard_size="1KB")
    other = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    load_checkpoint_in_model(other, "saved")
    accelerator.save_model(net, "pickled", safe_serialization=False)
    names = sorted(each.name for folder in ("saved", "pickled") for each in Path(folder).iterdir())
    return names, other(torch.ones(1, 4)), accelerator.get_state_dict(net)


@step("objects with a state of their own, hooks of saving")
def _():
    class Counter:
        def __init__(self):
            self.count = 0

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    reset()
    accelerator = Accelerator(cpu=True)
    net, *_ = accelerator.prepare(*parts())
    counter, seen = Counter(), []
    accelerator.register_for_checkpointing(counter)
    accelerator.register_save_state_pre_hook(
        lambda models, weights, path: seen.append(len(weights))
    )
    accelerator.register_load_state_pre_hook(lambda models, path: seen.append(path))
    counter.count = 7
    accelerator.save_state("state")
    counter.count = 0
    accelerator.load_state("state")
    return counter.count, seen


@step("trackers: TensorBoard and one of one's own")
def _():
    from accelerate.tracking import GeneralTracker, on_main_process
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    class Mine(GeneralTracker):
        name, requires_logging_directory = "mine", False

        def __init__(self):
            super().__init__()
            self.found = []

        @property
        def tracker(self):
            return self.found

        @on_main_process
        def store_init_configuration(self, values):
            self.found.append(values)

        @on_main_process
        def log(self, values, step=None, **kwargs):
            self.found.append((step, values))

    reset()
    mine = Mine()
    accelerator = Accelerator(cpu=True, log_with=["tensorboard", mine], project_dir="logs")
    accelerator.init_trackers("run", config={"lr": 0.1})
    for count in range(3):
        accelerator.log({"loss": 1 / (count + 1)}, step=count)
    accelerator.end_training()
    events = EventAccumulator(str(Path("logs/run")))
    events.Reload()
    return mine.found, [each.value for each in events.Scalars("loss")]


@step("find_executable_batch_size halves after memory errors")
def _():
    tried = []

    @find_executable_batch_size(starting_batch_size=16)
    def run(batch_size):
        tried.append(batch_size)
        if batch_size > 4:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return batch_size

    return run(), tried


@step("collectives and helpers in one process")
def _():
    reset()
    accelerator = Accelerator(cpu=True)
    x = torch.arange(6.0).reshape(2, 3)
    set_seed(5)
    found = [
        accelerator.gather(x),
        accelerator.reduce(x, "mean"),
        accelerator.gather_for_metrics((x, x + 1)),
        pad_across_processes(x),
        gather_object([1, 2]),
        broadcast_object_list(["a"]),
        find_batch_size({"a": [x]}),
        recursively_apply(lambda t: t * 2, {"a": (x, [x])}),
        send_to_device({"a": x}, "cpu"),
        torch.rand(2),
    ]
    a, b = release_memory(x, x)
    return (
        found,
        a,
        b,
        accelerator.num_processes,
        accelerator.is_main_process,
        str(accelerator.device),
    )


@step("join_uneven_inputs, no_sync, trigger, local_sgd")
def _():
    from accelerate.local_sgd import LocalSGD

    reset()
    accelerator = Accelerator(cpu=True)
    net, optimizer, data, schedule = accelerator.prepare(*parts())
    with accelerator.no_sync(net), accelerator.join_uneven_inputs([net]):
        x, y = next(iter(data))
        accelerator.backward(net(x).sum())
    accelerator.set_trigger()
    with LocalSGD(accelerator=accelerator, model=net, local_sgd_steps=4, enabled=True) as local:
        optimizer.step()
        local.step()
    return net[0].weight, accelerator.check_trigger(), accelerator.check_trigger()


@step("dataloaders: dispatched, seedable sampler, stateful skipping, an iterable")
def _():
    class Numbers(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(torch.arange(10.0))

    reset()
    config = DataLoaderConfiguration(
        use_seedable_sampler=True, dispatch_batches=False, split_batches=True
    )
    accelerator = Accelerator(cpu=True, dataloader_config=config)
    set_seed(1)
    data = accelerator.prepare(parts()[2])
    epochs = [[y.tolist() for _, y in data] for _ in range(2)]
    data.set_epoch(7)
    epochs.append([y.tolist() for _, y in data])
    numbers = accelerator.prepare(DataLoader(Numbers(), batch_size=4))
    return epochs, list(numbers), len(data), data.total_batch_size


@step("profile")
def _():
    reset()
    accelerator = Accelerator(cpu=True, kwargs_handlers=[ProfileKwargs(activities=["cpu"])])
    net, *_ = accelerator.prepare(*parts())
    with accelerator.profile() as profiler:
        net(torch.ones(2, 4))
    return "aten::addmm" in {each.key for each in profiler.key_averages()}


@step("torch.compile as a dynamo plugin: eager")
def _():
    reset()
    accelerator = Accelerator(cpu=True, dynamo_backend="eager")
    prepared = accelerator.prepare(*parts())
    found = trained(accelerator, *prepared, epochs=1)
    net = accelerator.unwrap_model(prepared[0], keep_torch_compile=False)
    return found, sorted(net.state_dict())


PROGRAM = """
import json, sys, torch
from accelerate import Accelerator
from accelerate.utils import gather_object, set_seed, broadcast, reduce
from torch.utils.data import DataLoader, TensorDataset
set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
x = torch.randn(38, 4)
data = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=4, shuffle=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.9)
net, optimizer, data = accelerator.prepare(net, optimizer, data)
losses = []
for epoch in range(2):
    for a, b in data:
        with accelerator.accumulate(net):
            loss = torch.nn.functional.cross_entropy(net(a), b)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach()).tolist())
counted = sum(len(accelerator.gather_for_metrics(b)) for _, b in data)
with accelerator.split_between_processes(list(range(5))) as mine:
    shares = gather_object([mine])
uneven = accelerator.pad_across_processes(torch.ones(accelerator.process_index + 1), dim=0)
total = accelerator.reduce(torch.tensor(float(accelerator.process_index + 1)), "sum")
with accelerator.main_process_first():
    pass
accelerator.save_state("two")
accelerator.wait_for_everyone()
accelerator.load_state("two")
if accelerator.is_main_process:
    weight = accelerator.unwrap_model(net)[0].weight
    found = [losses, counted, shares, uneven.tolist(), total.item(), weight.tolist()]
    open("found.json", "w").write(json.dumps(found + [type(net).__name__]))
accelerator.end_training()
"""


@step("two processes by torch.distributed.run: losses, weights, gathered, uneven")
def _():
    Path("two.py").write_text(PROGRAM)
    launch = [
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        "29631",
        "two.py",
    ]
    subprocess.run([*python(), *launch], check=True)
    return json.loads(Path("found.json").read_text())


@step("accelerate launch of two processes")
def _():
    Path("two.py").write_text(PROGRAM)
    options = ["--cpu", "--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no"]
    more = ["--dynamo_backend", "no", "--main_process_port", "29641", "two.py"]
    launch = ["-m", "accelerate.commands.launch", *options, *more]
    subprocess.run([*python(), *launch], check=True)
    return json.loads(Path("found.json").read_text())


LAUNCHED = """
import torch
from accelerate import Accelerator, debug_launcher, notebook_launcher

def work(scale):
    accelerator = Accelerator(cpu=True)
    total = accelerator.reduce(torch.tensor([scale * (accelerator.process_index + 1)]))
    if accelerator.is_main_process:
        with open("launched.txt", "a") as file:
            file.write(f"{accelerator.num_processes} {total.item()} ")

if __name__ == "__main__":
    debug_launcher(work, args=(2.0,), num_processes=2)
    notebook_launcher(work, args=(3.0,), num_processes=1)
"""


@step("debug_launcher and notebook_launcher")
def _():
    Path("launched.py").write_text(LAUNCHED)
    subprocess.run([*python(), "launched.py"], check=True)
    return Path("launched.txt").read_text()


FSDP = """
import json, torch
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
set_seed(0)
plugin = FullyShardedDataParallelPlugin(
    fsdp_version=2,
    reshard_after_forward=True,
    cpu_ram_efficient_loading=False,
    auto_wrap_policy="no_wrap",
)
accelerator = Accelerator(cpu=True, fsdp_plugin=plugin)
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
x = torch.randn(32, 4)
data = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=4)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.02)
net, optimizer, data = accelerator.prepare(net, optimizer, data)
losses = []
for a, b in data:
    loss = torch.nn.functional.cross_entropy(net(a), b)
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach()).tolist())
state = accelerator.get_state_dict(net)
if accelerator.is_main_process:
    open("fsdp.json", "w").write(json.dumps([losses, state["0.weight"].tolist()]))
accelerator.end_training()
"""


@step("FSDP2 of two processes on the CPU")
def _():
    Path("sharded.py").write_text(FSDP)
    launch = [
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        "29651",
        "sharded.py",
    ]
    environment = {"ACCELERATE_USE_FSDP": "true"}
    import os

    subprocess.run([*python(), *launch], check=True, env={**os.environ, **environment})
    return json.loads(Path("fsdp.json").read_text())


@step("refused: an unknown precision", refused=True)
def _():
    reset()
    Accelerator(cpu=True, mixed_precision="fp12")


@step("refused: a state that is not there", refused=True)
def _():
    reset()
    accelerator = Accelerator(cpu=True)
    accelerator.prepare(*parts())
    accelerator.load_state("./nowhere")


@step("refused: a checkpoint of a wider model", refused=True)
def _():
    from accelerate import load_checkpoint_in_model

    reset()
    torch.save({"weight": torch.ones(3, 5), "bias": torch.ones(3)}, "wide.pt")
    load_checkpoint_in_model(torch.nn.Linear(4, 3), "wide.pt")


@step("refused: backward of a loss without gradients", refused=True)
def _():
    reset()
    Accelerator(cpu=True).backward(torch.ones(()))
