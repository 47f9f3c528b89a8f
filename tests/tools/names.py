"""PyTorch's public names and what became of them here: `python -m tests.tools.names`.

Writes docs/names.md. With `--census FILE`, JSON as ``{"names": {name: {"repositories": n}}}``, it
prints which share of them, weighted by repositories, is here, and those that are not.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone._absent import LEFT_OUT, PLANNED, why
from tests.tools.markdown import ROOT

PAGE = ROOT / "docs" / "names.md"
SPACES = """
    torch torch.Tensor torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn
    torch.nn.utils.parametrize torch.nn.utils.parametrizations torch.nn.utils.prune
    torch.nn.parallel torch.nn.attention torch.nn.attention.flex_attention torch.nn.attention.bias
    torch.linalg torch.fft torch.special torch.func torch.distributions
    torch.autograd torch.autograd.functional torch.autograd.forward_ad torch.autograd.graph
    torch.autograd.profiler torch.optim torch.optim.lr_scheduler torch.optim.swa_utils
    torch.utils torch.utils.data torch.utils.checkpoint torch.utils.dlpack torch.utils.hooks
    torch.utils.tensorboard torch.utils.model_zoo torch.utils.collect_env torch.utils.benchmark
    torch.utils.flop_counter torch.utils.cpp_extension torch.utils.mobile_optimizer
    torch.utils.deterministic torch.cuda torch.cuda.amp torch.cuda.nvtx torch.cuda.profiler
    torch.amp torch.backends.cuda torch.backends.cudnn torch.backends.mkldnn
    torch.backends.opt_einsum torch.random torch.quasirandom torch.compiler torch.jit torch.onnx
    torch.fx torch.export torch.library torch.futures torch.sparse torch.nested torch.masked
    torch.ao.quantization torch.distributed torch.distributed.fsdp torch.distributed.checkpoint
    torch.distributed.checkpoint.state_dict torch.distributed.device_mesh
    torch.distributed.tensor torch.distributed.tensor.parallel torch.distributed.pipelining
    torch.distributed.optim torch.distributed.rpc torch.distributed.elastic.multiprocessing.errors
    torch.distributed.algorithms.ddp_comm_hooks.default_hooks torch.distributed.algorithms.join
    torch.profiler torch.testing torch.accelerator torch.hub torch.multiprocessing
    torch.serialization torch.overrides torch.package torch.numa
""".split()
INTRODUCTION = """\
# Names

Every public name of PyTorch {version} and what became of it. This page is made from the code by
`python -m tests.tools.names`. "Noted" are names that are here and that
[differences](differences.md) mentions; what is neither noted nor absent means the same.
"""


NOTHING = object()


class Space(NamedTuple):
    """The names of one of PyTorch's namespaces."""

    name: str
    here: list[str]
    noted: list[str]
    absent: dict[tuple[str, str] | None, list[str]]  # by status and reason


def find(root: Any, path: str) -> Any:
    """What a dotted name below ``torch`` stands for; NOTHING where there is nothing."""
    for part in path.split(".")[1:]:
        name = getattr(root, "__name__", "")
        if not hasattr(root, part) and isinstance(root, types.ModuleType):
            try:
                importlib.import_module(f"{name}.{part}")
            except ImportError:
                return NOTHING
        root = getattr(root, part, NOTHING)
    return root


def public_names(path: str) -> list[str]:
    """The names that PyTorch's namespace offers, but for modules and what it imports itself."""
    space = find(torch, path)
    listed = None if path == "torch" else getattr(space, "__all__", None)
    names = []
    for name in sorted(set(listed or dir(space))):
        value = getattr(space, name, None)
        home = str(getattr(value, "__module__", None) or "torch")
        if name.startswith("_") or isinstance(value, types.ModuleType) or name == "Tensor" != path:
            continue
        if space is torch.Tensor or home.startswith("torch"):
            names.append(name)
    return names


def space_of(path: str, notes: set[str]) -> Space:
    """What became of the names of one namespace."""
    mine = find(tlc, path)
    here: list[str] = []
    noted: list[str] = []
    absent: dict[tuple[str, str] | None, list[str]] = {}
    for name in public_names(path):
        if not hasattr(mine, name):
            absent.setdefault(why(f"{path}.{name}"), []).append(name)
        else:
            (noted if name in notes else here).append(name)
    return Space(path, here, noted, absent)


def spaces() -> list[Space]:
    """All namespaces, in the order of the page."""
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    notes = {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [space_of(path, notes) for path in SPACES]


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page(found: list[Space]) -> str:
    """The text of docs/names.md."""
    version = torch.__version__.partition("+")[0]
    lines = [INTRODUCTION.format(version=version)]
    lines += ["| namespace | names | here | of these noted | planned | left out |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for space in found:
        counts = dict.fromkeys((PLANNED, LEFT_OUT), 0)
        for reason, names in space.absent.items():
            counts[reason[0] if reason else PLANNED] += len(names)
        here = len(space.here) + len(space.noted)
        total = here + sum(counts.values())
        lines.append(
            f"| [{space.name}](#{space.name.replace('.', '').lower()}) | {total} | {here} | "
            f"{len(space.noted)} | {counts[PLANNED]} | {counts[LEFT_OUT]} |"
        )
    for space in found:
        lines += ["", f"## {space.name}", ""]
        if space.here:
            lines += [f"**Here**: {_list(space.here)}.", ""]
        if space.noted:
            lines += [f"**Noted**: {_list(space.noted)}.", ""]
        for reason, names in sorted(space.absent.items(), key=str):
            status, text = reason or (PLANNED, "no reason yet")
            lines += [f"**{status.capitalize()}** ({text}): {_list(names)}.", ""]
        lines.pop()
    return "\n".join(lines) + "\n"


def lacking_keywords(name: str) -> list[str] | None:
    """The keywords of PyTorch's function or class that ours does not take; None: it is neither."""
    try:
        theirs, ours = [inspect.signature(find(root, name)).parameters for root in (torch, tlc)]
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in ours.values()):
        return []
    return [
        keyword
        for keyword, parameter in theirs.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and keyword not in ours
        and keyword != "self"
        and not keyword.startswith("_")
    ]


def census(path: Path) -> None:
    """Print the share of a census that is here, what is not, and which keywords are missing."""
    names = json.loads(path.read_text(encoding="utf-8"))["names"]
    weights = {name: entry["repositories"] for name, entry in names.items()}
    absent = {name: weight for name, weight in weights.items() if find(tlc, name) is NOTHING}
    share = 1 - sum(absent.values()) / sum(weights.values())
    print(f"{share:.2%} of {len(weights)} names, weighted by repositories, are here")
    for name, weight in sorted(absent.items(), key=lambda item: -item[1]):
        print(f"{weight:4} {name}: {', '.join(why(name) or ('no reason',))}")
    lacking = {name: lacking_keywords(name) for name in weights if name not in absent}
    compared = [name for name, keywords in lacking.items() if keywords is not None]
    few = [name for name in compared if lacking[name]]
    print(f"{len(few)} of the {len(compared)} that have signatures lack keywords of PyTorch's")
    for name in few:
        print(f"{weights[name]:4} {name}: {', '.join(lacking[name] or ())}")


def main(arguments: list[str]) -> int:
    """Write the page, and print the share of a census."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.names", description=__doc__)
    parser.add_argument("--census", type=Path)
    options = parser.parse_args(arguments)
    PAGE.write_text(page(spaces()), encoding="utf-8")
    if options.census:
        census(options.census)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
