"""QLoRA on the CPU: bitsandbytes' 4-bit and 8-bit layers under LoRA."""

import torch
from peft import LoraConfig, PeftModel, get_peft_model, prepare_model_for_kbit_training
from steps import step
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

IDS = torch.arange(24).reshape(2, 12) * 7 % 61
torch.manual_seed(0)
LlamaForCausalLM(
    LlamaConfig(
        vocab_size=61,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
).save_pretrained("base")

KINDS = {
    "nf4": {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_compute_dtype": torch.float32,
    },
    "nf4, double quantization": {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": torch.float32,
    },
    "fp4": {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "fp4",
        "bnb_4bit_compute_dtype": torch.float32,
    },
    "int8": {"load_in_8bit": True},
}


def quantized(options):
    return LlamaForCausalLM.from_pretrained(
        "base",
        quantization_config=BitsAndBytesConfig(**options),
        dtype=torch.float32,
        device_map="cpu",
    )


def trained(model, steps=3):
    # Adam would turn the rounding errors of tiny gradients into whole steps
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.5)
    losses = []
    for _ in range(steps):
        loss = model(input_ids=IDS, labels=IDS).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def outputs(model):
    """The logits; with 8 bits the loss, for activations are rounded to 255 levels there: what
    rounds a last bit otherwise changes single logits by a thousandth under PyTorch, too."""
    with torch.no_grad():
        found = model(input_ids=IDS, labels=IDS)
    return found.loss if getattr(model, "is_loaded_in_8bit", False) else found.logits


def gradients(model):
    """What training left; with 8 bits nothing, see `outputs`."""
    if getattr(model, "is_loaded_in_8bit", False):
        return []
    return [p.grad for p in model.parameters() if p.grad is not None]


for name, options in KINDS.items():

    @step(f"{name}: from_pretrained, logits, memory", options)
    def _(options):
        model = quantized(options).eval()
        found = outputs(model)
        kinds = sorted({type(m).__name__ for m in model.modules() if not list(m.children())})
        weights = [p.data for p in model.parameters()]
        return found, kinds, weights, model.get_memory_footprint(), model.is_quantized

    @step(f"{name}: prepare_model_for_kbit_training, LoRA, saved and loaded", options)
    def _(options):
        model = prepare_model_for_kbit_training(quantized(options), use_gradient_checkpointing=True)
        config = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
        model = get_peft_model(model, config)
        losses = trained(model)
        model.save_pretrained("adapter")
        again = PeftModel.from_pretrained(quantized(options), "adapter").eval()
        # The layers of 4 bits round their results to two bytes: what training rounds otherwise in
        # a last bit changes single logits by a thousandth under PyTorch, too, but not the loss.
        with torch.no_grad():
            loss = again(input_ids=IDS, labels=IDS).loss
        return losses, gradients(model), loss, (outputs(model.eval()) - outputs(again)).abs().max()

    @step(f"{name}: merged into the quantized weights", options)
    def _(options):
        config = LoraConfig(r=4, target_modules=["q_proj"], init_lora_weights=False)
        model = get_peft_model(quantized(options), config).eval()
        return outputs(model.merge_and_unload())

    @step(f"{name}: generation", options)
    def _(options):
        model = quantized(options).eval()
        return model.generate(
            input_ids=IDS[:, :4], max_new_tokens=5, do_sample=False, pad_token_id=0
        )


@step("a quantized model saved and loaded")
def _():
    model = quantized(KINDS["nf4"]).eval()
    model.save_pretrained("quantized")
    again = LlamaForCausalLM.from_pretrained("quantized", device_map="cpu").eval()
    with torch.no_grad():
        return model(input_ids=IDS).logits, again(input_ids=IDS).logits


@step("dequantize")
def _():
    model = quantized(KINDS["nf4"]).dequantize().eval()
    with torch.no_grad():
        return model(input_ids=IDS).logits, model.model.layers[0].self_attn.q_proj.weight


@step("DoRA on 4-bit weights")
def _():
    model = prepare_model_for_kbit_training(quantized(KINDS["nf4"]))
    model = get_peft_model(model, LoraConfig(r=4, use_dora=True, target_modules=["q_proj"]))
    return trained(model)


@step("refused: both 4 and 8 bits", refused=True)
def _():
    BitsAndBytesConfig(load_in_4bit=True, load_in_8bit=True)


@step("refused: .to(dtype) of a quantized model", refused=True)
def _():
    quantized(KINDS["nf4"]).to(torch.float16)


@step("refused: training without an adapter", refused=True)
def _():
    from transformers import Trainer, TrainingArguments

    Trainer(quantized(KINDS["nf4"]), TrainingArguments("out", use_cpu=True, report_to=[]))
