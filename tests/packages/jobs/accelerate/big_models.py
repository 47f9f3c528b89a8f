"""Models larger than memory: empty weights, device maps, offloading to the CPU and to disk."""

from pathlib import Path

import torch
from accelerate import (
    Accelerator,
    cpu_offload,
    cpu_offload_with_hook,
    disk_offload,
    dispatch_model,
    infer_auto_device_map,
    init_empty_weights,
    init_on_device,
    load_checkpoint_and_dispatch,
    load_checkpoint_in_model,
)
from accelerate.hooks import (
    AlignDevicesHook,
    ModelHook,
    SequentialHook,
    add_hook_to_module,
    attach_align_device_hook,
    remove_hook_from_module,
)
from accelerate.utils import (
    OffloadedWeightsLoader,
    align_module_device,
    compute_module_sizes,
    extract_model_from_parallel,
    find_tied_parameters,
    get_balanced_memory,
    get_max_layer_size,
    load_offloaded_weights,
    named_module_tensors,
    offload_state_dict,
    retie_parameters,
    set_module_tensor_to_device,
)
from steps import step


class Net(torch.nn.Module):
    _no_split_modules = ["Block"]

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(11, 8)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 11, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        return x + self.scale * self.two(torch.relu(self.one(x)))


IDS = torch.arange(6).reshape(2, 3)
torch.manual_seed(0)
torch.save(Net().state_dict(), "net.pt")
Accelerator(cpu=True).save_model(Net(), "shards", max_shard_size="1KB")


def net():
    model = Net()
    model.load_state_dict(torch.load("net.pt"))
    return model.eval()


@step("init_empty_weights and init_on_device")
def _():
    with init_empty_weights(include_buffers=True):
        model = Net()
    with init_on_device(torch.device("meta")):
        other = Net()
    found = [str(p.device) for p in (*model.parameters(), *model.buffers(), *other.parameters())]
    with init_empty_weights():
        third = Net()
    return found, str(third.blocks[0].scale.device), torch.rand(1)


@step("sizes, tied parameters, balanced memory")
def _():
    model = Net()
    model.head.weight = model.embed.weight
    tied = find_tied_parameters(model)
    sizes = compute_module_sizes(model)
    layer = get_max_layer_size(list(model.named_children()), compute_module_sizes(model), ["Block"])
    balanced = get_balanced_memory(model, max_memory={0: 4000, 1: 4000, "cpu": 10000})
    copy = Net()
    retie_parameters(copy, tied)
    return tied, sizes, layer, balanced, copy.head.weight is copy.embed.weight


@step("infer_auto_device_map by budgets")
def _():
    with init_empty_weights():
        model = Net()
    maps = [
        infer_auto_device_map(model, max_memory=budget, no_split_module_classes=["Block"])
        for budget in (
            {"cpu": 10**6},
            {"cpu": 2500, "disk": 10**6},
            {0: 2000, 1: 2000, "cpu": 10**6},
            {0: 1500, "cpu": 1500, "disk": 10**6},
        )
    ]
    half = infer_auto_device_map(
        model, {0: 2000, "cpu": 10**6}, no_split_module_classes=["Block"], dtype=torch.float16
    )
    return maps, half


@step("load_checkpoint_and_dispatch: all to the CPU, gradients")
def _():
    with init_empty_weights():
        model = Net()
    model = load_checkpoint_and_dispatch(model, "net.pt", device_map={"": "cpu"})
    out = model(IDS)
    out.square().sum().backward()
    return (
        out,
        model.embed.weight.grad,
        model.hf_device_map if hasattr(model, "hf_device_map") else None,
    )


MIXED = {
    "embed": "cpu",
    "blocks.0": "cpu",
    "blocks.1": "disk",
    "blocks.2": "disk",
    "norm": "cpu",
    "head": "disk",
}


@step("load_checkpoint_and_dispatch: between the CPU and the disk")
def _():
    with init_empty_weights():
        model = Net()
    model = load_checkpoint_and_dispatch(
        model, "shards", device_map=MIXED, offload_folder="offload", offload_buffers=True
    )
    with torch.no_grad():
        found = model(IDS), model(IDS)
    names = sorted(each.name for each in Path("offload").iterdir())
    return found, [str(p.device) for p in model.parameters()], names, model.hf_device_map


@step("dispatch_model of a loaded model: a mixed map, with state_dict")
def _():
    model = net()
    before = model(IDS)
    model = dispatch_model(model, MIXED, offload_dir="dispatched", main_device="cpu")
    with torch.no_grad():
        return before, model(IDS), sorted(model.state_dict())


@step("dispatch_model with dtype bfloat16 on disk")
def _():
    model = net().to(torch.bfloat16)
    before = model(IDS)
    model = dispatch_model(model, MIXED, offload_dir="bf16", main_device="cpu")
    with torch.no_grad():
        return before, model(IDS)


@step("cpu_offload and disk_offload")
def _():
    model = net()
    before = model(IDS)
    cpu_offload(model, execution_device="cpu")
    devices = [str(p.device) for p in model.parameters()]
    other = net()
    disk_offload(other, "disk", execution_device="cpu")
    with torch.no_grad():
        return before, model(IDS), other(IDS), devices, [str(p.device) for p in other.parameters()]


@step("cpu_offload_with_hook, align_module_device")
def _():
    first, hook = cpu_offload_with_hook(net(), execution_device="cpu")
    out = first(IDS)
    hook.offload()
    hook.remove()
    model = net()
    cpu_offload(model, execution_device="cpu")
    with align_module_device(model.norm, "cpu"):
        inside = str(model.norm.weight.device), model.norm.weight.sum()
    return out, inside, str(model.norm.weight.device)


@step("hooks: before and after a forward, in sequence, removed")
def _():
    class Add(ModelHook):
        def pre_forward(self, module, x):
            return (x + 1,), {}

        def post_forward(self, module, output):
            return output * 2

    layer = torch.nn.Linear(3, 3)
    x = torch.randn(2, 3)
    found = [layer(x)]
    add_hook_to_module(layer, Add())
    found.append(layer(x))
    add_hook_to_module(layer, SequentialHook(Add(), Add()))
    found.append(layer(x))
    remove_hook_from_module(layer)
    found.append(layer(x))
    add_hook_to_module(layer, AlignDevicesHook(execution_device="cpu", offload=True))
    found += [str(layer.weight.device), layer(x), str(layer.weight.device)]
    remove_hook_from_module(layer)
    return found, str(layer.weight.device)


@step("attach_align_device_hook with offloaded buffers, named_module_tensors")
def _():
    model = net()
    names = [name for name, _ in named_module_tensors(model, recurse=True)]
    state = model.state_dict()
    attach_align_device_hook(
        model, execution_device="cpu", offload=True, weights_map=state, offload_buffers=True
    )
    with torch.no_grad():
        return names, model(IDS), str(model.blocks[0].scale.device)


@step("offload_state_dict, load_offloaded_weights, OffloadedWeightsLoader")
def _():
    state = net().state_dict() | {
        "half": torch.ones(3, dtype=torch.bfloat16),
        "one": torch.tensor(2.5),
    }
    offload_state_dict("index", state)
    loader = OffloadedWeightsLoader(save_folder="index")
    found = {key: loader[key] for key in sorted(loader)}
    model = Net()
    import json

    index = json.loads(Path("index/index.json").read_text())
    load_offloaded_weights(model, {key: index[key] for key in model.state_dict()}, "index")
    return found, model(IDS)


@step("set_module_tensor_to_device: to meta, back, in another dtype")
def _():
    layer = torch.nn.Linear(2, 2)
    weight = layer.weight.detach().clone()
    set_module_tensor_to_device(layer, "weight", "meta")
    device = str(layer.weight.device)
    set_module_tensor_to_device(layer, "weight", "cpu", value=weight, dtype=torch.float16)
    return device, layer.weight, layer.weight.requires_grad, type(layer.weight).__name__


@step("load_checkpoint_in_model: shards, dtype, strictness")
def _():
    model = Net()
    load_checkpoint_in_model(model, "shards", dtype=torch.float64)
    return model(IDS), extract_model_from_parallel(model) is model


@step("a forward on meta")
def _():
    with init_empty_weights():
        model = Net()
    return str(model(IDS.to("meta")).shape)


@step("refused: offload without a folder", refused=True)
def _():
    dispatch_model(net(), MIXED, main_device="cpu")


@step("refused: a map that leaves parameters out", refused=True)
def _():
    dispatch_model(net(), {"embed": "cpu"})


@step("refused: a value of another shape", refused=True)
def _():
    set_module_tensor_to_device(torch.nn.Linear(2, 2), "weight", "cpu", value=torch.ones(3, 2))


@step("refused: out of meta without a value", refused=True)
def _():
    with init_empty_weights():
        layer = torch.nn.Linear(2, 2)
    set_module_tensor_to_device(layer, "weight", "cpu")


@step("refused: .to('cpu') of empty weights", refused=True)
def _():
    with init_empty_weights():
        layer = torch.nn.Linear(2, 2)
    layer.to("cpu")


@step("refused: a forward of empty weights with real input", refused=True)
def _():
    with init_empty_weights():
        layer = torch.nn.Linear(2, 2)
    layer(torch.ones(1, 2))


@step("refused: a checkpoint that is not there", refused=True)
def _():
    load_checkpoint_in_model(Net(), "nothing.pt")


@step("refused: a module of no such name", refused=True)
def _():
    set_module_tensor_to_device(
        torch.nn.Linear(2, 2), "other.weight", "cpu", value=torch.ones(2, 2)
    )


@step("refused: a dispatched model moved", refused=True)
def _():
    dispatch_model(net(), MIXED, offload_dir="moved", main_device="cpu").to("cpu")
