"""transformers: small models without pretrained weights, their losses and what they generate."""

import torch
import transformers as tf

small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99}
small["intermediate_size"] = 64
ids = torch.arange(24).reshape(2, 12) + 3
for config, kind in (
    (tf.BertConfig(**small), tf.BertForMaskedLM),
    (tf.LlamaConfig(num_key_value_heads=2, **small), tf.LlamaForCausalLM),
    (tf.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99), tf.GPT2LMHeadModel),
):
    torch.manual_seed(0)
    model = kind(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    for step in range(4):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(kind.__name__, step, loss.item())
    if hasattr(model, "generate") and kind is not tf.BertForMaskedLM:
        model.eval()
        rules = {"max_new_tokens": 6, "pad_token_id": 0}
        print(model.generate(ids[:, :4], do_sample=False, **rules).tolist())
        print(model.generate(ids[:, :4], do_sample=False, num_beams=3, **rules).tolist())
        torch.manual_seed(1)
        print(model.generate(ids[:, :4], do_sample=True, top_k=9, **rules).tolist())
