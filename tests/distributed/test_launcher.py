"""The launcher starts, ends and restarts workers, on one machine and on several."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tensorflow_lite_clone.distributed import (
    DistError,
    DistNetworkError,
    DistStoreError,
    PrefixStore,
    TCPStore,
)
from tensorflow_lite_clone.distributed.elastic import agent
from tensorflow_lite_clone.distributed.elastic.agent import Job, launch
from tensorflow_lite_clone.distributed.elastic.multiprocessing.api import Logs
from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
)
from tests.processes import running
from tests.tools.markdown import ROOT

#: The environment variables that `torchrun` of PyTorch 2.13 sets.
NAMES = {
    "GROUP_RANK", "GROUP_WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
    "MASTER_PORT", "OMP_NUM_THREADS", "RANK", "ROLE_NAME", "ROLE_RANK", "ROLE_WORLD_SIZE",
    "TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_SIGNALS_TO_HANDLE", "TORCHELASTIC_USE_AGENT_STORE",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING", "WORLD_SIZE",
}  # fmt: skip

#: Says who it is, starts a child, and waits to be ended.
SLEEPER = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
with open(f"{sys.argv[1]}/{os.environ['RANK']}.part", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(file.name, file.name[:-5])
time.sleep(60)
"""


def environment(**more):
    """The environment of a launcher that tests start: that of a user who has set little."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if name not in NAMES}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), **more}


_open = ExitStack()


@pytest.fixture(autouse=True)
def no_launcher_is_left():
    yield
    _open.close()


def start(*arguments, **more):
    command = [sys.executable, "-m", "tensorflow_lite_clone.distributed.run"]
    return _open.enter_context(
        running(
            [*command, *map(str, arguments)],
            env=environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


def result(process):
    """The exit status of a launcher, and what it and its workers printed."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def run(*arguments, **more):
    return result(start(*arguments, **more))


def program(tmp_path, source):
    path = tmp_path / "program.py"
    path.write_text(source)
    return path


def job(tmp_path, source, workers=4, **more):
    """A job of small programs, for `launch`."""
    command = [sys.executable, "-S", "-c", source, str(tmp_path)]
    return Job(command, "program", workers, Logs(tmp_path / "logs"), **more)


def eventually(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def processes(tmp_path, ranks):
    """The processes of all workers, once they have said which: (worker, its child) by rank."""
    files = [tmp_path / str(rank) for rank in range(ranks)]
    eventually(lambda: all(file.exists() for file in files))
    return [tuple(map(int, file.read_text().split())) for file in files]


def is_there(pid):
    """Whether a process is there and no zombie that nobody has waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def have_gone(pids):
    return not any(is_there(pid) for pair in pids for pid in pair)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("turn", range(20))
def test_a_killed_worker_ends_all(turn, tmp_path):
    victim, pids = turn % 4, []

    def kill():
        pids.extend(processes(tmp_path, 4))
        os.kill(pids[victim][0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    began = time.monotonic()
    with pytest.raises(ChildFailedError) as caught:
        launch(job(tmp_path, SLEEPER))
    killer.join()
    rank, failure = caught.value.get_first_failure()
    assert (rank, failure.exitcode, failure.pid) == (victim, -signal.SIGKILL, pids[victim][0])
    assert f"rank {victim} (local rank {victim}, process {failure.pid})" in str(caught.value)
    assert "was killed by signal 9 (SIGKILL)" in str(caught.value)
    assert list(caught.value.failures) == [victim]  # the others were ended, and did not fail
    assert time.monotonic() - began < 20
    eventually(lambda: have_gone(pids))


@pytest.mark.parametrize("sign", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_workers_end_with_the_launcher(sign, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    source = program(tmp_path, SLEEPER)
    launcher = start("--nproc_per_node=2", source, tmp_path, TMPDIR=str(temporary))
    pids = processes(tmp_path, 2)
    launcher.send_signal(signal.Signals[sign])
    status, _, err = result(launcher)
    if sign == "SIGKILL":
        assert status == -signal.SIGKILL
        eventually(lambda: have_gone(pids))
    else:
        assert status == 1 and f"the launcher got {sign}" in err
        assert have_gone(pids)
    eventually(lambda: not os.listdir(temporary))


def test_a_worker_that_ignores_signals_is_killed(tmp_path):
    source = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" + SLEEPER.replace(
        "time.sleep(60)",
        """
if os.environ["RANK"] == "0":
    while not os.path.exists(f"{sys.argv[1]}/1"):
        time.sleep(0.01)
    sys.exit(3)
time.sleep(60)
""",
    )
    with pytest.raises(ChildFailedError, match=r"rank 0 .* ended with exit code 3"):
        launch(job(tmp_path, source, workers=2, grace=0.2))
    assert have_gone(processes(tmp_path, 2))


def test_what_a_worker_leaves_behind_ends(tmp_path):
    launch(job(tmp_path, SLEEPER.replace("time.sleep(60)", ""), workers=2))
    assert have_gone(processes(tmp_path, 2))


SHOW = """
import json, os, sys
if os.environ["LOCAL_RANK"] == "1":
    print(json.dumps([dict(os.environ), sys.argv[1:], os.getpid() == os.getsid(0)]))
"""


def test_the_environment_is_that_of_torchrun(tmp_path):
    status, out, err = run(
        "--nproc-per-node=2", "--max_restarts=3", "--role=r", program(tmp_path, SHOW), "--x", "-m"
    )
    assert status == 0 and "OMP_NUM_THREADS is not set" in err
    found, arguments, leads_a_session = json.loads(out)
    assert arguments == ["--x", "-m"] and leads_a_session
    told = {name: value for name, value in found.items() if name not in environment()}
    assert set(told) == NAMES
    expected = {
        "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1", "RANK": "1", "ROLE_NAME": "r",
        "ROLE_RANK": "1", "ROLE_WORLD_SIZE": "2", "TORCHELASTIC_MAX_RESTARTS": "3",
        "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_USE_AGENT_STORE": "True",
        "WORLD_SIZE": "2",
    }  # fmt: skip
    assert {name: told[name] for name in expected} == expected


MEETING = """
import os, torch
from torch.distributed.rendezvous import rendezvous
store, rank, size = rendezvous("env://")
store.set(f"name of {rank}", torch.__package__)
names = [store.get(f"name of {other}").decode() for other in range(size)]
address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
again, *_ = rendezvous(address, rank, size)
again.set(f"seen by {rank}", "")
again.wait([f"seen by {other}" for other in range(size)])
print(f"{rank}/{size} {names} {again.check([f'name of {rank}'])}\\n", end="", flush=True)
"""


def test_workers_that_import_torch_meet(tmp_path):
    status, out, err = run("--nproc_per_node=2", program(tmp_path, MEETING))
    names = ["tensorflow_lite_clone"] * 2
    assert status == 0, err
    assert sorted(out.splitlines()) == [f"{rank}/2 {names} False" for rank in range(2)]


FAILING = """
import os, time
from torch.distributed.elastic.multiprocessing.errors import record_uncaught
record_uncaught()
if os.environ["RANK"] == "1":
    raise ValueError("the data are gone")
time.sleep(60)
"""


def test_the_traceback_of_a_worker_reaches_the_summary(tmp_path):
    status, _, err = run("--nproc_per_node=2", program(tmp_path, FAILING))
    assert status == 1
    summary = err[err.index("program.py failed: rank 1") :]
    assert re.match(r".*program.py failed: rank 1 \(local rank 1, process \d+\) on ", summary)
    assert "ended with exit code 1 at " in summary and socket.gethostname() in summary
    assert 'raise ValueError("the data are gone")' in summary
    assert "\n  ValueError: the data are gone" in summary


RESTARTING = """
import os, sys
path, rank = f"{sys.argv[1]}/step_{os.environ['RANK']}", os.environ["RANK"]
step = int(open(path).read()) if os.path.exists(path) else 0
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print(f"rank {rank} attempt {attempt} from step {step}\\n", end="", flush=True)
for step in range(step + 1, 5):
    open(path, "w").write(str(step))
    if step == attempt + 2 and attempt < 2:
        if rank == "1":
            sys.exit(7)
        sys.stdin.read() if sys.stdin else None
        import time; time.sleep(60)
"""


def test_restarts_go_on_from_a_file(tmp_path, capfd):
    launch(job(tmp_path, RESTARTING, workers=2, max_restarts=2))
    out, err = capfd.readouterr()
    steps = re.findall(r"rank 1 attempt (\d) from step (\d)", out)
    assert steps == [("0", "0"), ("1", "2"), ("2", "3")]
    assert err.count("starting all workers again") == 2 and "ended with exit code 7" in err
    for rank in range(2):
        (tmp_path / f"step_{rank}").unlink(missing_ok=True)
    with pytest.raises(ChildFailedError, match="exit code 7"):
        launch(job(tmp_path, RESTARTING, workers=2, max_restarts=1))


def nodes(*arguments, count=2, backend="static"):
    """Launchers of several nodes on this machine."""
    port = free_port()
    places = [
        ("--master_addr=127.0.0.1", f"--master_port={port}", f"--node_rank={node}")
        if backend == "static"
        else ("--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_id=job")
        for node in range(count)
    ]
    return [start(f"--nnodes={count}", *place, *arguments) for place in places]


PLACES = """
from tensorflow_lite_clone.distributed.rendezvous import rendezvous
rendezvous()
import os
names = ("RANK", "WORLD_SIZE", "GROUP_RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
print(" ".join(os.environ[name] for name in names) + "\\n", end="")
"""


@pytest.mark.parametrize("backend", ["static", "c10d"])
def test_two_nodes(backend, tmp_path):
    source = PLACES if backend == "static" else PLACES[PLACES.index("import os") :]
    launchers = nodes("--nproc_per_node=2", program(tmp_path, source), backend=backend)
    found = []
    for launcher in launchers:
        status, out, err = result(launcher)
        assert status == 0, err
        found += out.splitlines()
    assert sorted(found) == [f"{r} 4 {r // 2} {r % 2} 2" for r in range(4)]


def test_a_failure_on_one_node_ends_and_restarts_all(tmp_path):
    source = SLEEPER.replace(
        "time.sleep(60)",
        """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if os.environ["RANK"] == "2":
        sys.exit(5)
    time.sleep(60)
print(f"done {os.environ['RANK']}\\n", end="")
""",
    )
    launchers = nodes("--nproc_per_node=2", "--max_restarts=1", program(tmp_path, source), tmp_path)
    done = []
    for launcher in launchers:
        status, out, err = result(launcher)
        assert status == 0, err
        assert re.search(r"rank 2 \(local rank 0, .* ended with exit code 5", err)
        done += out.splitlines()
    assert sorted(done) == [f"done {rank}" for rank in range(4)]


def test_a_signal_to_one_launcher_ends_all(tmp_path):
    launchers = nodes("--nproc_per_node=1", program(tmp_path, SLEEPER), tmp_path)
    pids = processes(tmp_path, 2)
    launchers[1].send_signal(signal.SIGTERM)
    ends = [result(launcher) for launcher in launchers]
    assert [status for status, *_ in ends] == [1, 1]
    assert "the launcher got SIGTERM" in ends[1][2]
    assert f"the launcher on {socket.gethostname()} ended: the launcher got SIGTERM" in ends[0][2]
    assert have_gone(pids)


def test_the_end_of_the_first_launcher_ends_all(tmp_path):
    launchers = nodes("--nproc_per_node=1", program(tmp_path, SLEEPER), tmp_path)
    pids = processes(tmp_path, 2)
    launchers[0].kill()
    ends = [result(launcher) for launcher in launchers]
    assert ends[1][0] == 1 and "the launcher of node 0 has gone" in ends[1][2]
    eventually(lambda: not any(is_there(worker) for worker, _ in pids))
    os.kill(pids[0][1], signal.SIGKILL)


def test_a_node_that_does_not_come_is_named(tmp_path):
    port = free_port()
    three = {"nodes": (3, 3), "address": ("127.0.0.1", port), "timeout": 0.5}
    with pytest.raises(DistStoreError, match=rf"nodes 1, 2 did not come to 127.0.0.1:{port}"):
        launch(job(tmp_path, "", **three))
    with pytest.raises(DistNetworkError, match=rf"connect to \(127.0.0.1, {port}\)"):
        launch(job(tmp_path, "", node=1, **three))


def test_nodes_from_a_least_to_a_largest_number(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "LAST_CALL", 0.3)
    source = "import os, sys; open(f'{sys.argv[1]}/of_' + os.environ['WORLD_SIZE'], 'w')"
    some = {"nodes": (1, 3), "node": None, "address": ("127.0.0.1", free_port())}
    with ThreadPoolExecutor(2) as threads:
        for ended in [threads.submit(launch, job(tmp_path, source, 2, **some)) for _ in range(2)]:
            assert len(ended.result()) == 2
    assert (tmp_path / "of_4").exists()


def test_a_launcher_that_falls_silent_ends_all(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "BEAT", 0.05)
    monkeypatch.setattr(agent, "SILENCE", 0.3)
    two = {"nodes": (2, 2), "address": ("127.0.0.1", free_port()), "timeout": 20, "grace": 0.2}

    def come_and_vanish():
        keys = PrefixStore("launchers_of_none", TCPStore(*two["address"]))
        keys.set("place_1", "somebody")
        keys.set("attempt_0_node_1", json.dumps({"workers": 1, "restarts": 0, "host": "there"}))

    threading.Thread(target=come_and_vanish).start()
    with pytest.raises(DistError, match=r"the launcher on there \(node 1\) is silent"):
        launch(job(tmp_path, SLEEPER, 1, **two))
    assert have_gone(processes(tmp_path, 1))


def test_places_that_are_taken_or_missing(tmp_path):
    two = {"nodes": (2, 2), "address": ("127.0.0.1", free_port())}
    held = TCPStore(*two["address"], is_master=True)
    PrefixStore("launchers_of_none", held).set("place_1", "somebody")
    with pytest.raises(DistError, match="two launchers are node 1"):
        launch(job(tmp_path, "", node=1, **two))
    with pytest.raises(DistError, match="is at work on 2 nodes; this is node 2"):
        launch(job(tmp_path, "", node=2, **two))
