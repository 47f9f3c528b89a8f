"""Generation: every way of choosing tokens, caches, criteria."""

import torch
import transformers
from steps import step
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

transformers.logging.set_verbosity_error()
SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
torch.manual_seed(0)
transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).save_pretrained("model")
MODEL = transformers.AutoModelForCausalLM.from_pretrained("model").eval()
TOKENS = torch.tensor([[5, 9, 33, 71, 9], [8, 20, 64, 3, 90]])
WAYS = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True},
    "temperature": {"do_sample": True, "temperature": 0.7},
    "top-k": {"do_sample": True, "top_k": 5},
    "top-p": {"do_sample": True, "top_p": 0.8, "top_k": 0},
    "min-p": {"do_sample": True, "min_p": 0.05, "top_k": 0},
    "typical": {"do_sample": True, "typical_p": 0.9},
    "epsilon and eta cutoff": {"do_sample": True, "epsilon_cutoff": 0.01, "eta_cutoff": 0.01},
    "several sequences": {"do_sample": True, "num_return_sequences": 3},
    "beam search": {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.8},
    "beam search, sampled": {"num_beams": 3, "do_sample": True, "temperature": 1.5},
    "beam search, early stopping": {"num_beams": 3, "early_stopping": True},
    "repetition penalty": {"repetition_penalty": 1.5},
    "no repeated n-grams": {"no_repeat_ngram_size": 2},
    "bad words": {"bad_words_ids": [[33], [7, 9]]},
    "suppressed tokens": {"suppress_tokens": [33, 34, 35], "begin_suppress_tokens": [3]},
    "biased sequences": {"sequence_bias": [[[11], 4.0], [[12, 13], -3.0]]},
    "minimal length": {"min_new_tokens": 8},
    "exponential decay of the length": {"exponential_decay_length_penalty": (4, 1.5)},
    "forced tokens": {"forced_bos_token_id": 7, "forced_eos_token_id": 2},
    "guidance": {"guidance_scale": 1.5},
    "static cache": {"cache_implementation": "static"},
    "without cache": {"use_cache": False},
    "prompt lookup": {"prompt_lookup_num_tokens": 2},
    "renormalized logits": {"do_sample": True, "top_k": 7, "renormalize_logits": True},
}


for name, way in WAYS.items():

    @step(name, way)
    def _(way):
        tokens = TOKENS[:1] if "prompt_lookup_num_tokens" in way else TOKENS
        return MODEL.generate(tokens, max_new_tokens=12, **way)


@step("scores, logits, hidden states and attentions of greedy search")
def _():
    model = transformers.LlamaForCausalLM.from_pretrained("model", attn_implementation="eager")
    output = model.generate(
        TOKENS,
        max_new_tokens=4,
        do_sample=False,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
        output_hidden_states=True,
        output_attentions=True,
    )
    scores = model.compute_transition_scores(output.sequences, output.scores, normalize_logits=True)
    return output.scores, output.logits, output.hidden_states[1], output.attentions[1], scores


@step("scores of beams")
def _():
    output = MODEL.generate(
        TOKENS, max_new_tokens=5, num_beams=3, return_dict_in_generate=True, output_scores=True
    )
    scores = MODEL.compute_transition_scores(output.sequences, output.scores, output.beam_indices)
    return output.sequences, output.sequences_scores, output.beam_indices, scores


@step("assisted by a smaller model, greedy and sampled")
def _():
    config = transformers.LlamaConfig(**SIZES | {"num_hidden_layers": 1})
    helper = transformers.LlamaForCausalLM(config).eval()
    plain = {"assistant_model": helper, "max_new_tokens": 12}
    return [MODEL.generate(TOKENS[:1], do_sample=way, **plain) for way in (False, True)]


@step("a batch with padding on the left equals each prompt alone")
def _():
    tokens = torch.tensor([[5, 9, 33, 71, 9], [0, 0, 8, 20, 64]])
    mask = (tokens > 0).long()
    together = MODEL.generate(tokens, attention_mask=mask, max_new_tokens=8, do_sample=False)
    alone = MODEL.generate(tokens[1:, 2:], max_new_tokens=8, do_sample=False)
    return together, alone


@step("the cache by hand: token by token, cropped, reordered, in batches")
def _():
    cache = transformers.DynamicCache(config=MODEL.config)
    with torch.no_grad():
        first = MODEL(TOKENS, past_key_values=cache, use_cache=True).logits[:, -1]
        found = [first]
        for _ in range(3):
            last = found[-1].argmax(-1, keepdim=True)
            found.append(MODEL(last, past_key_values=cache).logits[:, -1])
        cache.crop(-3)
        length = cache.get_seq_length()
        again = MODEL(first.argmax(-1, keepdim=True), past_key_values=cache).logits[:, -1]
        cache.reorder_cache(torch.tensor([1, 0]))
        cache.batch_repeat_interleave(2)
        twice = MODEL(torch.tensor([[3]] * 4), past_key_values=cache).logits
    return found, length, again, twice


@step("a prompt's cache used for two continuations")
def _():
    import copy

    cache = transformers.DynamicCache(config=MODEL.config)
    with torch.no_grad():
        MODEL(TOKENS[:1], past_key_values=cache)
    found = []
    for more in ([7, 8], [40]):
        tokens = torch.cat([TOKENS[:1], torch.tensor([more])], 1)
        past = copy.deepcopy(cache)
        found.append(
            MODEL.generate(tokens, past_key_values=past, max_new_tokens=6, do_sample=False)
        )
    return found


@step("embeddings as the prompt")
def _():
    embeddings = MODEL.get_input_embeddings()(TOKENS).detach() * 1.1
    return MODEL.generate(inputs_embeds=embeddings, max_new_tokens=6, do_sample=False)


class Even(LogitsProcessor):
    def __call__(self, input_ids, scores):
        return scores.masked_fill(torch.arange(scores.shape[-1]) % 2 == 1, -torch.inf)


class Until(transformers.StoppingCriteria):
    def __call__(self, input_ids, scores, **rest):
        return input_ids[:, -1] > 80


@step("a processor of logits, stopping criteria and a prefix of allowed tokens of one's own")
def _():
    even = MODEL.generate(TOKENS, max_new_tokens=8, logits_processor=LogitsProcessorList([Even()]))
    stopped = MODEL.generate(
        TOKENS, max_new_tokens=40, stopping_criteria=transformers.StoppingCriteriaList([Until()])
    )
    few = MODEL.generate(
        TOKENS,
        max_new_tokens=8,
        num_beams=2,
        prefix_allowed_tokens_fn=lambda i, t: [4, 5, 6, 7 + i],
    )
    return even, stopped, few


@step("a streamer hears every token")
def _():
    class Heard:
        tokens = []

        def put(self, value):
            self.tokens += value.flatten().tolist()

        def end(self):
            self.tokens.append(-1)

    MODEL.generate(TOKENS[:1], max_new_tokens=6, do_sample=False, streamer=Heard())
    return Heard.tokens


@step("a configuration of generation is saved and loaded")
def _():
    config = GenerationConfig(
        do_sample=True, top_k=4, temperature=0.6, max_new_tokens=7, pad_token_id=0
    )
    config.save_pretrained("model")
    model = transformers.AutoModelForCausalLM.from_pretrained("model").eval()
    return model.generation_config.to_dict()["top_k"], model.generate(TOKENS)


@step("sliding windows: Mistral and Gemma 2 beyond their windows")
def _():
    found = []
    for name in ("mistral", "gemma2"):
        config = transformers.AutoConfig.for_model(name, **SIZES, head_dim=8, sliding_window=4)
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        found.append(model.generate(TOKENS, max_new_tokens=10, do_sample=False))
        found.append(
            model.generate(
                TOKENS, max_new_tokens=10, do_sample=False, cache_implementation="static"
            )
        )
    return found


@step("scaled rotary positions: linear, dynamic, yarn, llama3, longrope")
def _():
    found = []
    for rope in (
        {"rope_type": "linear", "factor": 2.0},
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16,
        },
        {
            "rope_type": "longrope",
            "short_factor": [1.0] * 4,
            "long_factor": [1.5] * 4,
            "factor": 2.0,
            "original_max_position_embeddings": 16,
        },
    ):
        config = transformers.LlamaConfig(**SIZES, rope_parameters=rope | {"rope_theta": 10000.0})
        model = transformers.LlamaForCausalLM(config).eval()
        found.append(model(TOKENS.repeat(1, 6)).logits)
    return found


@step("a prompt that is longer than the maximal length", refused=True)
def _():
    MODEL.generate(TOKENS, max_length=3)


@step("beams that are fewer than the sequences asked for", refused=True)
def _():
    MODEL.generate(TOKENS, num_beams=2, num_return_sequences=3)


@step("an unknown option", refused=True)
def _():
    MODEL.generate(TOKENS, nonsense=1)


@step("a temperature of zero", refused=True)
def _():
    MODEL.generate(TOKENS, do_sample=True, temperature=0.0, max_new_tokens=2)


@step("a token that is outside of the vocabulary", refused=True)
def _():
    MODEL(torch.tensor([[200]]))
