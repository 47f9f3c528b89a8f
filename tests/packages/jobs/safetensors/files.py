"""Files of safetensors: tensors of every dtype, slices, models, bad files."""

import json
from pathlib import Path

import safetensors
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from steps import step

DTYPES = """
    float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 uint16 uint32 uint64 bool
    complex64 float8_e4m3fn float8_e5m2
""".split()


for name in DTYPES:

    @step(f"{name}: saved, loaded, its bytes", name)
    def _(name):
        dtype = getattr(torch, name)
        saved = torch.tensor([[0.0, 1.0, 2.0], [3.0, 5.0, 7.0]]).to(dtype)
        save_file({"x": saved}, name, metadata={"of": name})
        found = load_file(name)["x"]
        with safe_open(name, "pt") as file:
            told = file.metadata(), file.get_slice("x").get_dtype(), list(file.keys())
        text = Path(name).read_bytes()
        wide = torch.complex64 if dtype.is_complex else torch.float64
        return str(found.dtype), found.to(wide), told, text[:16].hex(), list(text[-24:])


@step("no dimensions, no elements, views")
def _():
    base = torch.arange(12.0).view(3, 4)
    saved = {"scalar": torch.tensor(2.5), "empty": torch.ones(0, 3), "turned": base.T.contiguous()}
    return dict(sorted(load(save(saved)).items()))  # bytes keep no order


@step("slices of a file")
def _():
    save_file({"x": torch.arange(60.0).view(3, 4, 5), "y": torch.ones(2)}, "slices")
    with safe_open("slices", framework="pt", device="cpu") as file:
        part = file.get_slice("x")
        return (
            list(file.keys()),
            part.get_shape(),
            part[1:],
            part[:, ::1, 2:4],
            part[0],
            file.get_tensor("y"),
        )


def model(tied):
    made = torch.nn.Sequential(
        torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5)
    )
    if tied:
        made[1].weight = made[0].weight
    return made


for tied in (False, True):

    @step(f"save_model and load_model, tied weights {tied}", tied)
    def _(tied):
        saved, other = model(tied), model(tied)
        save_model(saved, "model")
        missing = load_model(other, "model")
        return missing, other.state_dict(), sorted(load_file("model"))


@step("loaded tensors are trained, and saved from an optimizer's state")
def _():
    weight = load_file("float32")["x"].requires_grad_()
    optimizer = torch.optim.Adam([weight], 0.1)
    weight.square().sum().backward()
    optimizer.step()
    state = optimizer.state_dict()["state"][0]
    save_file({name: value.detach() for name, value in state.items()}, "state")
    return weight, load_file("state")


@step("the same file by NumPy's functions")
def _():
    from safetensors.numpy import load_file as arrays

    return arrays("slices")


@step("tensors that share memory", refused=True)
def _():
    x = torch.ones(4)
    save_file({"x": x, "y": x[:2]}, "shared")


@step("a tensor that is not contiguous", refused=True)
def _():
    save_file({"x": torch.ones(2, 3).T}, "strided")


@step("a sparse tensor", refused=True)
def _():
    save_file({"x": torch.eye(3).to_sparse()}, "sparse")


@step("what is no tensor", refused=True)
def _():
    save_file({"x": [1.0, 2.0]}, "list")


@step("a file that is cut off", refused=True)
def _():
    Path("cut").write_bytes(Path("slices").read_bytes()[:-8])
    load_file("cut")


@step("an offset that leads out of the file", refused=True)
def _():
    header = json.dumps({"x": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}).encode()
    load(len(header).to_bytes(8, "little") + header + b"\0" * 8)


@step("a header that is no JSON", refused=True)
def _():
    load((4).to_bytes(8, "little") + b"junk")


@step("a dtype that there is not", refused=True)
def _():
    header = json.dumps({"x": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}).encode()
    load(len(header).to_bytes(8, "little") + header + b"\0" * 4)


@step("a name that is not in the file", refused=True)
def _():
    with safe_open("slices", "pt") as file:
        file.get_tensor("z")


@step("a model of another shape", refused=True)
def _():
    load_model(torch.nn.Linear(3, 3), "model")


@step("a model with other names", refused=True)
def _():
    save_model(torch.nn.Linear(2, 2), "linear")
    load_model(torch.nn.Sequential(torch.nn.Linear(2, 2)), "linear")


@step("the version and the type of its errors")
def _():
    return safetensors.__version__, safetensors.SafetensorError.__mro__[1].__name__
