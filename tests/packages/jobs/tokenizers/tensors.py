"""Tokenizers: training, and batches of tensors."""

import numpy as np
import torch
import transformers
from steps import step
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

transformers.logging.set_verbosity_error()
TEXTS = ["the cat sat on the mat", "a dog ran to the cat", "the mat is red, the dog is not"] * 5
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NAMES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL))


def trainers_of(kind):
    return getattr(trainers, {"BPE": "Bpe"}.get(kind, kind) + "Trainer")


def trained(kind):
    unknown = {"unk_token": "[UNK]"} if kind in ("WordPiece", "WordLevel") else {}
    made = Tokenizer(getattr(models, kind)(**unknown))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    settings = {"vocab_size": 60, "special_tokens": SPECIAL, "show_progress": False}
    made.train_from_iterator(TEXTS, trainers_of(kind)(**settings))
    if kind == "WordPiece":  # whose numbers of tokens differ in each process
        words = sorted(made.get_vocab().keys() - set(SPECIAL))
        numbers = {word: number for number, word in enumerate([*SPECIAL, *words])}
        made.model = models.WordPiece(vocab=numbers, **unknown)
    return made


for kind in ("BPE", "WordPiece", "WordLevel"):

    @step(f"{kind}: trained, tokens as tensors, decoded", kind)
    def _(kind):
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=trained(kind), **NAMES)
        batch = fast(TEXTS[:3], padding=True, return_tensors="pt")
        fast.save_pretrained(kind)
        again = transformers.AutoTokenizer.from_pretrained(kind)
        return batch, again.batch_decode(batch["input_ids"], skip_special_tokens=True)


@step("truncation, padding to a multiple, on the left, overflow, offsets")
def _():
    fast = transformers.AutoTokenizer.from_pretrained("WordPiece")
    fast.padding_side = "left"
    one = fast(TEXTS[:3], padding=True, pad_to_multiple_of=8, return_tensors="pt")
    two = fast(
        TEXTS[:2],
        max_length=4,
        truncation=True,
        stride=1,
        padding="max_length",
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_tensors="pt",
    )
    return one, two


@step("pairs of texts with kinds of tokens")
def _():
    made = trained("WordPiece")
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **NAMES)
    fast.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
    return fast(TEXTS[:2], TEXTS[1:3], padding=True, return_tensors="pt")


@step("bytes: any text comes back")
def _():
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(TEXTS, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made)
    tokens = fast("the naïve cat – 漢字", return_tensors="pt").input_ids
    return tokens.shape, fast.decode(tokens[0])


@step("added tokens and an embedding that grows with them")
def _():
    fast = transformers.AutoTokenizer.from_pretrained("BPE")
    fast.add_tokens(["<new>"])
    fast.add_special_tokens({"additional_special_tokens": ["<one>", "<two>"]})
    tokens = fast("the <new> cat <one>", return_tensors="pt").input_ids
    table = torch.arange(len(fast) * 2.0).view(-1, 2)
    return tokens, torch.nn.functional.embedding(tokens, table), fast.decode(tokens[0])


@step("a chat's template: text, tensors, mask of the assistant's tokens")
def _():
    fast = transformers.AutoTokenizer.from_pretrained("WordPiece")
    fast.chat_template = (
        "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }} "
        "[SEP]{% endgeneration %}{% else %}[CLS] {{ m.content }} {% endif %}{% endfor %}"
        "{% if add_generation_prompt %} the{% endif %}"
    )
    chat = [{"role": "user", "content": "the cat"}, {"role": "assistant", "content": "a dog"}]
    text = fast.apply_chat_template(chat, tokenize=False)
    more = fast.apply_chat_template(chat[:1], add_generation_prompt=True, return_tensors="pt")
    masked = fast.apply_chat_template(chat, return_dict=True, return_assistant_tokens_mask=True)
    return text, more, masked


@step("collators: padding, masked and causal language models")
def _():
    fast = transformers.AutoTokenizer.from_pretrained("WordPiece")
    rows = [fast(text) for text in TEXTS[:3]]
    padded = transformers.DataCollatorWithPadding(fast)([dict(row, label=1) for row in rows])
    causal = transformers.DataCollatorForLanguageModeling(fast, mlm=False)(rows)
    masked = transformers.DataCollatorForLanguageModeling(fast, mlm_probability=0.3, seed=0)(rows)
    pairs = transformers.DataCollatorForSeq2Seq(fast)(
        [dict(r, labels=r["input_ids"][:3]) for r in rows]
    )
    marks = transformers.DataCollatorForTokenClassification(fast)(
        [dict(r, labels=r["input_ids"]) for r in rows]
    )
    return padded, causal, masked, pairs, marks


@step("a batch goes to a device and a dtype, and into a DataLoader")
def _():
    fast = transformers.AutoTokenizer.from_pretrained("WordPiece")
    batch = fast(TEXTS[:3], padding=True, return_tensors="pt").to("cpu")
    rows = torch.utils.data.TensorDataset(batch.input_ids, batch.attention_mask)
    seen = [ids.sum() for ids, _ in torch.utils.data.DataLoader(rows, 2, shuffle=True)]
    return seen, str(batch.input_ids.device), fast(TEXTS[0], return_tensors="np")["input_ids"]


@step("tokens decoded from tensors, arrays and lists")
def _():
    fast = transformers.AutoTokenizer.from_pretrained("WordPiece")
    tokens = fast(TEXTS[0], return_tensors="pt").input_ids[0]
    return [fast.decode(each) for each in (tokens, np.asarray(tokens), tokens.tolist())]


@step("texts of other lengths without padding", refused=True)
def _():
    fast = transformers.AutoTokenizer.from_pretrained("WordPiece")
    fast(["the cat", "the cat sat on"], return_tensors="pt")


@step("a kind of tensors that there is not", refused=True)
def _():
    transformers.AutoTokenizer.from_pretrained("WordPiece")("the cat", return_tensors="xx")
