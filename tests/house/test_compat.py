"""The modules of `compat` are found in PyTorch's places, by our name and by ``torch``."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.house.sources import PACKAGE, modules
from tests.tools.markdown import ROOT

COMPAT = f"{PACKAGE}.compat"


def mounted() -> dict[str, Path]:
    """The name of a module in its place -> its file; without the folders of other rooms' parts."""
    known = modules()
    names = {
        name.replace(COMPAT, PACKAGE): path
        for name, path in known.items()
        if name.startswith(f"{COMPAT}.")
    }
    return {
        name: path
        for name, path in names.items()
        if not (path.name == "__init__.py" and name in known)
    }


@pytest.mark.parametrize("name", mounted())
def test_a_module_is_found_in_its_place(name: str) -> None:
    spec = find_spec(name)
    assert spec is not None and spec.origin == str(mounted()[name])


def test_nothing_lies_in_both_places() -> None:
    assert mounted().keys() & modules().keys() == set()


def test_the_drop_in_finds_them() -> None:
    names = [name.replace(PACKAGE, "torch", 1) for name in mounted()]
    program = f"""
import sys, tensorflow_lite_clone
tensorflow_lite_clone.install_as_torch()
for name in {names}:
    __import__(name)
    assert sys.modules[name] is sys.modules[name.replace("torch", "{PACKAGE}", 1)], name
assert not [name for name in sys.modules if name.startswith("{COMPAT}")]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=ROOT, check=True)
