"""Trainer in several processes, of sequences, with adapters; programs of their own."""

import json
import subprocess
from pathlib import Path

import torch
from steps import python, step
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)

PROGRAM = """
import json, sys, torch
if "+tlc" not in torch.__version__:  # as run.py does
    from tests.vision.declared import imported
    imported()
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
rows = [(torch.arange(10) * (i + 3) + i) % 61 for i in range(26)]
data = [{"input_ids": row, "labels": row.clone()} for row in rows]
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=61, hidden_size=32, intermediate_size=48,
    num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64))
args = TrainingArguments("two", per_device_train_batch_size=2, max_steps=5, logging_steps=1,
    learning_rate=5e-3, save_strategy="steps", save_steps=3, report_to=[], use_cpu=True,
    disable_tqdm=True, eval_strategy="steps", eval_steps=5, seed=3, **json.loads(sys.argv[1]))
trainer = Trainer(model, args, train_dataset=data, eval_dataset=data[:7])
trainer.train()
found = trainer.predict(data[:5]).predictions
if trainer.is_world_process_zero():
    keys = ("loss", "grad_norm", "eval_loss")
    logs = [{k: row[k] for k in keys if k in row} for row in trainer.state.log_history]
    weight = trainer.accelerator.unwrap_model(trainer.model).lm_head.weight.tolist()
    open("found.json", "w").write(json.dumps([logs, weight, found[:, 0].tolist()]))
"""


def launched(port, **options):
    Path("program.py").write_text(PROGRAM)
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    subprocess.run([*python(), *launch, "program.py", json.dumps(options)], check=True)
    return json.loads(Path("found.json").read_text())


@step("two processes: losses, weights, predictions")
def _():
    return launched(29731)


@step("two processes with accumulation, checkpointing, and find_unused_parameters")
def _():
    return launched(
        29741,
        gradient_accumulation_steps=2,
        gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        ddp_find_unused_parameters=True,
    )


def t5():
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=40,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    return T5ForConditionalGeneration(config)


@step("Seq2SeqTrainer: losses, generated tokens, metrics")
def _():
    rows = [(torch.arange(6) * (i + 2) + i) % 37 + 3 for i in range(12)]
    data = [{"input_ids": row, "labels": row.flip(0)} for row in rows]
    args = Seq2SeqTrainingArguments(
        "t5",
        per_device_train_batch_size=4,
        max_steps=8,
        logging_steps=1,
        learning_rate=1e-2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        predict_with_generate=True,
        generation_max_length=8,
        generation_num_beams=2,
    )
    trainer = Seq2SeqTrainer(
        t5(),
        args,
        train_dataset=data,
        eval_dataset=data[:5],
        compute_metrics=lambda p: {"mean": float(p.predictions.mean())},
    )
    trainer.train()
    found = trainer.predict(data[:3], max_length=7, num_beams=1)
    kept = {k: v for k, v in trainer.evaluate().items() if k in ("eval_loss", "eval_mean")}
    return [row.get("loss") for row in trainer.state.log_history], found.predictions, kept


@step("PEFT and Trainer: losses, the adapter saved and resumed")
def _():
    from peft import LoraConfig, get_peft_model

    rows = [(torch.arange(10) * (i + 3) + i) % 61 for i in range(24)]
    data = [{"input_ids": row, "labels": row.clone()} for row in rows]

    def model():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=61,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
        )
        base = LlamaForCausalLM(config)
        return get_peft_model(
            base, LoraConfig(r=4, task_type="CAUSAL_LM", target_modules="all-linear")
        )

    def args(**options):
        return TrainingArguments(
            "adapter",
            per_device_train_batch_size=4,
            max_steps=6,
            logging_steps=1,
            learning_rate=2e-2,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            gradient_checkpointing=True,
            gradient_checkpointing_kwargs={"use_reentrant": False},
            **options,
        )

    trainer = Trainer(model(), args(save_strategy="steps", save_steps=3), train_dataset=data)
    trainer.train()
    again = Trainer(model(), args(save_strategy="no"), train_dataset=data)
    again.train(resume_from_checkpoint="adapter/checkpoint-3")
    files = sorted(each.name for each in Path("adapter/checkpoint-3").iterdir())
    losses = [[row.get("loss") for row in t.state.log_history] for t in (trainer, again)]
    return losses, files


@step("the command line of a training script: HfArgumentParser")
def _():
    from transformers import HfArgumentParser

    args, rest = HfArgumentParser((TrainingArguments,)).parse_args_into_dataclasses(
        [
            "--output_dir",
            "x",
            "--learning_rate",
            "0.01",
            "--bf16",
            "false",
            "--use_cpu",
            "--other",
            "1",
        ],
        return_remaining_strings=True,
    )
    return args.learning_rate, args.device, args.n_gpu, rest, sorted(args.to_dict())[:20]


@step("refused: other labels than tokens", refused=True)
def _():
    data = [{"input_ids": torch.arange(6), "labels": torch.tensor([50, 1, 2])}] * 4
    args = TrainingArguments("bad", max_steps=1, report_to=[], use_cpu=True, disable_tqdm=True)
    Trainer(t5(), args, train_dataset=data).train()
