"""Trainer: schedules and optimizers."""

import torch
from steps import step
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

ROWS = [(torch.arange(10) * (i + 3) + i) % 61 for i in range(24)]
DATA = [{"input_ids": row, "labels": row.clone()} for row in ROWS]


def llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config)


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


SCHEDULES = {
    "linear": {"warmup_steps": 2},
    "cosine": {"warmup_steps": 0.25},
    "cosine_with_restarts": {"lr_scheduler_kwargs": {"num_cycles": 2}},
    "cosine_with_min_lr": {"lr_scheduler_kwargs": {"min_lr": 1e-3}},
    "polynomial": {"lr_scheduler_kwargs": {"power": 2.0}},
    "constant_with_warmup": {"warmup_steps": 3},
    "inverse_sqrt": {"warmup_steps": 2},
    "warmup_stable_decay": {"warmup_steps": 1, "lr_scheduler_kwargs": {"num_decay_steps": 3}},
    "reduce_lr_on_plateau": {"eval_strategy": "steps", "eval_steps": 1},
}


@step("schedules")
def _():
    found = {}
    for name, options in SCHEDULES.items():
        args = arguments(lr_scheduler_type=name, **options)
        trainer = Trainer(llama(), args, train_dataset=DATA, eval_dataset=DATA[:4])
        trainer.train()
        found[name] = history(trainer, "loss", "learning_rate", "eval_loss")
    return found


OPTIMIZERS = {
    "adamw_torch": {"weight_decay": 0.1},
    "adamw_torch_fused": {"adam_beta2": 0.95},
    "adafactor": {},
    "sgd": {"learning_rate": 0.1, "optim_args": "momentum=0.9"},
    "adagrad": {},
    "rmsprop": {"learning_rate": 1e-3},
    "adamw_bnb_8bit": {},
    "adamw_8bit": {},
    "lion_8bit": {"learning_rate": 1e-3},
    "lion_32bit": {"learning_rate": 1e-3},
    "ademamix": {},
    "rmsprop_bnb": {"learning_rate": 1e-3},
    "paged_adamw_32bit": {},
}
for name, options in OPTIMIZERS.items():

    @step(f"optimizer {name}", name, options)
    def _(name, options):
        return fitted(optim=name, max_steps=4, **options)
