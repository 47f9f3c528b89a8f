"""Methods of PEFT beside LoRA: losses of training, merged logits, saved and loaded."""

import peft
import torch
from peft import PeftModel, get_peft_model
from steps import step
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

IDS = torch.arange(24).reshape(2, 12) * 7 % 61


def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config)


def trained(model, steps=4, lr=1e-2):
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


ON = {"target_modules": ["q_proj", "v_proj"]}
TUNERS = {
    "IA3": (
        "IA3Config",
        {"target_modules": ["k_proj", "down_proj"], "feedforward_modules": ["down_proj"]},
    ),
    "LoHa": ("LoHaConfig", {"r": 4, "alpha": 8, **ON}),
    "LoKr": ("LoKrConfig", {"r": 4, "alpha": 8, **ON}),
    "LoKr, decomposed": ("LoKrConfig", {"r": 2, "decompose_both": True, **ON}),
    "VeRA": ("VeraConfig", {"r": 4, **ON}),
    "OFT": ("OFTConfig", {"r": 0, "oft_block_size": 8, **ON}),
    "OFT, Cayley-Neumann": (
        "OFTConfig",
        {"r": 0, "oft_block_size": 8, "use_cayley_neumann": True, **ON},
    ),
    "BOFT": ("BOFTConfig", {"boft_block_size": 4, "boft_n_butterfly_factor": 2, **ON}),
    "HRA": ("HRAConfig", {"r": 4, **ON}),
    "FourierFT": ("FourierFTConfig", {"n_frequency": 50, **ON}),
    "LN tuning": ("LNTuningConfig", {"target_modules": ["input_layernorm", "norm"]}),
    "VB-LoRA": ("VBLoRAConfig", {"r": 2, "num_vectors": 8, "vector_length": 8, "topk": 2, **ON}),
    "MiSS": ("MissConfig", {"r": 4, **ON}),
    "C3A": ("C3AConfig", {"block_size": 8, **ON}),
    "RandLoRA": ("RandLoraConfig", {"r": 4, **ON}),
    "SHiRA": ("ShiraConfig", {"r": 2, "random_seed": 3, **ON}),
    "trainable tokens": ("TrainableTokensConfig", {"token_indices": [1, 7, 14]}),
    "RoAd": ("RoadConfig", {"group_size": 16, **ON}),
    "WaveFT": ("WaveFTConfig", {"n_frequency": 40, **ON}),
    "DeLoRA": ("DeloraConfig", {"r": 4, **ON}),
    "GraLoRA": ("GraloraConfig", {"r": 4, "gralora_k": 2, **ON}),
}

for name, (config, options) in TUNERS.items():

    @step(f"{name}: losses, logits when merged, saved and loaded", config, options)
    def _(config, options):
        model = get_peft_model(llama(), getattr(peft, config)(task_type="CAUSAL_LM", **options))
        count = model.get_nb_trainable_parameters()
        losses = trained(model.train())
        found = logits(model)
        model.save_pretrained(config)
        again = logits(PeftModel.from_pretrained(llama(), config))
        return count, losses, found, again, logits(model.merge_and_unload())


PROMPTS = {
    "prompt tuning": ("PromptTuningConfig", {"num_virtual_tokens": 4}),
    "P-tuning": ("PromptEncoderConfig", {"num_virtual_tokens": 4, "encoder_hidden_size": 16}),
    "P-tuning, LSTM": (
        "PromptEncoderConfig",
        {
            "num_virtual_tokens": 4,
            "encoder_hidden_size": 16,
            "encoder_reparameterization_type": "LSTM",
        },
    ),
    "prefix tuning": ("PrefixTuningConfig", {"num_virtual_tokens": 4}),
    "prefix tuning, projected": (
        "PrefixTuningConfig",
        {"num_virtual_tokens": 4, "prefix_projection": True, "encoder_hidden_size": 16},
    ),
    "multitask prompt tuning": (
        "MultitaskPromptTuningConfig",
        {"num_virtual_tokens": 4, "num_tasks": 2, "num_ranks": 2},
    ),
}

for name, (config, options) in PROMPTS.items():

    @step(f"{name}: losses, tokens, saved and loaded", config, options)
    def _(config, options):
        model = get_peft_model(llama(), getattr(peft, config)(task_type="CAUSAL_LM", **options))
        model.train()
        more = {"task_ids": torch.tensor([0, 1])} if "num_tasks" in options else {}
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
        losses = []
        for _ in range(4):
            loss = model(input_ids=IDS, labels=IDS, **more).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.save_pretrained(config)
        again = PeftModel.from_pretrained(llama(), config).eval()
        with torch.no_grad():
            found = again(input_ids=IDS, **more).logits
        tokens = again.generate(
            input_ids=IDS[:, :5],
            attention_mask=torch.ones_like(IDS[:, :5]),
            max_new_tokens=5,
            do_sample=False,
            pad_token_id=0,
            **more,
        )
        return losses, found, tokens


@step("AdaLoRA: losses and ranks while the budget falls")
def _():
    config = peft.AdaLoraConfig(
        task_type="CAUSAL_LM", init_r=6, target_r=2, tinit=1, tfinal=2, deltaT=1, total_step=8, **ON
    )
    model = get_peft_model(llama(), config).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    losses = []
    for count in range(8):
        loss = model(input_ids=IDS, labels=IDS).loss
        loss.backward()
        optimizer.step()
        model.base_model.update_and_allocate(count)
        optimizer.zero_grad()
        losses.append(loss.item())
    ranks = {k: sum(v) for k, v in (model.peft_config["default"].rank_pattern or {}).items()}
    return losses, ranks, logits(model)


@step("a classifier: LoRA with its head saved, batches of a task")
def _():
    def bert():
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=61,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=48,
            num_labels=3,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        return BertForSequenceClassification(config)

    config = peft.LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
    model = get_peft_model(bert(), config).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(5):
        loss = model(input_ids=IDS, labels=torch.tensor([0, 2])).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.save_pretrained("classifier")
    again = PeftModel.from_pretrained(bert(), "classifier")
    return losses, logits(again), logits(model)


@step("PeftMixedModel: LoRA and LoHa in one")
def _():
    model = get_peft_model(llama(), peft.LoraConfig(r=2, **ON), "lora", mixed=True)
    model.add_adapter("loha", peft.LoHaConfig(r=2, init_weights=False, **ON))
    model.set_adapter(["lora", "loha"])
    return logits(model), trained(model.train(), 3)


@step("AutoPeftModelForCausalLM from folders")
def _():
    llama().save_pretrained("base")
    base = LlamaForCausalLM.from_pretrained("base")
    first = get_peft_model(
        base, peft.LoraConfig(task_type="CAUSAL_LM", r=2, init_lora_weights=False, **ON)
    )
    first.save_pretrained("expert")
    auto = peft.AutoPeftModelForCausalLM.from_pretrained("expert")
    return logits(first), logits(auto)


@step("inject_adapter_in_model, helpers")
def _():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    net = peft.inject_adapter_in_model(peft.LoraConfig(r=2, target_modules=["0", "2"]), net)
    net(torch.randn(3, 4)).square().sum().backward()
    found = {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
    with peft.helpers.rescale_adapter_scale(
        get_peft_model(llama(), peft.LoraConfig(**ON)), 0.5
    ) as _:
        pass
    return found


@step("refused: OFT blocks that do not divide the layer", refused=True)
def _():
    model = get_peft_model(
        llama(), peft.OFTConfig(r=0, oft_block_size=7, oft_block_share=True, **ON)
    )
    return trained(model, 1)


@step("refused: BOFT with both a size and a number of blocks", refused=True)
def _():
    peft.BOFTConfig(boft_block_size=4, boft_block_num=4)


@step("refused: AdaLoRA without total_step", refused=True)
def _():
    peft.AdaLoraConfig(**ON)


@step("refused: DoRA of another kind of tuner", refused=True)
def _():
    peft.LoHaConfig(use_dora=True)


@step("refused: a prompt for a task unknown", refused=True)
def _():
    get_peft_model(llama(), peft.PromptTuningConfig(task_type="NOTHING", num_virtual_tokens=2))
