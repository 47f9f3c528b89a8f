"""Exported programs: made, run, saved, and loaded without the model."""

import torch
import transformers
from steps import step
from transformers.exporters import DynamoConfig, DynamoExporter

transformers.logging.set_verbosity_error()
SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.2,
}
INPUTS = {
    "input_ids": torch.arange(10).reshape(2, 5),
    "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
}
LONGER = {name: torch.cat([value, value], 1) for name, value in INPUTS.items()}


def model(kind):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **SIZES)
    make = transformers.AutoModelForCausalLM if kind != "bert" else transformers.AutoModel
    return make.from_config(config).eval()


for kind in ("bert", "llama", "gpt_neox"):

    @step(f"{kind}: an exported program", kind)
    def _(kind):
        return DynamoExporter().export(model(kind), INPUTS, DynamoConfig())(**INPUTS)[0]


@step("a program of any length")
def _():
    shapes = {name: {1: torch.export.Dim("length")} for name in INPUTS}
    config = DynamoConfig(dynamic=True, dynamic_shapes=shapes)
    exported = DynamoExporter().export(model("llama"), INPUTS, config)
    return exported(**INPUTS)[0], exported(**LONGER)[0]


@step("a program in a folder")
def _():
    DynamoExporter().export(model("llama"), INPUTS, DynamoConfig()).save_pretrained("program")
    return torch.export.load("program/model.pt2").module()(**INPUTS)[0]


@step("the parts of a generation")
def _():
    exported = DynamoExporter().export_for_generation(model("llama"), INPUTS, DynamoConfig())
    return list(exported.components)


@step("refused: inputs that the model does not take", refused=True)
def _():
    DynamoExporter().export(model("bert"), {"tokens": INPUTS["input_ids"]}, DynamoConfig())
