"""Decoders with experts from a folder: logits, loss, gradients, greedy tokens."""

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
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24,
    "n_group": 1,
    "topk_group": 1,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 4,
    "v_head_dim": 8,
}
LATENT = ("deepseek_v3", "glm4_moe_lite", "glm_moe_dsa", "longcat_flash", "youtu")
NAMES = """
    afmoe deepseek_v2 deepseek_v3 ernie4_5_moe exaone_moe flex_olmo glm4_moe glm4_moe_lite
    glm_moe_dsa gpt_oss granitemoe granitemoeshared hunyuan_v1_moe hy_v3 jetmoe llama4_text
    longcat_flash mellum mimo_v2_flash minimax minimax_m2 mixtral olmoe phimoe qwen2_moe qwen3_moe
    solar_open youtu
""".split()


for name in NAMES:

    @step(name, name)
    def _(name):
        heads = {"num_key_value_heads": 4} if name in LATENT else {}
        config = transformers.AutoConfig.for_model(name, **SIZES | heads)
        model = transformers.AutoModelForCausalLM.from_config(config)
        for each in model.parameters():
            if not each.any():  # a router of zeros may choose any of its equal experts
                torch.nn.init.normal_(each, std=0.1)
        model.save_pretrained(name)
        model = transformers.AutoModelForCausalLM.from_pretrained(name).eval()
        tokens = torch.tensor([[5, 9, 33, 71, 9], [8, 20, 64, 3, 90]])
        output = model(input_ids=tokens, labels=tokens)
        output.loss.backward()
        gradients = [
            torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()
        ]
        written = model.generate(tokens, max_new_tokens=8, do_sample=False)
        return output.logits, output.loss, torch.stack(gradients), written
