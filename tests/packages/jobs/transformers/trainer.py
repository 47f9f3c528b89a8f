"""Trainer: precision, accumulation, evaluation, saving, resuming."""

import json
from pathlib import Path

import numpy as np
import torch
from steps import step
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    EarlyStoppingCallback,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

ROWS = [(torch.arange(10) * (i + 3) + i) % 61 for i in range(24)]
DATA = [{"input_ids": row, "labels": row.clone()} for row in ROWS]


def llama(**options):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        **options,
    )
    return LlamaForCausalLM(config)


def bert():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=61,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        num_labels=3,
    )
    return BertForSequenceClassification(config)


LABELLED = [{"input_ids": row, "labels": int(row[1]) % 3} for row in ROWS]


def arguments(folder="out", **options):
    default = {
        "per_device_train_batch_size": 4,
        "max_steps": 6,
        "logging_steps": 1,
        "learning_rate": 5e-3,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "seed": 3,
    }
    return TrainingArguments(folder, **(default | options))


def history(trainer, *keys):
    keys = keys or ("loss", "grad_norm", "learning_rate")
    return [{k: row[k] for k in keys if k in row} for row in trainer.state.log_history]


def fitted(**options):
    trainer = Trainer(llama(), arguments(**options), train_dataset=DATA)
    trainer.train()
    return history(trainer), trainer.model.lm_head.weight


@step("training: losses, norms, rates, weights")
def _():
    return fitted()


@step("bf16")
def _():
    logs, _ = fitted(bf16=True)
    return [round(each["loss"], 2) for each in logs if "loss" in each]


@step("gradient checkpointing and accumulation")
def _():
    options = {"gradient_checkpointing": True, "gradient_accumulation_steps": 2}
    return fitted(gradient_checkpointing_kwargs={"use_reentrant": False}, **options), fitted(
        gradient_checkpointing_kwargs={"use_reentrant": True}, **options
    )


@step("label smoothing; NEFTune; clipping; group_by_length")
def _():
    return (
        fitted(label_smoothing_factor=0.1),
        fitted(neftune_noise_alpha=5.0),
        fitted(max_grad_norm=0.1),
        fitted(train_sampling_strategy="group_by_length"),
    )


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


@step("epochs with evaluation, the best checkpoint, early stopping")
def _():
    args = arguments(
        "best",
        max_steps=-1,
        num_train_epochs=4,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
    )
    trainer = Trainer(
        bert(),
        args,
        train_dataset=LABELLED[:16],
        eval_dataset=LABELLED[16:],
        compute_metrics=accuracy,
        callbacks=[EarlyStoppingCallback(2)],
    )
    trainer.train()
    kept = sorted(each.name for each in Path("best").iterdir())
    return history(trainer, "loss", "eval_loss", "eval_accuracy"), kept, trainer.state.best_metric


@step("saved, resumed from a checkpoint: the same as without a break")
def _():
    whole = Trainer(
        bert(), arguments("whole", save_strategy="steps", save_steps=3), train_dataset=LABELLED
    )
    whole.train()
    again = Trainer(bert(), arguments("whole"), train_dataset=LABELLED)
    again.train(resume_from_checkpoint="whole/checkpoint-3")
    files = sorted(each.name for each in Path("whole/checkpoint-3").iterdir())
    return history(whole), history(again), again.model.classifier.weight, files


@step("evaluate and predict; preprocess_logits_for_metrics; workers")
def _():
    trainer = Trainer(
        bert(),
        arguments(
            dataloader_num_workers=2, per_device_eval_batch_size=5, eval_accumulation_steps=2
        ),
        train_dataset=LABELLED,
        eval_dataset={"one": LABELLED[:6], "two": LABELLED[6:]},
        compute_metrics=lambda p: {"mean": float(np.mean(p.predictions))},
        preprocess_logits_for_metrics=lambda logits, labels: logits.softmax(-1)[:, 0],
    )
    trainer.train()
    metrics = trainer.evaluate()
    found = trainer.predict(LABELLED[:7])
    kept = {k: v for k, v in metrics.items() if k.endswith(("loss", "mean"))}
    return kept, found.predictions, found.label_ids, found.metrics["test_loss"]


@step("save_model, save_state, log files; load again")
def _():
    trainer = Trainer(llama(), arguments("kept"), train_dataset=DATA)
    result = trainer.train()
    trainer.save_model()
    trainer.save_state()
    trainer.save_metrics("train", {"loss": result.training_loss})
    again = LlamaForCausalLM.from_pretrained("kept")
    state = json.loads(Path("kept/trainer_state.json").read_text())
    args = torch.load("kept/training_args.bin", weights_only=False)
    files = sorted(each.name for each in Path("kept").iterdir())
    return (
        again.lm_head.weight,
        state["global_step"],
        files,
        args.learning_rate,
        result.training_loss,
    )


@step("callbacks: what is called when; stopping; changing the rate")
def _():
    class Seen(TrainerCallback):
        def __init__(self):
            self.seen = []

        def on_train_begin(self, args, state, control, **kwargs):
            self.seen.append("begin")

        def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
            self.seen.append(float(model.lm_head.weight.grad.norm()))

        def on_step_end(self, args, state, control, optimizer=None, **kwargs):
            optimizer.param_groups[0]["weight_decay"] = 0.1 * state.global_step
            control.should_training_stop = state.global_step == 3

        def on_train_end(self, args, state, control, **kwargs):
            self.seen.append(state.global_step)

    seen = Seen()
    trainer = Trainer(llama(), arguments(), train_dataset=DATA, callbacks=[seen])
    trainer.train()
    return seen.seen, history(trainer)


@step("an optimizer, a schedule, a loss, a step, a sampler of one's own")
def _():
    class Mine(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
            out = model(input_ids=inputs["input_ids"])
            loss = out.logits.float().logsumexp(-1).square().mean()
            return (loss, out) if return_outputs else loss

        def _get_train_sampler(self, dataset=None):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    model = llama()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    trainer = Mine(model, arguments(), train_dataset=DATA, optimizers=(optimizer, schedule))
    trainer.train()
    return history(trainer), trainer.evaluate(DATA[:3])["eval_loss"]


@step("torch_compile with the eager backend")
def _():
    return fitted(torch_compile=True, torch_compile_backend="eager")


@step("datasets, tokens and a collator; removed columns; length")
def _():
    from datasets import Dataset
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

    words = "[PAD] [MASK] [UNK] the cat sat on a mat and ran far away from home".split()
    raw = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", mask_token="[MASK]", unk_token="[UNK]"
    )
    texts = ["the cat sat on a mat", "the cat ran far away", "a mat and the cat from home"] * 4
    data = Dataset.from_dict({"text": texts, "unused": list(range(12))})
    data = data.map(lambda row: tokenizer(row["text"]), batched=True)
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    trainer = Trainer(
        llama(), arguments(), train_dataset=data, data_collator=collator, processing_class=tokenizer
    )
    trainer.train()
    trainer.save_model("tokens")
    return history(trainer), sorted(each.name for each in Path("tokens").iterdir())


@step("hyperparameter_search by a function of one's own; model_init")
def _():
    set_seed(1)
    trainer = Trainer(
        None,
        arguments(max_steps=3),
        train_dataset=DATA,
        eval_dataset=DATA[:4],
        model_init=lambda: llama(),
    )
    losses = []
    for rate in (1e-3, 1e-2):
        trainer.args.learning_rate = rate
        losses.append(trainer.train().training_loss)
    return losses


@step("average_tokens, include_num_input_tokens_seen, auto_find_batch_size")
def _():
    args = arguments(include_num_input_tokens_seen=True, auto_find_batch_size=True)
    trainer = Trainer(llama(), args, train_dataset=DATA)
    trainer.train()
    return history(trainer, "loss", "num_input_tokens_seen")


@step("an IterableDataset, the last batch dropped, a batch that is not a dictionary of tensors")
def _():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield from DATA

    trainer = Trainer(llama(), arguments(dataloader_drop_last=True), train_dataset=Stream())
    trainer.train()
    return history(trainer)


@step("TensorBoard")
def _():
    import os

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    os.environ["TENSORBOARD_LOGGING_DIR"] = "board"
    trainer = Trainer(llama(), arguments(report_to=["tensorboard"]), train_dataset=DATA)
    trainer.train()
    events = EventAccumulator("board")
    events.Reload()
    return [each.value for each in events.Scalars("train/loss")]


@step("refused: no data", refused=True)
def _():
    Trainer(llama(), arguments()).train()


@step("refused: an unknown optimizer", refused=True)
def _():
    arguments(optim="adamw_of_mine")


@step("refused: a checkpoint that is not there", refused=True)
def _():
    Trainer(llama(), arguments("empty"), train_dataset=DATA).train(resume_from_checkpoint=True)


@step("refused: a checkpoint of another width", refused=True)
def _():
    args = arguments("narrow", save_strategy="steps", save_steps=2, max_steps=2)
    Trainer(llama(), args, train_dataset=DATA).train()
    torch.manual_seed(0)
    wide = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=61,
            hidden_size=64,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
        )
    )
    trainer = Trainer(wide, arguments("other"), train_dataset=DATA)
    trainer.train(resume_from_checkpoint="narrow/checkpoint-2")


@step("refused: labels that are out of range", refused=True)
def _():
    bad = [{"input_ids": row, "labels": 5} for row in ROWS]
    Trainer(bert(), arguments(), train_dataset=bad).train()


@step("refused: rows of other lengths without a collator", refused=True)
def _():
    rows = [{"input_ids": list(range(3 + i)), "labels": list(range(3 + i))} for i in range(6)]
    Trainer(llama(), arguments(), train_dataset=rows).train()


@step("refused: evaluation without data", refused=True)
def _():
    Trainer(llama(), arguments(eval_strategy="steps"), train_dataset=DATA)
