"""`import torch` means this package: in a program, in what it starts, and not a moment longer."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dropin import finder
from tests.dropin.programs import printed, run
from tests.tools.markdown import ROOT

FORKED = Path(__file__).parent / "forked.py"
SAME = """
import sys, torch, torch.nn as nn, torch.nn.functional as F, torchvision
import torch.optim.lr_scheduler as schedules
from torch.utils.data import DataLoader, TensorDataset
from torch.nn.utils.rnn import pad_sequence
from torchvision import transforms
import tensorflow_lite_clone as tlc
assert torch is tlc and nn is tlc.nn and F is tlc.nn.functional and torchvision is tlc.vision
assert schedules is tlc.optim.lr_scheduler and sys.modules["torch.nn.functional"] is F
assert transforms is tlc.vision.transforms and torch.tensor([2.0]).item() == 2
import torch.tensor  # a function here, and a package by accident
assert torch.tensor([2.0]).item() == 2
assert not [m for m in sys.modules if m == "torch._C"]
print(__name__, __file__, sys.argv, sys.path[0])
"""


def written(folder: Path, text: str, name: str = "program.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_names_are_this_package(tmp_path):
    path = written(tmp_path, SAME)
    expected = f"__main__ {path} {[str(path), '--a', 'b']} {tmp_path}\n"
    assert printed(path, "--a", "b", cwd=tmp_path.parent) == expected


def test_a_program_knows_where_it_lies_when_it_changes_its_folder(tmp_path):
    written(tmp_path, "import os, sys\nos.chdir('/')\nprint(__file__, sys.argv[0])")
    (line,) = printed("./program.py", cwd=tmp_path).splitlines()
    assert line == f"{tmp_path.resolve()}/./program.py ./program.py"  # as `python ./program.py`


def test_module(tmp_path):
    (tmp_path / "package").mkdir()
    written(tmp_path / "package", "import torch\nlocal = torch.__package__\n", "__init__.py")
    written(
        tmp_path / "package",
        "import sys\nfrom . import local\nprint(local, sys.argv[1:])",
        "run.py",
    )
    assert printed("-m", "package.run", "x", cwd=tmp_path) == "tensorflow_lite_clone ['x']\n"
    assert printed("-m", "timeit", "-n1", "-r1", "import torch", cwd=tmp_path).startswith("1 loop")


def test_folder_and_archive(tmp_path):
    path = written(
        tmp_path, "import torch, other\nprint(torch.__package__, other.x)", "__main__.py"
    )
    other = written(tmp_path, "import torch.nn\nx = torch.nn.__name__", "other.py")
    assert printed(tmp_path, cwd=tmp_path) == "tensorflow_lite_clone tensorflow_lite_clone.nn\n"
    with zipfile.ZipFile(tmp_path / "program.pyz", "w") as archive:
        archive.write(path, path.name)
        archive.write(other, other.name)
    other.unlink()
    expected = "tensorflow_lite_clone tensorflow_lite_clone.nn\n"
    assert printed("program.pyz", cwd=tmp_path) == expected


def test_command_line(tmp_path):
    assert "usage" in printed("--help", cwd=tmp_path)
    assert printed("--version", cwd=tmp_path).startswith("tensorflow_lite_clone ")
    for arguments in ((), ("-m",), ("--other",)):
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 2 and "usage" in done.stderr
    done = run("absent.py", cwd=tmp_path)
    assert done.returncode == 1 and "no file 'absent.py'" in done.stderr


#: What the package, or a library that it uses, imports; and what Python has by then.
SHADOWING = [
    "numpy",
    "random",
    "typing",
    "math",
    "tempfile",
    "ml_dtypes",
    "enum",
    "weakref",
    "torch",
]


@pytest.fixture
def shadows(tmp_path):
    """A folder of modules that fail when they are imported, and a program beside it."""
    folder = tmp_path / "current"
    folder.mkdir()
    for name in SHADOWING:
        (folder / f"{name}.py").write_text(f"raise SystemExit('the current folder: {name}')")
    (tmp_path / "elsewhere").mkdir()
    text = (
        "import sys, torch, random, typing, numpy\n"
        "print(torch.__package__, sys.path[0], sys.argv)\n"
    )
    return folder, written(tmp_path / "elsewhere", text)


def test_the_folder_of_the_package_is_last_on_the_path(tmp_path):
    """Where the package is not installed, processes that a program starts find it there."""
    path = written(tmp_path, "import sys; print(sys.path[-1], *sys.path[:1])")
    done = subprocess.run(
        [sys.executable, "-S", "-m", "tensorflow_lite_clone", str(path)],  # no links to checkouts
        cwd=ROOT, env={**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [str(ROOT), str(tmp_path)]


def test_the_current_folder_is_not_on_the_path(shadows):
    folder, path = shadows
    expected = f"tensorflow_lite_clone {path.parent} {[str(path), 'x']}\n"
    assert printed(path, "x", cwd=folder) == expected
    assert "usage" in printed("--help", cwd=folder)
    options = subprocess.run(
        [sys.executable, "-W", "error", "-mtensorflow_lite_clone", str(path), "x"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert options.stdout == expected, options.stderr


@pytest.mark.parametrize("module", ("distributed.run", "distributed.launch"))
def test_the_current_folder_is_none_of_a_launchers(shadows, module):
    folder, path = shadows
    done = subprocess.run(
        [sys.executable, f"-mtensorflow_lite_clone.{module}", "--nproc_per_node=1", str(path), "x"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    expected = f"tensorflow_lite_clone {path.parent} {[str(path), 'x']}\n"
    assert done.stdout == expected, done.stderr


def test_the_script_tlc(shadows):
    """As an installer writes it, whose folder is none of the program's either."""
    folder, path = shadows
    script = path.with_name("tlc")
    (path.parent / "bin").mkdir()
    script = written(
        path.parent / "bin",
        "import sys\nfrom tensorflow_lite_clone.dropin.run import main\nsys.exit(main())\n",
        "tlc",
    )
    expected = f"tensorflow_lite_clone {path.parent} {[str(path)]}\n"
    assert printed(script, path, cwd=folder, here=False) == expected


def test_a_module_is_found_in_the_current_folder(shadows):
    folder, _ = shadows
    written(folder, "import sys, torch\nprint(torch.__package__, sys.path[0])\n", "here.py")
    assert printed("-m", "here", cwd=folder) == f"tensorflow_lite_clone {folder}\n"


def test_a_safe_path_stays_safe(tmp_path):
    """Under ``python -P`` no folder of a program is on the path, and no other entry is lost."""
    path = written(tmp_path, "import sys\nprint(sys.path)\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    done = {}
    for command in ([], ["-m", "tensorflow_lite_clone"]):
        line = [sys.executable, *command, str(path)]
        output = subprocess.check_output(line, env=environment, cwd=tmp_path, text=True)
        done[len(command)] = ast.literal_eval(output)
    assert [entry for entry in done[2] if entry in done[0]] == done[0]
    assert str(tmp_path) not in done[2]


def test_an_error_shows_the_program_alone(tmp_path):
    path = written(tmp_path, "import torch\n\ndef f():\n    torch.ones(2) @ torch.ones(3)\n\nf()\n")
    done = run(path, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(
        f'Traceback (most recent call last):\n  File "{path}", line 6, in <module>\n    f()\n'
    )
    assert run(written(tmp_path, "raise SystemExit(7)"), cwd=tmp_path).returncode == 7


def test_names_stay_until_the_end(tmp_path):
    text = "import atexit\nx = 3\natexit.register(lambda: print(x, __name__))\n"
    assert printed(written(tmp_path, text), cwd=tmp_path) == "3 __main__\n"


CHILDREN = """
import multiprocessing, subprocess, sys
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        import torch
        assert torch.__package__ == "tensorflow_lite_clone"
        return torch.tensor([index ** 2])

def work(queue):
    import torch, torchvision
    queue.put((torch.__package__, torchvision.__name__, torch.ones(2).sum().item()))

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=work, args=(queue,))
        process.start()
        print(queue.get())
        process.join()
        batches = DataLoader(Squares(), 2, num_workers=1, multiprocessing_context=method)
        print([batch.tolist() for batch in batches])
    code = "import torchvision.transforms, torch.nn as n; print(torchvision.__name__, n.__name__)"
    print(subprocess.check_output([sys.executable, "-c", code], text=True))
    code = "import importlib.metadata as m; print(m.version('torch'), m.version('torchvision'))"
    print(subprocess.check_output([sys.executable, "-c", code], text=True))
"""


def test_processes_that_a_program_starts(tmp_path):
    lines = printed(written(tmp_path, CHILDREN), cwd=tmp_path).split("\n")
    name = "tensorflow_lite_clone"
    one = [str((name, f"{name}.vision", 2.0)), "[[[0], [1]], [[4], [9]]]"]
    versions = " ".join(path.name.split("-")[1][:-5] for path in sorted(finder.PATH.glob("*-info")))
    assert lines == [*one, *one, f"{name}.vision {name}.nn", "", versions, "", ""]
    assert versions.split()[0] == tlc.__version__.split("+")[0]


def test_a_process_without_the_package_on_its_path(tmp_path):
    """A child whose path has what stands for torch, and no way to the package but from there."""
    text = f"""
import subprocess, sys, os
environment = dict(os.environ, PYTHONPATH={str(finder.PATH)!r})
print(subprocess.check_output(
    [sys.executable, "-c", "import torch; print(torch.__package__)"], env=environment, text=True))
"""
    assert "tensorflow_lite_clone" in printed(written(tmp_path, text), cwd=tmp_path, here=False)


INSIDE = """
import tensorflow_lite_clone as tlc
tlc.install_as_torch()
tlc.install_as_torch()
import sys, torch, torch.nn.utils.rnn
assert torch is tlc and torch.nn.utils.rnn is tlc.nn.utils.rnn
print(sum(type(f).__module__.startswith("tensorflow_lite_clone") for f in sys.meta_path))
"""


def test_inside_a_program(tmp_path):
    assert printed(written(tmp_path, INSIDE), cwd=tmp_path, here=False) == "2\n"


def test_too_late(tmp_path):
    written(tmp_path, "x = 1", "torch.py")
    text = "import torch, tensorflow_lite_clone as t\nt.install_as_torch()"
    done = run(written(tmp_path, text), cwd=tmp_path, here=False)
    assert "RuntimeError: torch is already imported from" in done.stderr


def test_pytorch_of_an_installation_is_not_imported(tmp_path):
    """One that fails to import stands behind the program on the path, as site-packages does."""
    folder = tmp_path / "installed"
    folder.mkdir()
    written(folder, "raise SystemError('imported')", "torch.py")
    written(folder, "raise SystemError('imported')", "torchvision.py")
    text = f"""
import subprocess, sys, os
sys.path.append({str(folder)!r})
import torch, torchvision
environment = dict(os.environ)
environment["PYTHONPATH"] += os.pathsep + {str(folder)!r}
code = "import torchvision, torch; print(torch.__package__)"
print(subprocess.check_output([sys.executable, "-c", code], env=environment, text=True))
"""
    assert "tensorflow_lite_clone" in printed(written(tmp_path, text), cwd=tmp_path)


TYPES = """
import copy, pickle, sys
import torch, torchvision
from torch import nn
x = torch.ones(2)
model = nn.Sequential(nn.Linear(2, 2), nn.TripletMarginLoss())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kinds = type(x), type(nn.Parameter(x)), type(x.shape), type(x.dtype), type(x.device), nn.Linear
print(*kinds, type(optimizer), torch.distributions.Normal, torch.utils.data.DataLoader)
for value in (x, model[0], optimizer, x.dtype, nn.Linear, torch.Tensor, x.shape, x.device):
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is type(value) and repr(again) == repr(value)
models = torchvision.models
functions = nn.init.uniform_, nn.functional.relu, nn.utils.clip_grad_norm_, models.vit_b_16
print(*[function.__module__ for function in functions])
assert pickle.loads(pickle.dumps(functions)) == functions
print(models.list_models(models, include="vit_*"))
torch.save(model, "model.pt")
assert repr(torch.load("model.pt", weights_only=False)) == repr(model)
"""


def test_types_print_as_pytorch_s(tmp_path):
    path = written(tmp_path, TYPES)
    ours = printed(path, cwd=tmp_path)
    assert ours.startswith("<class 'torch.Tensor'> <class 'torch.nn.parameter.Parameter'>")
    assert repr(torch.load(tmp_path / "model.pt", weights_only=False)).startswith("Sequential(")
    theirs = printed(FORKED, path, cwd=tmp_path, here=False)
    assert theirs == "" and (tmp_path / "program.py.txt").read_text() == ours


MISSING = [
    ("import torch.numa", "ModuleNotFoundError: No module or name 'torch.numa' .*left out: "),
    ("import torch.nonsense.more", "'torch.nonsense.*unknown: not among the names"),
    ("from torch import numa", "'torch.numa' .*left out: entry points"),
    ("from torch import nonsense", "'torch.nonsense' .*unknown"),
    ("from torch.nn.functional import nonsense", "'nonsense' from .*nonsense: unknown: not among"),
    ("import torch; torch.numa", "AttributeError: .*'numa' .left out: entry points"),
    (
        "import torch; torch.ones(1).to_mkldnn()",
        "AttributeError: .*'to_mkldnn'.*mkldnn: left out: ",
    ),
]


@pytest.mark.parametrize("text, message", MISSING)
def test_missing_names_say_why(text, message, tmp_path):
    done = run(written(tmp_path, text), cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(message, done.stderr.replace("\n", " ")), done.stderr


def test_asking_for_a_module_is_no_error(tmp_path):
    text = """
import importlib.util
print(importlib.util.find_spec("torch").name, importlib.util.find_spec("torch.numa"))
print(importlib.util.find_spec("torch.nn.functional").name)
try:
    import torch.numa
except ImportError:
    print("no numa")
import torch
print(hasattr(torch, "numa"), hasattr(torch.nn, "Linear"))
"""
    lines = printed(written(tmp_path, text), cwd=tmp_path).splitlines()
    assert lines == [
        "tensorflow_lite_clone None", "torch.nn.functional", "no numa", "False True"
    ]  # fmt: skip
