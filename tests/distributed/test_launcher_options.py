"""The launcher's options: which programs it starts, how often, and where they print."""

from __future__ import annotations

import os
import socket
import sys
import time

import pytest
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure as TheirFailure

from tensorflow_lite_clone.distributed import DistNetworkError
from tensorflow_lite_clone.distributed import run as torchrun
from tensorflow_lite_clone.distributed.elastic.agent import Job, launch
from tensorflow_lite_clone.distributed.elastic.multiprocessing.api import (
    DefaultLogsSpecs,
    Logs,
    Std,
)
from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
    record,
)
from tensorflow_lite_clone.distributed.launcher.api import LaunchConfig, elastic_launch
from tests.distributed.test_launcher import program
from tests.dropin.programs import printed

PRINTING = """
import os, sys
print("out", os.environ["RANK"])
print("err", os.environ["RANK"], file=sys.stderr)
"""


def logged(tmp_path, capfd, **how):
    logs = Logs(tmp_path / "logs", **how)
    command = [sys.executable, "-S", "-c", PRINTING]
    folders = launch(Job(command, "program", 2, logs))
    out, err = capfd.readouterr()
    files = {
        f"{path.parent.name}/{path.name}": path.read_text()
        for folder in folders.values()
        for path in folder.iterdir()
    }
    return sorted(out.splitlines()), sorted(err.splitlines()), files


def test_worker_output_goes_to_files(tmp_path, capfd):
    out, err, files = logged(tmp_path, capfd, redirects=Std.OUT)
    assert (out, err) == ([], ["err 0", "err 1"])
    assert files == {"0/stdout.log": "out 0\n", "1/stdout.log": "out 1\n"}


def test_worker_output_goes_to_files_and_console(tmp_path, capfd):
    out, err, files = logged(tmp_path, capfd, tee={1: Std.ALL}, redirects={0: Std.ERR})
    assert out == ["[default1]:out 1", "out 0"] and err == ["[default1]:err 1"]
    assert files == {
        "0/stderr.log": "err 0\n",
        "1/stderr.log": "err 1\n",
        "1/stdout.log": "out 1\n",
    }


def test_some_ranks_print_on_the_console(tmp_path, capfd):
    out, err, files = logged(tmp_path, capfd, shown=frozenset({1}), tee={0: Std.OUT})
    assert (out, err, files) == (["out 1"], ["err 1"], {"0/stdout.log": "out 0\n"})


def test_streams_of_ranks():
    assert Std.from_str("3") is Std.ALL and Std.from_str("0:1,12:2") == {0: Std.OUT, 12: Std.ERR}
    for wrong in ("", "4", "0:", "0:1,", "a:1"):
        with pytest.raises(ValueError, match="streams are"):
            Std.from_str(wrong)


def test_log_dir(tmp_path, capfd):
    logs = tmp_path / "logs"
    options = f"--log_dir={logs}", "-r", "1:1", "-t", "0:3", "--rdzv_id=job", "--nproc_per_node=2"
    torchrun.main([*options, str(program(tmp_path, PRINTING))])
    out, err = capfd.readouterr()
    (folder,) = logs.iterdir()
    assert folder.name.startswith("job_") and str(folder) in err
    assert out == "[default0]:out 0\n" and "[default0]:err 0" in err and "err 1" in err
    kept = {str(path.relative_to(folder)) for path in folder.rglob("*.log")}
    assert kept == {f"attempt_0/{name}.log" for name in ("0/stdout", "0/stderr", "1/stdout")}


WAYS = {
    "module": ("-m", "program"),
    "run_path": ("--run-path", "program.py"),
    "no_python": ("--no_python", sys.executable, "program.py"),
    "standalone": ("--standalone", "program.py"),
}


@pytest.mark.parametrize("way", WAYS)
def test_programs(way, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "import os, sys; print(__name__, os.environ['WORLD_SIZE'], sys.argv[1:])")
    torchrun.main([*WAYS[way], "a", "-b"])
    assert capfd.readouterr().out == "__main__ 1 ['a', '-b']\n"


def test_a_command_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="/no/such/command"):
        torchrun.main(["--no_python", "/no/such/command"])


@pytest.mark.parametrize("options", [["--nnodes=0"], ["--nnodes=3:2"], ["--nproc_per_node=0"],
                                     ["--nproc_per_node=some"], ["--no_python", "-m"]])  # fmt: skip
def test_options_that_make_no_sense(options):
    with pytest.raises(ValueError):
        torchrun.main([*options, "nothing.py"])


def test_numbers_of_processes(monkeypatch):
    for gpus, expected in ((0, (os.cpu_count(), os.cpu_count())), (3, (3, os.cpu_count()))):
        monkeypatch.setattr(torchrun.cuda, "device_count", lambda gpus=gpus: gpus)
        assert tuple(map(torchrun.processes, ("auto", "cpu"))) == expected
    assert torchrun.processes("gpu") == 3 and torchrun.processes("5") == 5


def test_options_from_the_environment(monkeypatch):
    monkeypatch.setenv("PET_NPROC_PER_NODE", "7")
    monkeypatch.setenv("PET_MAX_RESTARTS", "2")
    args = torchrun.get_args_parser().parse_args(["--max-restarts=3", "x.py", "--nnodes=2"])
    assert (args.nproc_per_node, args.max_restarts, args.nnodes) == ("7", 3, "1:1")


def test_record_writes_the_error_of_a_function(tmp_path, monkeypatch):
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def main(value):
        return 1 / value

    assert main(2) == 0.5 and not path.exists()
    with pytest.raises(ZeroDivisionError):
        main(0)
    failure = ProcessFailure(0, 1, 1, str(path))
    assert "return 1 / value" in failure.message and time.time() - failure.timestamp < 60
    theirs = TheirFailure(0, 1, 1, str(path))  # PyTorch's launcher can read it
    assert "return 1 / value" in theirs.error_file_data["message"]["extraInfo"]["py_callstack"]
    assert theirs.timestamp == int(failure.timestamp)


def test_a_port_in_use(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DistNetworkError, match=f"port: {port}.* EADDRINUSE"):
            torchrun.main([f"--master_port={port}", "nothing.py"])


MAIN = """
import os
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
def place(factor):
    return int(os.environ["RANK"]) * factor, os.environ["WORLD_SIZE"]
if __name__ == "__main__":
    config = LaunchConfig(1, 1, 2, rdzv_backend="c10d", rdzv_endpoint="localhost:0")
    print(elastic_launch(config, place)(5))
"""


def config(tmp_path, **more):
    logs = DefaultLogsSpecs(str(tmp_path), redirects=Std.ALL)
    return LaunchConfig(1, 1, 2, logs, "job", rdzv_backend="c10d", max_restarts=0, **more)


def test_functions_of_a_main_program_in_workers(tmp_path):
    assert printed(program(tmp_path, MAIN), cwd=tmp_path) == "{0: (0, '2'), 1: (5, '2')}\n"


def test_a_function_that_fails(tmp_path):
    expression = "1 / (1 - int(__import__('os').environ['RANK']))"
    with pytest.raises(ChildFailedError, match="eval failed: rank 1 .*") as caught:
        elastic_launch(config(tmp_path), eval)(expression)
    assert "ZeroDivisionError: division by zero" in str(caught.value)
    assert len(list(tmp_path.glob("job_*/attempt_0/*/stdout.log"))) == 2


def test_commands_in_workers(tmp_path):
    assert elastic_launch(config(tmp_path), sys.executable)("-c", "0") == {0: None, 1: None}


def test_configurations_that_make_no_sense():
    for more in ({}, {"rdzv_backend": "c10d"}):
        with pytest.raises(ValueError, match="rdzv_"):
            elastic_launch(LaunchConfig(1, 2, 1, **more), "true")()
