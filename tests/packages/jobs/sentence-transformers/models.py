"""Embeddings of sentences: from a folder, encoding, search, training, reranking."""

import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer, losses, models, util
from steps import step
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers import models as kinds

transformers.logging.set_verbosity_error()
WORDS = "the cat dog sat ran on a mat fast slow red blue is where what it happy sad".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = ["the cat sat on a mat", "a dog ran fast", "the mat is red", "it is sad", "what is blue"]


def tokenizer():
    made = Tokenizer(
        kinds.WordLevel({w: i for i, w in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, **dict(zip(names, SPECIAL)), model_max_length=32
    )


torch.manual_seed(0)
CONFIG = transformers.BertConfig(
    vocab_size=len(SPECIAL + WORDS),
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    initializer_range=0.3,
    num_labels=1,
)
transformers.BertModel(CONFIG).save_pretrained("bert")
transformers.BertForSequenceClassification(CONFIG).save_pretrained("ranker")
for folder in ("bert", "ranker"):
    tokenizer().save_pretrained(folder)


def built(pooling="mean", *more):
    words = models.Transformer("bert", max_seq_length=16)
    return SentenceTransformer(modules=[words, models.Pooling(32, pooling), *more], device="cpu")


for pooling in ("mean", "cls", "max", "weightedmean", "lasttoken", "mean_sqrt_len_tokens"):

    @step(f"encoding with pooling {pooling}", pooling)
    def _(pooling):
        return built(pooling).encode(TEXTS, batch_size=2)


@step("saved and loaded with a dense layer and normalization; similarity")
def _():
    built("mean", models.Dense(32, 8), models.Normalize()).save("sentences")
    model = SentenceTransformer("sentences", device="cpu")
    found = model.encode(TEXTS, convert_to_tensor=True)
    return found, model.similarity(found, found), model.similarity_pairwise(found[:2], found[2:4])


@step("embeddings of tokens, shortened ones, quantized ones, with prompts")
def _():
    model = built()
    model.prompts = {"query": "what is "}
    return (
        model.encode(TEXTS[:2], output_value="token_embeddings"),
        model.encode(TEXTS, truncate_dim=8, normalize_embeddings=True),
        model.encode(TEXTS, precision="binary"),
        model.encode(TEXTS, prompt_name="query"),
    )


@step("search, paraphrases, communities")
def _():
    found = built().encode(TEXTS * 2, convert_to_tensor=True)
    return (
        util.semantic_search(found[:2], found, top_k=3),
        util.paraphrase_mining_embeddings(found[: len(TEXTS)], top_k=2)[:4],
        util.community_detection(found, min_community_size=2, threshold=0.99),
    )


PAIRS = list(zip(TEXTS[:4], TEXTS[1:]))
LOSSES = {
    "MultipleNegativesRankingLoss": None,
    "CosineSimilarityLoss": torch.tensor([0.1, 0.9, 0.4, 0.6]),
    "CoSENTLoss": torch.tensor([0.1, 0.9, 0.4, 0.6]),
    "AnglELoss": torch.tensor([0.1, 0.9, 0.4, 0.6]),
    "ContrastiveLoss": torch.tensor([1, 0, 1, 0]),
    "OnlineContrastiveLoss": torch.tensor([1, 0, 1, 0]),
}


for name, labels in LOSSES.items():

    @step(f"{name}: five steps of training", name, labels)
    def _(name, labels):
        model = built().eval()
        loss = getattr(losses, name)(model)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        found = []
        for _ in range(5):
            sides = [model.tokenize([pair[i] for pair in PAIRS]) for i in (0, 1)]
            value = loss(sides, labels)
            value.backward()
            optimizer.step()
            optimizer.zero_grad()
            found.append(value.item())
        return found, model.encode(TEXTS)


@step("triplets, and losses over several widths")
def _():
    model = built().eval()
    inner = losses.MultipleNegativesRankingLoss(model)
    sides = [model.tokenize(TEXTS[i : i + 3]) for i in (0, 1, 2)]
    triplets = losses.TripletLoss(model)(sides, None)
    wide = losses.MatryoshkaLoss(model, inner, [32, 16, 8])
    value = wide([model.tokenize(TEXTS[i : i + 3]) for i in (0, 1)], None)
    value.backward()
    return (
        triplets,
        value,
        [p.grad.norm() for p in list(model.parameters())[-4:] if p.grad is not None],
    )


@step("a cross-encoder: scores and ranks")
def _():
    ranker = CrossEncoder("ranker", device="cpu", num_labels=1)
    scores = ranker.predict(PAIRS, convert_to_tensor=True)
    ranks = ranker.rank(TEXTS[0], TEXTS[1:], return_documents=True)
    ranker.save_pretrained("saved-ranker")
    again = CrossEncoder("saved-ranker", device="cpu").predict(PAIRS)
    return scores, ranks, again


@step("evaluators: similarity, retrieval")
def _():
    from sentence_transformers.evaluation import (
        EmbeddingSimilarityEvaluator,
        InformationRetrievalEvaluator,
    )

    model = built()
    alike = EmbeddingSimilarityEvaluator(TEXTS[:4], TEXTS[1:], [0.1, 0.9, 0.4, 0.6])(model)
    documents = {str(i): text for i, text in enumerate(TEXTS)}
    queries = {"a": TEXTS[0], "b": "is it a mat"}
    found = InformationRetrievalEvaluator(queries, documents, {"a": {"0"}, "b": {"2", "3"}})(model)
    return alike, found


@step("the trainer: losses and embeddings")
def _():
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )

    model = built()
    rows = Dataset.from_dict({"anchor": [p[0] for p in PAIRS], "positive": [p[1] for p in PAIRS]})
    arguments = SentenceTransformerTrainingArguments(
        "out", num_train_epochs=3, per_device_train_batch_size=2, logging_steps=1,
        learning_rate=1e-3, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model, arguments, train_dataset=rows, loss=losses.MultipleNegativesRankingLoss(model)
    )
    trainer.train()
    logged = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    return [float(each) for each in logged], model.encode(TEXTS)


@step("a folder that is not there", refused=True)
def _():
    SentenceTransformer("./nowhere", device="cpu")


@step("widths that do not fit", refused=True)
def _():
    built("mean", models.Dense(16, 8)).encode(TEXTS)
