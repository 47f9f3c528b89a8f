"""Pipelines from a folder: text, pictures, sound."""

import numpy as np
import torch
import transformers
from PIL import Image
from steps import step
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import pipeline

transformers.logging.set_verbosity_error()
WORDS = "the cat dog sat ran on a mat fast slow red blue is where what it happy sad".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = {word: i for i, word in enumerate(SPECIAL + WORDS + ["?", ".", "##s"])}
SIZES = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}


def tokenizer():
    made = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, **dict(zip(names, SPECIAL)), model_max_length=32
    )


def folder(kind, name, **settings):
    torch.manual_seed(0)
    config = transformers.BertConfig(**SIZES, **settings)
    getattr(transformers, kind)(config).save_pretrained(name)
    tokenizer().save_pretrained(name)
    return name


@step("text-classification, one text and a batch")
def _():
    labels = {"id2label": {0: "good", 1: "bad"}, "label2id": {"good": 0, "bad": 1}}
    classify = pipeline(
        "text-classification", folder("BertForSequenceClassification", "texts", **labels)
    )
    return classify("the cat sat", top_k=None), classify(["the dog ran", "a mat"] * 3, batch_size=4)


@step("fill-mask")
def _():
    fill = pipeline("fill-mask", folder("BertForMaskedLM", "masks"))
    return fill("the [MASK] sat on a mat", top_k=3), fill("the [MASK] sat", targets=["cat", "dog"])


@step("token-classification, words put together")
def _():
    labels = {"id2label": {0: "O", 1: "B-X", 2: "I-X"}, "label2id": {"O": 0, "B-X": 1, "I-X": 2}}
    mark = pipeline("token-classification", folder("BertForTokenClassification", "words", **labels))
    return mark("the cats sat on a red mat"), mark(
        "the cats sat on a red mat", aggregation_strategy="average"
    )


@step("zero-shot-classification")
def _():
    labels = {"entailment": 0, "neutral": 1, "contradiction": 2}
    names = {v: k for k, v in labels.items()}
    made = folder("BertForSequenceClassification", "zero", id2label=names, label2id=labels)
    return pipeline("zero-shot-classification", made)("the cat sat", ["happy", "sad", "red"])


@step("feature-extraction")
def _():
    return pipeline("feature-extraction", folder("BertModel", "features"))(
        "a blue dog", return_tensors=True
    )


@step(
    "question-answering", refused="question-answering" not in transformers.pipelines.SUPPORTED_TASKS
)
def _():
    answer = pipeline("question-answering", folder("BertForQuestionAnswering", "answers"))
    return answer(question="where is the cat ?", context="the cat sat on a mat .")


@step("text-generation: a text, a batch, sampled, a chat")
def _():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=2)
    transformers.LlamaForCausalLM(config).save_pretrained("writer")
    made = tokenizer()
    made.chat_template = (
        "{% for message in messages %}{{ message.role }} {{ message.content }} [SEP] {% endfor %}"
    )
    made.save_pretrained("writer")
    write = pipeline("text-generation", "writer")
    torch.manual_seed(0)
    return (
        write("the cat", max_new_tokens=6, do_sample=False),
        write(["the dog", "a red mat is"], max_new_tokens=4, do_sample=False, batch_size=2),
        write("the cat", max_new_tokens=6, do_sample=True, num_return_sequences=2),
        write([{"role": "the", "content": "happy cat"}], max_new_tokens=4, do_sample=False),
    )


@step("image-classification and image-feature-extraction")
def _():
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8, num_labels=3)
    transformers.ViTForImageClassification(config).save_pretrained("pictures")
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    processor.save_pretrained("pictures")
    pixels = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    return (
        pipeline("image-classification", "pictures")(picture),
        pipeline("image-feature-extraction", "pictures")(picture),
    )


@step("automatic-speech-recognition by CTC, and audio-classification")
def _():
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    convolutions = {"conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8)}
    config = transformers.Wav2Vec2Config(
        **sizes, **convolutions, num_feat_extract_layers=2, num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2, vocab_size=8, num_labels=2, pad_token_id=0,
    )  # fmt: skip
    letters = {
        letter: i for i, letter in enumerate(["<pad>", "<s>", "</s>", "<unk>", "|", "a", "b", "c"])
    }
    import json
    from pathlib import Path

    Path("vocab.json").write_text(json.dumps(letters))
    spell = transformers.Wav2Vec2CTCTokenizer("vocab.json")
    extractor = transformers.Wav2Vec2FeatureExtractor()
    wave = np.random.default_rng(0).standard_normal(1600).astype(np.float32)
    found = []
    for task, kind in (
        ("automatic-speech-recognition", transformers.Wav2Vec2ForCTC),
        ("audio-classification", transformers.Wav2Vec2ForSequenceClassification),
    ):
        kind(config).save_pretrained(task)
        spell.save_pretrained(task)
        extractor.save_pretrained(task)
        found.append(pipeline(task, task)({"raw": wave, "sampling_rate": 16000}))
    return found


@step("a pipeline in bfloat16, by device_map")
def _():
    classify = pipeline("text-classification", "texts", dtype=torch.bfloat16, device_map="cpu")
    return [each["label"] for each in classify(["the cat", "a dog ran"])], str(classify.model.dtype)


@step("an unknown task", refused=True)
def _():
    pipeline("mind-reading", "texts")


@step("a text without a mask", refused=True)
def _():
    pipeline("fill-mask", "masks")("the cat")
