"""Loading and saving models: files, dtypes, devices, heads, and bad files."""

import json
import shutil
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from steps import step
from transformers import AutoModelForCausalLM

transformers.logging.set_verbosity_error()
SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
TOKENS = torch.tensor([[5, 9, 33, 71, 9], [8, 20, 64, 3, 90]])
torch.manual_seed(0)
ORIGINAL = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()
ORIGINAL.save_pretrained("model")


def logits(model):
    with torch.no_grad():
        return model.eval()(TOKENS).logits


def copied(name):
    shutil.copytree("model", name)
    return Path(name)


@step("one file of safetensors")
def _():
    model, told = AutoModelForCausalLM.from_pretrained("model", output_loading_info=True)
    return logits(model), {key: sorted(map(str, value)) for key, value in told.items()}


@step("several files and their index")
def _():
    ORIGINAL.save_pretrained("sharded", max_shard_size="20KB")
    index = json.loads(Path("sharded/model.safetensors.index.json").read_text())
    return index, logits(AutoModelForCausalLM.from_pretrained("sharded"))


@step("pytorch_model.bin, and several of them")
def _():
    state = ORIGINAL.state_dict()
    folder = copied("bin")
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    one = logits(AutoModelForCausalLM.from_pretrained("bin"))
    folder = copied("bins")
    (folder / "model.safetensors").unlink()
    names = list(state)
    halves = {
        "pytorch_model-00001-of-00002.bin": names[::2],
        "pytorch_model-00002-of-00002.bin": names[1::2],
    }
    for file, part in halves.items():
        torch.save({name: state[name] for name in part}, folder / file)
    where = {name: file for file, part in halves.items() for name in part}
    index = {"metadata": {"total_size": 1}, "weight_map": where}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return one, logits(AutoModelForCausalLM.from_pretrained("bins"))


for dtype in ("auto", "float32", "bfloat16", "float16", "float64"):

    @step(f"dtype {dtype}: weights and tokens", dtype)
    def _(dtype):
        model = AutoModelForCausalLM.from_pretrained("model", dtype=dtype).eval()
        written = model.generate(TOKENS, max_new_tokens=3, do_sample=False)
        return model.dtype, model.lm_head.weight, logits(model).norm().item() // 0.2, written


@step("saved as bfloat16, loaded as it was saved")
def _():
    ORIGINAL.to(torch.bfloat16).save_pretrained("halves")
    ORIGINAL.load_state_dict(load_file("model/model.safetensors"), strict=False)
    ORIGINAL.to(torch.float32).load_state_dict(load_file("model/model.safetensors"), strict=False)
    model = AutoModelForCausalLM.from_pretrained("halves", dtype="auto")
    return model.dtype, model.lm_head.weight, load_file("halves/model.safetensors")


for devices in (
    "auto",
    "cpu",
    {"": "cpu"},
    {"model.embed_tokens": "cpu", "model": "cpu", "lm_head": "cpu"},
):

    @step(f"device_map {devices}", devices)
    def _(devices):
        model = AutoModelForCausalLM.from_pretrained("model", device_map=devices)
        return {k: str(v) for k, v in getattr(model, "hf_device_map", {}).items()}, logits(model)


@step("layers kept on the disk")
def _():
    places = {"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk"}
    places |= {"model.norm": "cpu", "model.rotary_emb": "cpu", "lm_head": "cpu"}
    model = AutoModelForCausalLM.from_pretrained("model", device_map=places, offload_folder="disk")
    return logits(model), str(model.model.layers[1].mlp.up_proj.weight.device)


for kind in ("eager", "sdpa", "flex_attention"):

    @step(f"attn_implementation {kind}: logits, with padding", kind)
    def _(kind):
        model = AutoModelForCausalLM.from_pretrained("model", attn_implementation=kind).eval()
        mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
        with torch.no_grad():
            padded = model(TOKENS, attention_mask=mask).logits * mask[..., None]
            return logits(model), padded


@step("tied weights stay one tensor")
def _():
    config = transformers.LlamaConfig(**SIZES, tie_word_embeddings=True)
    transformers.LlamaForCausalLM(config).save_pretrained("tied")
    model = AutoModelForCausalLM.from_pretrained("tied")
    same = model.lm_head.weight is model.model.embed_tokens.weight
    model(TOKENS, labels=TOKENS).loss.backward()
    return same, sorted(load_file("tied/model.safetensors")), model.lm_head.weight.grad


@step("more and fewer tokens")
def _():
    model = AutoModelForCausalLM.from_pretrained("model")
    model.resize_token_embeddings(100)
    more = model.get_input_embeddings().weight.shape, model.lm_head.weight[-4:].norm()
    old = logits(model)[..., :96]
    model.resize_token_embeddings(100, pad_to_multiple_of=16)
    padded = tuple(model.lm_head.weight.shape)
    model.resize_token_embeddings(91)
    return list(more[0]), more[1].isfinite(), old, padded, logits(model)


@step("more tokens: the new ones' mean and covariance")
def _():
    model = AutoModelForCausalLM.from_pretrained("model")
    model.resize_token_embeddings(100, mean_resizing=True)
    new = model.get_input_embeddings().weight[96:]
    return (new - model.get_input_embeddings().weight[:96].mean(0)).abs().max() < 0.1


@step("another head on the same body, its beginning")
def _():
    kind = transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained("model", num_labels=3)
    return model.score.weight, logits(model)


@step("the body alone, and a head for tokens")
def _():
    body = transformers.AutoModel.from_pretrained("model").eval()
    tokens = transformers.LlamaForTokenClassification.from_pretrained("model", num_labels=2)
    return body(TOKENS).last_hidden_state, logits(tokens)


@step("from a state_dict, and from a configuration alone")
def _():
    state = load_file("model/model.safetensors")
    config = transformers.AutoConfig.from_pretrained("model")
    model = transformers.LlamaForCausalLM.from_pretrained(None, config=config, state_dict=state)
    return logits(model), logits(AutoModelForCausalLM.from_config(config))


@step("number of parameters, memory, buffers")
def _():
    model = AutoModelForCausalLM.from_pretrained("model")
    return model.num_parameters(), model.get_memory_footprint(), dict(model.named_buffers())


@step("half of the layers frozen")
def _():
    model = AutoModelForCausalLM.from_pretrained("model")
    model.model.layers[0].requires_grad_(False)
    model.enable_input_require_grads()
    model(TOKENS, labels=TOKENS).loss.backward()
    return {n: p.grad.norm() for n, p in model.named_parameters() if p.grad is not None}


@step("another architecture's checkpoint")
def _():
    folder = copied("gpt")
    config = transformers.GPT2Config(vocab_size=96, n_embd=32, n_layer=1, n_head=4)
    config.save_pretrained(folder)
    model, told = AutoModelForCausalLM.from_pretrained("gpt", output_loading_info=True)
    return {key: sorted(map(str, value)) for key, value in told.items()}


@step("another architecture's checkpoint for a class", refused=True)
def _():
    transformers.AutoModelForImageClassification.from_pretrained("model")


@step("a missing shard", refused=True)
def _():
    Path("sharded/model-00002-of-00004.safetensors").unlink(missing_ok=True)
    for each in sorted(Path("sharded").glob("model-00003*")):
        each.unlink()
    AutoModelForCausalLM.from_pretrained("sharded")


@step("a tensor of another shape", refused=True)
def _():
    state = load_file("model/model.safetensors")
    state["model.norm.weight"] = torch.ones(16)
    save_file(state, copied("shape") / "model.safetensors", metadata={"format": "pt"})
    AutoModelForCausalLM.from_pretrained("shape")


@step("a tensor of another shape, ignored")
def _():
    model, told = AutoModelForCausalLM.from_pretrained(
        "shape", ignore_mismatched_sizes=True, output_loading_info=True
    )
    return sorted(map(str, told["mismatched_keys"])), logits(model)


@step("a missing tensor, and one too many")
def _():
    state = load_file("model/model.safetensors")
    state["extra"] = state.pop("model.layers.1.mlp.up_proj.weight")
    save_file(state, copied("missing") / "model.safetensors", metadata={"format": "pt"})
    model, told = AutoModelForCausalLM.from_pretrained("missing", output_loading_info=True)
    return {key: sorted(map(str, value)) for key, value in told.items()}, logits(model)


@step("a file that is cut off", refused=True)
def _():
    file = copied("cut") / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    AutoModelForCausalLM.from_pretrained("cut")


@step("a file with a broken header", refused=True)
def _():
    file = copied("header") / "model.safetensors"
    file.write_bytes(b"\xff" * 8 + file.read_bytes()[8:])
    AutoModelForCausalLM.from_pretrained("header")


@step("an unknown dtype", refused=True)
def _():
    AutoModelForCausalLM.from_pretrained("model", dtype="float31")


@step("an integer dtype", refused=True)
def _():
    AutoModelForCausalLM.from_pretrained("model", dtype=torch.int8)


@step("an unknown attention", refused=True)
def _():
    AutoModelForCausalLM.from_pretrained("model", attn_implementation="nonsense")


@step("a folder without weights", refused=True)
def _():
    (copied("empty") / "model.safetensors").unlink()
    AutoModelForCausalLM.from_pretrained("empty")


@step("a folder that is not there", refused=True)
def _():
    AutoModelForCausalLM.from_pretrained("./nowhere")


@step("an unknown architecture", refused=True)
def _():
    folder = copied("unknown")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "lstm9"}))
    AutoModelForCausalLM.from_pretrained("unknown")
