"""The command ``python -m tensorflow_lite_clone``: runs PyTorch programs, and some tools."""

from __future__ import annotations

import os
import runpy
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType

from tensorflow_lite_clone.dropin.finder import explain, install_as_torch
from tensorflow_lite_clone.version import release

USAGE = """\
usage: python -m tensorflow_lite_clone SCRIPT [ARGUMENT ...]
       python -m tensorflow_lite_clone -m MODULE [ARGUMENT ...]
       python -m tensorflow_lite_clone env
       python -m tensorflow_lite_clone packages
       python -m tensorflow_lite_clone watch LOGDIR [--port PORT] [--host HOST] [--open]

Runs a Python program in which `import torch` and `import torchvision` mean tensorflow_lite_clone,
in the processes that it starts, too. `env` prints the versions of all that matters, `packages` what
is known of installed packages that are written for PyTorch, and `watch` shows training runs in a
browser. The command `tlc` does the same.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the program that the arguments name; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help"):
        print(USAGE, end="")
    elif first in ("-V", "--version"):
        print(f"tensorflow_lite_clone {release}")
    elif first == "-m" and len(arguments) > 1:
        run_module(arguments[1], arguments[2:])
    elif first == "env" and not os.path.exists(first):
        from tensorflow_lite_clone.utils import collect_env

        collect_env.main()
    elif first == "packages" and not os.path.exists(first):
        from tensorflow_lite_clone.dropin import packages

        packages.main()
    elif first == "watch" and not os.path.exists(first):
        from tensorflow_lite_clone.watch import command

        return command.main(arguments[1:])
    elif first and not first.startswith("-"):
        run_script(first, arguments[1:])
    else:
        print(USAGE, end="", file=sys.stderr)
        return 2
    return 0


def run_module(name: str, arguments: list[str]) -> None:
    """Run a module as ``python -m`` does."""
    _prepare(os.getcwd())
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def run_script(path: str, arguments: list[str]) -> None:
    """Run a file as ``python`` does; a folder or an archive runs its ``__main__.py``."""
    if not os.path.exists(path):
        raise SystemExit(f"tensorflow_lite_clone: there is no file {path!r}")
    is_file = os.path.isfile(path) and not _is_archive(path)
    _prepare(os.path.dirname(os.path.realpath(path)) if is_file else None)
    sys.argv = [path, *arguments]
    if not is_file:
        runpy.run_path(path, run_name="__main__")
        return
    absolute = os.path.join(os.getcwd(), path)  # so that a program may change its folder
    with open(path, "rb") as file:
        code = compile(file.read(), absolute, "exec", dont_inherit=True)
    # The module stays: what a program registers to run at its end still finds its names.
    module = ModuleType("__main__")
    module.__file__ = absolute
    module.__loader__ = SourceFileLoader("__main__", absolute)
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _is_archive(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _prepare(folder: str | None) -> None:
    """Make the package be PyTorch, and let the path begin as Python does for a program: with its
    folder, unless ``python -P`` asked for none, and without that of the script `tlc`."""
    if not sys.flags.safe_path and sys.path[:1] == [_folder_of_this_command()]:
        del sys.path[0]
    install_as_torch()
    if folder is not None and not sys.flags.safe_path:
        sys.path.insert(0, folder)
    sys.excepthook = _show


def _folder_of_this_command() -> str:
    return os.path.dirname(os.path.realpath(sys.argv[0]))


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught error as Python does, without the frames that started the program."""
    explain(error)
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename in _OUTSIDE:
        inner = inner.tb_next
    sys.__excepthook__(kind, error.with_traceback(inner or trace), inner or trace)


_OUTSIDE = {
    __file__,
    os.path.join(os.path.dirname(os.path.dirname(__file__)), "__main__.py"),
    runpy.run_path.__code__.co_filename,
}
