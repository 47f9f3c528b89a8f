"""Encoders with decoders from a folder: loss, gradients, greedy and beam search."""

import torch
import transformers
from steps import step

transformers.logging.set_verbosity_error()
SIZES = {
    "vocab_size": 96,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "init_std": 0.1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
T5 = {
    "vocab_size": 96,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "decoder_start_token_id": 0,
    "initializer_factor": 0.5,
}
NAMES = {
    "bart": SIZES,
    "bigbird_pegasus": SIZES | {"attention_type": "original_full"},
    "blenderbot": SIZES,
    "blenderbot-small": SIZES,
    "fsmt": SIZES | {"src_vocab_size": 96, "tgt_vocab_size": 96},
    "led": SIZES
    | {
        "attention_window": 4,
        "max_encoder_position_embeddings": 64,
        "max_decoder_position_embeddings": 64,
    },
    "longt5": T5 | {"local_radius": 3, "global_block_size": 4},
    "m2m_100": SIZES,
    "marian": SIZES | {"forced_eos_token_id": 2},
    "mbart": SIZES,
    "mt5": T5,
    "mvp": SIZES,
    "nllb-moe": SIZES | {"num_experts": 4, "expert_capacity": 16, "encoder_sparse_step": 2},
    "pegasus": SIZES,
    "pegasus_x": SIZES | {"block_size": 4, "num_global_tokens": 2},
    "plbart": SIZES,
    "prophetnet": {k: v for k, v in SIZES.items() if k not in ("encoder_layers", "decoder_layers")}
    | {
        "hidden_size": 32,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "num_encoder_attention_heads": 4,
        "num_decoder_attention_heads": 4,
        "ngram": 2,
    },
    "switch_transformers": T5
    | {"num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    "t5": T5,
    "umt5": T5,
}
TOKENS = torch.tensor([[5, 9, 33, 71, 9, 14, 23, 2], [8, 20, 64, 3, 2, 0, 0, 0]])
MASK = (TOKENS > 0).long()


for name, sizes in NAMES.items():

    @step(name, name, sizes)
    def _(name, sizes):
        config = transformers.AutoConfig.for_model(name, **sizes)
        transformers.AutoModelForSeq2SeqLM.from_config(config).save_pretrained(name)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(name).eval()
        output = model(TOKENS, attention_mask=MASK, labels=TOKENS.flip(0))
        output.loss.backward()
        gradients = [
            torch.zeros(()) if p.grad is None else p.grad.norm() for p in model.parameters()
        ]
        greedy = model.generate(TOKENS, attention_mask=MASK, max_new_tokens=8, do_sample=False)
        beams = model.generate(TOKENS, attention_mask=MASK, max_new_tokens=6, num_beams=3)
        return output.logits, output.loss, torch.stack(gradients), greedy, beams


@step("an encoder-decoder made of two BERTs")
def _():
    sizes = {
        "vocab_size": 96,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "initializer_range": 0.1,
    }
    bert = transformers.BertConfig(**sizes)
    transformers.BertModel(bert).save_pretrained("bert")
    model = transformers.EncoderDecoderModel.from_encoder_decoder_pretrained("bert", "bert").eval()
    model.config.decoder_start_token_id, model.config.pad_token_id = 1, 0
    output = model(input_ids=TOKENS, attention_mask=MASK, labels=TOKENS)
    output.loss.backward()
    model.save_pretrained("both")
    model = transformers.EncoderDecoderModel.from_pretrained("both")
    written = model.generate(
        TOKENS, attention_mask=MASK, decoder_start_token_id=1, max_new_tokens=6
    )
    return output.loss, output.logits, written


@step("RAG-like: generation from encoder outputs computed beforehand")
def _():
    model = transformers.T5ForConditionalGeneration.from_pretrained("t5").eval()
    states = model.get_encoder()(TOKENS, attention_mask=MASK, return_dict=True)
    start = torch.full((2, 1), 0)
    return model.generate(
        encoder_outputs=states, attention_mask=MASK, decoder_input_ids=start, max_new_tokens=6
    )
