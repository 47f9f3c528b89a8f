"""Decoders with states, and hybrids: logits, loss, gradients, greedy tokens."""

import torch
import transformers
from steps import step

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
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"],
}
NAMES = {
    "mamba": {"state_size": 4},
    "mamba2": {"num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 1, "chunk_size": 4},
    "falcon_mamba": {"state_size": 4},
    "rwkv": {"attention_hidden_size": 32},
    "recurrent_gemma": {"lru_width": 32, "attention_window_size": 4, "num_hidden_layers": 3},
    "xlstm": {"num_heads": 4, "chunk_size": 4},
    "bamba": MAMBA | {"attn_layer_indices": [1]},
    "falcon_h1": MAMBA | {"mamba_d_ssm": 64},
    "granitemoehybrid": MAMBA
    | {
        "layer_types": ["mamba", "attention"],
        "num_local_experts": 0,
        "shared_intermediate_size": 48,
    },
    "jamba": {"mamba_d_state": 4, "mamba_dt_rank": 4, "num_experts": 2, "attn_layer_offset": 1},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "minimax": {"layer_types": ["linear_attention", "full_attention"], "num_local_experts": 2},
    "nemotron_h": {"mamba_num_heads": 8, "mamba_head_dim": 8, "ssm_state_size": 8, "n_groups": 1},
    "olmo_hybrid": LINEAR,
    "qwen3_next": LINEAR | {"num_experts": 0, "head_dim": 8},
    "qwen3_5_text": LINEAR | {"head_dim": 8},
}


for name, sizes in NAMES.items():

    @step(name, name, sizes)
    def _(name, sizes):
        config = transformers.AutoConfig.for_model(name, **SIZES | sizes)
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(name)
        model = transformers.AutoModelForCausalLM.from_pretrained(name).eval()
        tokens = torch.tensor([[5, 9, 33, 71, 9], [8, 20, 64, 3, 90]])
        model.train(name == "rwkv")  # in evaluation it scales weights in place
        output = model(input_ids=tokens, labels=tokens)
        output.loss.backward()
        gradients = [
            torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()
        ]
        written = model.eval().generate(tokens, max_new_tokens=8, do_sample=False)
        return output.logits, output.loss, torch.stack(gradients), written
