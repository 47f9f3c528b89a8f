"""The source distribution is complete, and the wheel made from it works outside the checkout."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.tools.markdown import ROOT

NAME = "tensorflow_lite_clone"
RUNTIME = {"numpy", "ml_dtypes", "threadpoolctl"}


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command; a failure shows everything it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def build(kind: str, source: Path, out: Path) -> Path:
    """Build an `sdist` or a `wheel`, without a network."""
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", out, cwd=source)
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", ROOT, folder / "out")) as archive:
        archive.extractall(folder, filter="data")
    return next(path for path in folder.iterdir() if path.name.startswith(NAME))


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the unpacked source distribution."""
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


def files(*folders: str, root: Path) -> set[str]:
    """The files below some folders, caches left out."""
    return {
        str(path.relative_to(root))
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def test_sdist_is_complete(unpacked: Path) -> None:
    folders = (NAME, "kernels", "tests", "docs", "examples")
    assert files(*folders, root=ROOT) - files(*folders, root=unpacked) == set()
    pages = {"README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml"}
    assert pages - {path.name for path in unpacked.iterdir()} == set()


def test_wheel_holds_package_and_kernels_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {
            name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")
        }
    kernels = {f"{NAME}/_{name}" for name in files("kernels", root=ROOT)}
    assert names == files(NAME, root=ROOT) | kernels
    assert f"{NAME}/py.typed" in names


def test_wheel_trains_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install"),
        *("--no-index", "--no-deps", "--disable-pip-version-check", wheel),
        cwd=tmp_path,
    )
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    # Only what the wheel itself declares is lent from this environment: an undeclared
    # dependency would be missed.
    installed = importlib.metadata.Distribution.at(next(site.glob(f"{NAME}-*.dist-info")))
    required = [line for line in installed.requires or () if "extra ==" not in line]
    names = {line.partition(">")[0].replace("-", "_") for line in required}
    assert names == RUNTIME
    for name in names:
        folders = {path.parts[0] for path in importlib.metadata.files(name) or ()}
        for folder in folders - {"..", "__pycache__"}:
            lent = importlib.metadata.distribution(name).locate_file(folder)
            (site / folder).symlink_to(str(lent))
    shutil.copy(ROOT / "tests" / "house" / "xor.py", tmp_path)
    printed = run(python, "-I", "-W", "error", "xor.py", cwd=tmp_path)
    assert "4 of 4 right" in printed
    assert str(site) in printed
