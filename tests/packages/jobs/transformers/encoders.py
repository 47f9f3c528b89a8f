"""Encoders of text from a folder: outputs of each head, loss, gradients."""

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
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "cls_token_id": 1,
    "sep_token_id": 2,
}
NAMES = {
    "albert": {"embedding_size": 16},
    "bert": {},
    "big_bird": {"attention_type": "block_sparse", "block_size": 2, "num_random_blocks": 1},
    "camembert": {},
    "convbert": {"embedding_size": 32, "conv_kernel_size": 3},
    "data2vec-text": {},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "distilbert": {"hidden_dim": 48},
    "electra": {"embedding_size": 16},
    "ernie": {},
    "esm": {"mask_token_id": 3, "position_embedding_type": "rotary"},
    "fnet": {"use_tpu_fourier_optimizations": False},
    "funnel": {"block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48},
    "ibert": {},
    "layoutlm": {},
    "longformer": {"attention_window": 4},
    "luke": {"entity_vocab_size": 10, "entity_emb_size": 16},
    "megatron-bert": {},
    "mobilebert": {"embedding_size": 16, "true_hidden_size": 16, "intra_bottleneck_size": 16},
    "modernbert": {"local_attention": 4, "global_attn_every_n_layers": 2},
    "mpnet": {"pad_token_id": 1, "relative_attention_num_buckets": 8},
    "nomic_bert": {},
    "nystromformer": {"num_landmarks": 8, "segment_means_seq_len": 8, "conv_kernel_size": 3},
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 24},
    "roberta": {},
    "roc_bert": {"pronunciation_vocab_size": 40, "shape_vocab_size": 40},
    "roformer": {"embedding_size": 32},
    "squeezebert": {"embedding_size": 32},
    "xlm-roberta": {},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
}
TOKENS = torch.tensor([[1, 5, 9, 33, 71, 9, 14, 2], [1, 8, 20, 64, 3, 2, 0, 0]])
NOT_SIZES = {
    "funnel": ("hidden_size", "num_hidden_layers", "num_attention_heads"),
    "xlnet": ("hidden_size", "max_position_embeddings"),
}


for name, sizes in NAMES.items():

    @step(f"{name}: language model", name, sizes)
    def _(name, sizes):
        shared = {key: SIZES[key] for key in SIZES if key not in NOT_SIZES.get(name, ())}
        config = transformers.AutoConfig.for_model(name, **shared | sizes)
        kind = (
            transformers.AutoModelForMaskedLM
            if name != "xlnet"
            else transformers.AutoModelForCausalLM
        )
        kind.from_config(config).save_pretrained(name)
        model = kind.from_pretrained(name).eval()
        output = model(TOKENS, attention_mask=(TOKENS > 0).long(), labels=TOKENS)
        output.loss.backward()
        gradients = [
            torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()
        ]
        return output.logits, output.loss, torch.stack(gradients)

    @step(f"{name}: classification of sequences with the saved encoder, trained", name)
    def _(name):
        kind = transformers.AutoModelForSequenceClassification
        model = kind.from_pretrained(name, num_labels=3).eval()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        losses = []
        for _ in range(3):
            mask = (TOKENS > 0).long()
            output = model(TOKENS, attention_mask=mask, labels=torch.tensor([0, 2]))
            output.loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(output.loss.item())
        return losses, output.logits


for head, labels in {
    "TokenClassification": {"labels": TOKENS % 2},
    "QuestionAnswering": {
        "start_positions": torch.tensor([1, 2]),
        "end_positions": torch.tensor([3, 4]),
    },
    "MultipleChoice": {"labels": torch.tensor([1])},
    "NextSentencePrediction": {"labels": torch.tensor([1, 0])},
}.items():

    @step(f"bert for {head}, its hidden states and attentions", head, labels)
    def _(head, labels):
        kind = getattr(transformers, f"BertFor{head}")
        model = kind.from_pretrained("bert", attn_implementation="eager").eval()
        tokens = TOKENS[None] if head == "MultipleChoice" else TOKENS
        output = model(tokens, **labels, output_hidden_states=True, output_attentions=True)
        output.loss.backward()
        return (
            output.loss,
            output.hidden_states,
            output.attentions,
            [p.grad.norm().item() for p in list(model.parameters())[-2:]],
        )
