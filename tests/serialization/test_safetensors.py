"""safetensors' own library works where `import torch` means this package, and files agree."""

from __future__ import annotations

import pytest
import torch

from tests.dropin.programs import printed

pytest.importorskip("safetensors", reason="safetensors is not installed")
NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64"
NAMES = [*NAMES.split(), "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]
PROGRAM = """
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

names = "{names}".split()
tensors = {{n: torch.arange(6).reshape(2, 3).to(getattr(torch, n)) for n in names}}
assert torch.__package__ == "tensorflow_lite_clone"
loaded = load_file("theirs.safetensors")
assert list(sorted(loaded)) == sorted(names)
for name, value in tensors.items():
    assert loaded[name].dtype == value.dtype and loaded[name].tolist() == value.tolist(), name
    loaded[name][0, 0] = 1  # memory of the tensor's own
save_file(tensors, "ours.safetensors", metadata={{"by": "us"}})
with safe_open("ours.safetensors", framework="pt") as file:
    assert file.metadata() == {{"by": "us"}}
    assert file.get_slice("float32")[:, 1:2].tolist() == [[1.0], [4.0]]
model, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
save_model(model, "model.safetensors")
load_model(other, "model.safetensors")
assert other.weight.tolist() == model.weight.tolist()
del tensors["float8_e8m0fnu"]  # whose name in bytes safetensors does not know
for name, value in load(save(tensors)).items():
    assert value.dtype == tensors[name].dtype and value.tolist() == tensors[name].tolist()
print("done")
"""


def test_files_of_both(tmp_path):
    from safetensors.torch import load_file, save_file

    def tensors():
        return {n: torch.arange(6).reshape(2, 3).to(getattr(torch, n)) for n in NAMES}

    save_file(tensors(), tmp_path / "theirs.safetensors")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(names=" ".join(NAMES)))
    assert printed(program, cwd=tmp_path) == "done\n"
    ours = load_file(tmp_path / "ours.safetensors")
    for name, value in tensors().items():
        assert ours[name].dtype == value.dtype and ours[name].tolist() == value.tolist()
