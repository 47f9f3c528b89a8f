"""The page docs/packages.md and the table of the command `packages`, from the results."""

from __future__ import annotations

import ast
import json
from typing import Any

from tests.tools.markdown import ROOT
from tests.tools.packages.reasons import REASONS, WITHOUT

PAGE = ROOT / "docs" / "packages.md"
TABLE = ROOT / "tensorflow_lite_clone" / "dropin" / "packages.json"
JOBS = ROOT / "tests" / "packages" / "jobs"
#: Distributions whose module has another name.
MODULES = {
    "mlflow-skinny": "mlflow",
    "open-clip-torch": "open_clip",
    "pykan": "kan",
    "pyro-ppl": "pyro",
    "pytorch-ignite": "ignite",
    "scikit-learn": "sklearn",
}
INTRODUCTION = """\
# Packages written for PyTorch

`python -m tensorflow_lite_clone script.py` makes `import torch` mean this package for all that the
script imports. {packages} packages were tried with it on a CPU, in {steps} steps: each ran under
PyTorch {torch} in one environment and here in another, without PyTorch, and what it computed was
compared, numbers to one part in a thousand. {equal} were equal ({share:.1f} %). The steps are the
programs in `tests/packages/jobs/`; this page is made by `python -m tests.tools.packages` (last run
{date}, Python {python}). Nothing beyond what is listed was tried.
`python -m tensorflow_lite_clone packages` says which of these packages you have, and at which
version they were tried.

A package finds PyTorch's version where it asks for it; nothing of PyTorch is installed. Install one
with `pip install --no-deps`, and what it needs besides PyTorch as its metadata says: see
[Hugging Face without PyTorch](huggingface.md) for a whole example.
"""


def module_of(distribution: str) -> str:
    """The name that a distribution is imported by."""
    return MODULES.get(distribution, distribution.replace("-", "_"))


def write(results: dict[str, Any]) -> None:
    """Write the page and the table."""
    packages = dict(sorted(results["packages"].items(), key=lambda item: item[0].lower()))
    counts = {name: _count(entry) for name, entry in packages.items()}
    total = sum(judged for judged, _ in counts.values())
    equal = sum(equal for _, equal in counts.values())
    text = [
        INTRODUCTION.format(
            packages=len(packages),
            steps=total,
            equal=equal,
            share=100 * equal / max(total, 1),
            **{key: results[key] for key in ("torch", "date", "python")},
        ),
        "| package | version | what was run | equal steps | modules imported |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for name, entry in packages.items():
        judged, same = counts[name]
        what = "; ".join(_title(name, job) for job in sorted(entry["jobs"]))
        text.append(
            f"| {name} | {entry['version']} | {what} | {same} of {judged} | {_imports(entry)} |"
        )
    text += ["", "## What is not equal", ""]
    text += _unequal(packages) or ["Nothing."]
    text += ["", "## Modules that cannot be imported", ""]
    text += _lost(packages) or ["None of those that PyTorch's installation can import."]
    text += ["", "## All steps", ""]
    for name, entry in packages.items():
        for job, steps in sorted(entry["jobs"].items()):
            names = "; ".join(step["step"] for step in steps if step["result"] != "not judged")
            text.append(f"* **{name}**, {_title(name, job)}: {names}.")
    PAGE.write_text("\n".join(text) + "\n")
    table = {
        name: {
            "version": entry["version"],
            "steps": counts[name][0],
            "equal": counts[name][1],
            "notes": [line.removeprefix("* ") for line in _unequal({name: entry})],
        }
        for name, entry in packages.items()
    }
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


def _title(package: str, job: str) -> str:
    """The first line of a job's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse((JOBS / package / f"{job}.py").read_text())) or job
    return text.partition("\n")[0].removesuffix(".")


def _count(entry: dict[str, Any]) -> tuple[int, int]:
    """How many steps were judged, and how many of them were equal."""
    found = [step["result"] for steps in entry["jobs"].values() for step in steps]
    return len(found) - found.count("not judged"), found.count("equal")


def _imports(entry: dict[str, Any]) -> str:
    found = entry.get("imports")
    return f"{found['oracle'] - len(found['lost'])} of {found['oracle']}" if found else ""


def _unequal(packages: dict[str, Any]) -> list[str]:
    return [
        f"* {name}, {step['step']}: {REASONS.get((name, step['step'])) or step['detail']}"
        for name, entry in packages.items()
        for steps in entry["jobs"].values()
        for step in steps
        if step["result"] in ("differs", "fails")
    ]


def _lost(packages: dict[str, Any]) -> list[str]:
    return [
        f"* `{module}`: {WITHOUT.get(module) or error}"
        for entry in packages.values()
        for module, error in entry.get("imports", {}).get("lost", {}).items()
    ]
