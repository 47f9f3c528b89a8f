"""Using a model: hooks, checkpointing, compilation, training, caches, templates."""

import copy

import torch
import transformers
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
transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).save_pretrained("model")


def loaded(**options):
    return AutoModelForCausalLM.from_pretrained("model", **options)


def norms(model):
    return {n: p.grad.norm() for n, p in model.named_parameters() if p.grad is not None}


@step("hidden states and attentions, as a mapping and as a tuple")
def _():
    model = loaded(attn_implementation="eager")
    output = model(TOKENS, output_hidden_states=True, output_attentions=True)
    plain = model(TOKENS, return_dict=False)
    return output.hidden_states, output.attentions, plain[0]


for reentrant in (False, True):

    @step(f"gradient checkpointing, reentrant {reentrant}", reentrant)
    def _(reentrant):
        model = loaded().train()
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model.enable_input_require_grads()
        loss = model(TOKENS, labels=TOKENS, use_cache=False).loss
        loss.backward()
        return loss, norms(model)


@step("hooks see and change a layer's output; gradients of a hidden state")
def _():
    model, seen = loaded(), {}
    layer = model.model.layers[0].mlp

    def keep(module, inputs, output):
        output.retain_grad()
        seen["output"] = output

    handle = layer.register_forward_hook(keep)
    model(TOKENS, labels=TOKENS).loss.backward()
    handle.remove()
    layer.register_forward_hook(lambda module, inputs, output: output * 0)
    return seen["output"], seen["output"].grad, model(TOKENS).logits


@step("torch.compile of a model: logits, gradients, generation")
def _():
    model = loaded()
    compiled = torch.compile(model, backend="eager")
    output = compiled(TOKENS, labels=TOKENS)
    output.loss.backward()
    return output.logits, norms(model), model.generate(TOKENS, max_new_tokens=4, do_sample=False)


@step("twenty steps of AdamW with a schedule and clipping")
def _():
    model = loaded().train()
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    schedule = transformers.get_cosine_schedule_with_warmup(optimizer, 3, 20)
    losses = []
    for _ in range(20):
        loss = model(TOKENS, labels=TOKENS).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.save_pretrained("trained")
    again = AutoModelForCausalLM.from_pretrained("trained").eval()
    return (
        losses,
        schedule.get_last_lr(),
        again.generate(TOKENS[:, :1], max_new_tokens=4, do_sample=False),
    )


@step("dropout in training draws the same numbers")
def _():
    config = transformers.GPT2Config(vocab_size=96, n_embd=32, n_layer=2, n_head=4)
    model = transformers.GPT2LMHeadModel(config).train()
    loss = model(TOKENS, labels=TOKENS).loss
    loss.backward()
    return loss, norms(model)


@step("autocast to bfloat16: loss and gradients to two digits")
def _():
    model = loaded().train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(TOKENS, labels=TOKENS)
    output.loss.backward()
    return output.logits.dtype, round(output.loss.item(), 1), sorted(norms(model))


@step("labels that are ignored, a mask, positions of one's own")
def _():
    model = loaded()
    labels = TOKENS.masked_fill(TOKENS > 60, -100)
    mask = torch.tensor([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]])
    places = torch.tensor([[0, 1, 2, 3, 4], [0, 0, 1, 2, 3]])
    output = model(TOKENS, attention_mask=mask, position_ids=places, labels=labels)
    output.loss.backward()
    return output.loss, output.logits * mask[..., None], norms(model)


@step("a mask of four dimensions")
def _():
    mask = torch.tril(torch.ones(5, 5))[None, None].expand(2, 1, -1, -1).clone()
    mask[..., 4, 1] = 0
    mask = (1 - mask) * torch.finfo(torch.float32).min
    return loaded()(TOKENS, attention_mask=mask).logits


@step("logits of the last tokens alone")
def _():
    return loaded()(TOKENS, logits_to_keep=2).logits


@step("a model is copied, pickled by torch.save, and converted")
def _():
    model = loaded()
    twin = copy.deepcopy(model)
    torch.save(model, "whole.pt")
    whole = torch.load("whole.pt", weights_only=False)
    return [each(TOKENS).logits for each in (twin, whole, model.double())]


@step("an attention of one's own")
def _():
    def even(module, query, key, value, mask, scaling, dropout=0.0, **rest):
        value = value.repeat_interleave(module.num_key_value_groups, 1)
        return value.cumsum(2).transpose(1, 2) / 7, None

    transformers.AttentionInterface.register("even", even)
    return loaded(attn_implementation="even")(TOKENS).logits


@step("a model of one's own with a configuration of its own")
def _():
    class TinyConfig(transformers.PreTrainedConfig):
        model_type = "tiny"
        width: int = 8

    class Tiny(transformers.PreTrainedModel):
        config_class = TinyConfig

        def __init__(self, config):
            super().__init__(config)
            self.layer = torch.nn.Linear(config.width, 2)
            self.post_init()

        def forward(self, x):
            return self.layer(x)

        def _init_weights(self, module):
            if isinstance(module, torch.nn.Linear):
                module.weight.data.normal_()

    transformers.AutoConfig.register("tiny", TinyConfig)
    transformers.AutoModel.register(TinyConfig, Tiny)
    Tiny(TinyConfig(width=6)).save_pretrained("tiny")
    return transformers.AutoModel.from_pretrained("tiny")(torch.ones(1, 6))


@step("layers exchanged for wrapped ones")
def _():
    class LowRank(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down = torch.nn.Linear(base.in_features, 2, bias=False)
            self.up = torch.nn.Linear(2, base.out_features, bias=False)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    model = loaded().requires_grad_(False)
    for layer in model.model.layers:
        layer.self_attn.q_proj = LowRank(layer.self_attn.q_proj)
    loss = model(TOKENS, labels=TOKENS).loss
    loss.backward()
    return loss, norms(model)


@step("models in evaluation and training keep their modes")
def _():
    model = loaded()
    return (
        model.training,
        model.train().training,
        model.device,
        model.dtype,
        model.framework if hasattr(model, "framework") else "pt",
    )


@step("tokens as floating-point numbers", refused=True)
def _():
    loaded()(TOKENS.float())


@step("labels of another length", refused=True)
def _():
    loaded()(TOKENS, labels=TOKENS[:, :3])
