"""Processes find each other by an address, a file, or what a launcher says."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import torch
import torch.distributed  # noqa: F401
from torch.distributed.rendezvous import rendezvous as theirs

from tensorflow_lite_clone.distributed import DistNetworkError, DistStoreError, TCPStore
from tensorflow_lite_clone.distributed.rendezvous import adopt_launcher, first_host, rendezvous

LONG = timedelta(seconds=30)
VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(params=["tcp", "file"])
def url(request, tmp_path):
    if request.param == "file":
        return f"file://{tmp_path}/meeting"
    return f"tcp://127.0.0.1:{free_port()}"


@pytest.fixture
def environment(monkeypatch):
    """Sets environment variables; launchers have set none."""
    for name in list(os.environ):
        if name in VARIABLES or name.startswith(("OMPI_", "PMI", "SLURM_", "TORCHELASTIC_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(os, "environ", dict(os.environ))  # what is adopted vanishes afterwards
    return lambda **given: os.environ.update({name: str(value) for name, value in given.items()})


def meet(url, ranks, size, timeout=LONG):
    """What each rank's rendezvous gives, or its error; they run in threads."""

    def one(rank):
        try:
            return rendezvous(url, rank, size, timeout)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(ranks)) as threads:
        return list(threads.map(one, ranks))


def test_all_come(url):
    found = meet(url, [0, 1, 2], 3)
    assert [(rank, size) for _, rank, size in found] == [(0, 3), (1, 3), (2, 3)]
    found[0][0].set("a", "b")
    assert [store.get("a") for store, *_ in found] == [b"b"] * 3
    assert found[1][0].timeout == LONG


def test_a_second_meeting_does_not_see_the_first_ones_keys(url):
    first = meet(url, [0, 1], 2)
    first[0][0].set("a", "b")
    again = meet(url, [0, 1], 2)
    assert not again[1][0].check(["a"]) and first[1][0].get("a") == b"b"


@pytest.mark.parametrize("here, size, missing", [([0, 2], 4, "ranks 1 and 3 of 4"),
                                                 ([0], 2, "rank 1 of 2"),
                                                 ([0, 1], 5, "ranks 2, 3 and 4 of 5")])  # fmt: skip
def test_rendezvous_timeout_names_missing_ranks(here, size, missing, url):
    for rank, error in zip(here, meet(url, here, size, timedelta(milliseconds=300)), strict=True):
        assert isinstance(error, DistStoreError)
        assert f"{missing} did not come within 0.3 seconds; this is rank {rank}" in str(error)


def test_the_first_rank_is_missing():
    port = free_port()
    (error,) = meet(f"tcp://127.0.0.1:{port}", [1], 2, timedelta(milliseconds=200))
    assert isinstance(error, DistNetworkError) and f"(127.0.0.1, {port})" in str(error)


def test_the_environment_says_all(environment):
    environment(RANK=0, WORLD_SIZE=1, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())
    store, rank, size = rendezvous()
    assert (rank, size) == (0, 1) and not store.check(["a"])
    assert rendezvous("env://?rank=0&world_size=1")[1:] == (0, 1)
    environment(RANK=1)
    with pytest.raises(ValueError, match="rank 1 is outside of a world of 1"):
        rendezvous()


@pytest.mark.parametrize("count", range(5))
def test_what_the_environment_lacks_is_said_as_in_pytorch(count, environment):
    for name in VARIABLES[:count]:
        environment(**{name: {"RANK": 0, "MASTER_ADDR": "127.0.0.1"}.get(name, 1)})
    if count == 4:
        environment(MASTER_PORT=free_port())
        assert rendezvous()[1:] == (0, 1)
        return
    messages = []
    for ask in (rendezvous, lambda: next(theirs("env://"))):
        with pytest.raises(ValueError, match=VARIABLES[count]) as caught:
            ask()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("url", ["tcp://127.0.0.1", "tcp://127.0.0.1:1", "tcp://h:1?rank=0",
                                 "file://", "file:///x", "file:///x?rank=0", "foo://x",
                                 3])  # fmt: skip
def test_wrong_urls(url):
    messages = []
    for ask in (lambda: rendezvous(url), lambda: next(theirs(url))):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            ask()
        messages.append((type(caught.value), str(caught.value)))
    assert messages[0] == messages[1]


def test_the_launcher_holds_the_store(environment):
    port = free_port()
    held = TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    environment(
        TORCHELASTIC_USE_AGENT_STORE=True, TORCHELASTIC_RESTART_COUNT=0, MASTER_ADDR="127.0.0.1",
        MASTER_PORT=port,
    )  # fmt: skip
    for attempt in range(2):
        environment(TORCHELASTIC_RESTART_COUNT=attempt)
        (first, *_), (second, *_) = meet("env://", [0, 1], 2)
        assert not first.check(["a"])
        first.set("a", str(attempt))
        assert second.get("a") == str(attempt).encode()
    assert any(key.endswith("/a") for key in held.list_keys())
    (own, *_), _ = meet(f"tcp://127.0.0.1:{free_port()}", [0, 1], 2)  # an address of its own
    own.set("b", "")
    assert not any(key.endswith("/b") for key in held.list_keys())


OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "PMIX_RANK": "3",
}  # fmt: skip
SLURM = {
    "SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "123456",
    "SLURM_JOB_NODELIST": "gpu[07-09,12],big1",
}  # fmt: skip
LAUNCHERS = {
    "open_mpi": (OPEN_MPI, {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}),
    "mpich": (
        {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0"},
        {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0"},
    ),
    "slurm": (
        SLURM,
        {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "MASTER_ADDR": "gpu07",
         "MASTER_PORT": "20479"},
    ),
    "torchrun_under_slurm": (
        {**SLURM, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "a",
         "MASTER_PORT": "1"},
        {},
    ),
    "nothing": ({}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHERS)
def test_launchers_are_understood(name):
    given, expected = LAUNCHERS[name]
    found = dict(given)
    adopt_launcher(found)
    assert found == {**given, **expected}


def test_the_parts_of_a_job_meet_at_different_ports():
    ports = set()
    for job, step in (("1", "0"), ("1", "1"), ("2", "0")):
        found = {**SLURM, "SLURM_JOB_ID": job, "SLURM_STEP_ID": step, "SLURM_STEP_NODELIST": "b2"}
        adopt_launcher(found)
        assert found["MASTER_ADDR"] == "b2" and 20000 <= int(found["MASTER_PORT"]) < 30000
        ports.add(found["MASTER_PORT"])
    assert len(ports) == 3


def test_open_mpi_on_one_host_needs_no_address(environment):
    environment(**OPEN_MPI, OMPI_COMM_WORLD_LOCAL_SIZE=4, PMIX_NAMESPACE="prterun-host-42@1")
    environment(OMPI_COMM_WORLD_SIZE=1, OMPI_COMM_WORLD_LOCAL_SIZE=1, OMPI_COMM_WORLD_RANK=0)
    assert rendezvous()[1:] == (0, 1)
    assert os.environ["MASTER_ADDR"] == "127.0.0.1" and os.environ["LOCAL_RANK"] == "1"


@pytest.mark.parametrize("hosts, first", [("n1", "n1"), ("n1,n2", "n1"), ("n[03-07]", "n03"),
                                          ("n[3,5-6],m[1-2]", "n3"), ("r[1-2]n[4,5]-x,y", "r1n4-x"),
                                          ("a-b[010]", "a-b010")])  # fmt: skip
def test_the_first_host_of_a_list(hosts, first):
    assert first_host(hosts) == first
