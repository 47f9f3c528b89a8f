"""LoRA of a small Llama: training, saving, loading, merging, several adapters, variants."""

import torch
from peft import (
    EvaConfig,
    LoraConfig,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    initialize_lora_eva_weights,
    set_peft_model_state_dict,
)
from steps import step
from transformers import LlamaConfig, LlamaForCausalLM

IDS = torch.arange(24).reshape(2, 12) * 7 % 61


def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config)


def trained(model, steps=4, lr=2e-2):
    """The losses of a few steps."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    losses = []
    for _ in range(steps):
        loss = model(input_ids=IDS, labels=IDS).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def logits(model):
    with torch.no_grad():
        return model.eval()(input_ids=IDS).logits


QV = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]}


@step("LoRA: parameters, losses of training, gradients, weights")
def _():
    model = get_peft_model(llama(), LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, **QV))
    losses = trained(model)
    grads = {n: p.grad for n, p in model.named_parameters() if p.requires_grad}
    return model.get_nb_trainable_parameters(), losses, grads, get_peft_model_state_dict(model)


@step("LoRA with dropout, bias='lora_only', gradient checkpointing")
def _():
    model = get_peft_model(llama(), LoraConfig(lora_dropout=0.3, bias="lora_only", **QV))
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable()
    return trained(model.train(), 2)


@step("save_pretrained, PeftModel.from_pretrained, go on training")
def _():
    model = get_peft_model(llama(), LoraConfig(**QV))
    trained(model)
    model.save_pretrained("lora")
    again = PeftModel.from_pretrained(llama(), "lora", is_trainable=True)
    before = logits(model), logits(again)
    return before, trained(again.train(), 2)


@step("merge_adapter and unmerge_adapter; merge_and_unload; unload")
def _():
    model = get_peft_model(llama(), LoraConfig(**QV))
    trained(model)
    found = [logits(model)]
    model.merge_adapter()
    weight = model.base_model.model.model.layers[0].self_attn.q_proj.weight
    found += [logits(model), weight.clone()]
    model.unmerge_adapter()
    found += [logits(model), weight.clone()]
    merged = model.merge_and_unload(safe_merge=True)
    merged.requires_grad_(True)
    loss = merged(input_ids=IDS, labels=IDS).loss
    loss.backward()
    return found, logits(merged), loss, merged.lm_head.weight.grad


@step("several adapters: set, disable, weighted, delete")
def _():
    model = get_peft_model(llama(), LoraConfig(**QV), adapter_name="one")
    trained(model)
    model.add_adapter("two", LoraConfig(**{**QV, "r": 2}))
    model.set_adapter("two")
    trained(model.train())
    found = [logits(model)]
    for kind in ("svd", "cat", "linear", "ties", "dare_linear", "magnitude_prune"):
        if kind in ("linear", "ties", "dare_linear", "magnitude_prune"):
            second = "three"
            if "three" not in model.peft_config:
                model.add_adapter("three", LoraConfig(**QV))
                model.set_adapter("three")
                trained(model.train(), 2)
        else:
            second = "two"
        more = {} if kind in ("svd", "cat", "linear") else {"density": 0.5}
        model.add_weighted_adapter(["one", second], [0.7, 0.3], kind, combination_type=kind, **more)
        model.set_adapter(kind)
        found.append(logits(model))
    with model.disable_adapter():
        found.append(logits(model))
    model.delete_adapter("two")
    return found, sorted(model.peft_config)


@step("a batch with an adapter of its own for each sample")
def _():
    model = get_peft_model(llama(), LoraConfig(init_lora_weights=False, **QV), adapter_name="one")
    model.add_adapter("two", LoraConfig(init_lora_weights=False, **QV))
    with torch.no_grad():
        return model.eval()(input_ids=IDS, adapter_names=["two", "__base__"]).logits


VARIANTS = {
    "rsLoRA": {"use_rslora": True},
    "DoRA": {"use_dora": True},
    "PiSSA": {"init_lora_weights": "pissa"},
    "PiSSA by randomized SVD": {"init_lora_weights": "pissa_niter_4"},
    "OLoRA": {"init_lora_weights": "olora"},
    "orthogonal": {"init_lora_weights": "orthogonal"},
    "gaussian": {"init_lora_weights": "gaussian"},
    "rank and alpha patterns": {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"v_proj": 16}},
    "layers_to_transform": {"layers_to_transform": [1]},
}

for name, options in VARIANTS.items():

    @step(f"{name}: losses, weights of the product, logits when merged", options)
    def _(options):
        model = get_peft_model(llama(), LoraConfig(**QV, **options))
        losses = trained(model)
        products = [
            layer.get_delta_weight("default")
            for layer in model.modules()
            if hasattr(layer, "get_delta_weight")
        ]
        return losses, products, logits(model.merge_and_unload())


@step("all-linear, modules_to_save, a trained head")
def _():
    config = LoraConfig(r=2, target_modules="all-linear", modules_to_save=["lm_head"])
    model = get_peft_model(llama(), config)
    losses = trained(model)
    model.save_pretrained("head")
    again = PeftModel.from_pretrained(llama(), "head")
    return losses, logits(again), sorted(get_peft_model_state_dict(again))


@step("LoRA of embeddings, and trainable_token_indices")
def _():
    model = get_peft_model(llama(), LoraConfig(r=4, target_modules=["embed_tokens", "q_proj"]))
    first = trained(model), logits(model.merge_and_unload())
    model = get_peft_model(llama(), LoraConfig(trainable_token_indices=[1, 7], **QV))
    return first, trained(model), logits(model)


@step("LoRA of convolutions")
def _():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(6, 4, 3, stride=2),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 9, 5),
    )
    model = get_peft_model(net, LoraConfig(r=3, target_modules=["0", "2", "4"]))
    x, optimizer = torch.randn(6, 3, 8, 8), torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(model(x), torch.arange(6) % 5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.merge_and_unload()(x)


@step("target_parameters")
def _():
    config = LoraConfig(r=2, target_modules=[], target_parameters=["q_proj.weight"])
    model = get_peft_model(llama(), config)
    return trained(model), logits(model)


@step("EVA: directions from the activations")
def _():
    config = LoraConfig(
        r=2, init_lora_weights="eva", eva_config=EvaConfig(rho=1.5), target_modules=["q_proj"]
    )
    model = get_peft_model(llama(), config, low_cpu_mem_usage=True)
    batches = [{"input_ids": (IDS + i) % 61} for i in range(6)]
    initialize_lora_eva_weights(model, batches)
    ranks = {n: tuple(p.shape) for n, p in model.named_parameters() if "lora_A" in n}
    delta = [p.abs() for n, p in model.named_parameters() if "lora_A" in n]
    return ranks, delta, trained(model)


@step("generate with an adapter; low_cpu_mem_usage; state dict by hand; hotswap")
def _():
    from peft.utils.hotswap import hotswap_adapter

    model = get_peft_model(llama(), LoraConfig(task_type="CAUSAL_LM", **QV))
    trained(model, 6)
    tokens = model.eval().generate(
        input_ids=IDS[:, :4], max_new_tokens=6, do_sample=False, pad_token_id=0
    )
    state = get_peft_model_state_dict(model)
    model.save_pretrained("swap")
    fast = PeftModel.from_pretrained(llama(), "swap", low_cpu_mem_usage=True)
    other = get_peft_model(llama(), LoraConfig(task_type="CAUSAL_LM", **QV))
    before = logits(other)
    result = set_peft_model_state_dict(other, state)
    third = get_peft_model(llama(), LoraConfig(task_type="CAUSAL_LM", **QV))
    hotswap_adapter(third, "swap", adapter_name="default")
    return tokens, logits(fast), before, logits(other), logits(third), result.unexpected_keys


@step("bfloat16 base, adapters in float32")
def _():
    model = get_peft_model(llama().to(torch.bfloat16), LoraConfig(**QV))
    dtypes = sorted({str(p.dtype) for p in model.parameters()})
    return dtypes, model(input_ids=IDS, labels=IDS).loss


@step("refused: no such module", refused=True)
def _():
    get_peft_model(llama(), LoraConfig(target_modules=["nothing"]))


@step("refused: a rank of 0", refused=True)
def _():
    get_peft_model(llama(), LoraConfig(r=0, target_modules=["q_proj"]))


@step("refused: a layer of a kind that LoRA does not know", refused=True)
def _():
    net = torch.nn.Sequential(torch.nn.Bilinear(2, 2, 2), torch.nn.Linear(2, 2))
    get_peft_model(net, LoraConfig(target_modules=["0"]))


@step("refused: an adapter of a wider model", refused=True)
def _():
    get_peft_model(llama(), LoraConfig(**QV)).save_pretrained("narrow")
    torch.manual_seed(0)
    wide = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=61,
            hidden_size=64,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
        )
    )
    PeftModel.from_pretrained(wide, "narrow")


@step("refused: a folder without an adapter", refused=True)
def _():
    PeftModel.from_pretrained(llama(), "./no-such-folder")


@step("refused: a weighted adapter of an unknown adapter", refused=True)
def _():
    model = get_peft_model(llama(), LoraConfig(**QV))
    model.add_weighted_adapter(["default", "none"], [1, 1], "both")


@step("refused: adapters of other ranks combined linearly", refused=True)
def _():
    model = get_peft_model(llama(), LoraConfig(**QV))
    model.add_adapter("two", LoraConfig(**{**QV, "r": 2}))
    model.add_weighted_adapter(["default", "two"], [1, 1], "both", combination_type="linear")
