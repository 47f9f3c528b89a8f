"""Decoders from a folder: logits, loss, gradients, greedy tokens."""

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
HEADS = {"head_dim": 8}
NAMES = """
    apertus arcee beam bert bert-generation biogpt bitnet bloom camembert codegen cohere cohere2
    ctrl cwm data2vec-text diffllama doge electra ernie ernie4_5 exaone exaone4 falcon fuyu
    gemma gemma2 gemma3_text glm glm4 gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gptj
    granite helium hunyuan_v1_dense internlm3 llama megatron-bert ministral ministral3 mistral
    modernbert-decoder mpt nanochat nemotron olmo olmo2 olmo3 openai-gpt opt persimmon phi phi3
    qwen2 qwen3 rembert roberta roberta-prelayernorm roformer seed_oss smollm3 stablelm
    starcoder2 vaultgemma xglm xlm xlm-roberta xlm-roberta-xl xmod
""".split()
OTHER_SIZES = {
    "codegen": {"rotary_dim": 4},
    "falcon": {"num_kv_heads": 2, "new_decoder_architecture": True},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gptj": {"rotary_dim": 4},
    "opt": {"word_embed_proj_dim": 16, "ffn_dim": 48},
    "xglm": {"ffn_dim": 48},
    "xmod": {"default_language": "en_XX"},
}


for name in NAMES:

    @step(name, name)
    def _(name):
        sizes = SIZES | (HEADS if name not in ("falcon", "gpt_neo") else {})
        config = transformers.AutoConfig.for_model(name, **sizes | OTHER_SIZES.get(name, {}))
        config.is_decoder = True
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(name)
        model = transformers.AutoModelForCausalLM.from_pretrained(name).eval()
        tokens = torch.tensor([[5, 9, 33, 71, 9], [8, 20, 64, 3, 90]])
        output = model(input_ids=tokens, labels=tokens)
        output.loss.backward()
        gradients = [
            torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()
        ]
        written = model.generate(tokens, max_new_tokens=8, do_sample=False)
        return output.logits, output.loss, torch.stack(gradients), written
