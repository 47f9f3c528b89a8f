"""The page of documentation: a small model from a folder, trained, and what it writes."""

from pathlib import Path

import torch
from steps import step

from tests.tools.markdown import ROOT, blocks

PAGE = Path(ROOT, "docs", "huggingface.md")


@step("the code of docs/huggingface.md: its loss, logits, and text")
def _():
    names = {}
    for block in blocks(PAGE.read_text()):
        if block.info == "python huggingface":
            exec(compile(block.text, str(PAGE), "exec"), names)
    logits = names["model"](names["prompt"]).logits
    return names["loss"], logits, names["text"], torch.initial_seed()
