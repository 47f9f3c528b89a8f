"""Models from folders and repositories, weights from URLs: what PyTorch does with the same."""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import sys
import zipfile

import pytest
import torch
import torch.hub as theirs
import torch.utils.model_zoo as their_zoo

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.hub as ours
import tensorflow_lite_clone.utils.model_zoo as our_zoo

HUBCONF = '''
dependencies = ["numpy"]
from a_module_of_the_repository import thing

def model(a=1, *, pretrained=False):
    """What the model is."""
    import a_module_of_the_repository as again
    return a, pretrained, thing, again.thing

def _hidden(): pass

number = 3
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for hub in (ours, theirs):
        monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    for name, text in {
        "good": HUBCONF,
        "needy": "dependencies = ['nope_a', 'numpy', 'nope_b']\ndef model(): pass\n",
        "empty": None,
    }.items():
        (tmp_path / name).mkdir()
        if text:
            (tmp_path / name / "hubconf.py").write_text(text)
    (tmp_path / "good" / "a_module_of_the_repository.py").write_text("thing = 5\n")
    yield tmp_path
    sys.modules.pop("a_module_of_the_repository", None)


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def both(call):
    mine, other = outcome(lambda: call(ours)), outcome(lambda: call(theirs))
    assert mine == other
    return mine


def test_signatures():
    assert ours.__all__ == theirs.__all__
    for name in ours.__all__:
        mine, other = (inspect.signature(getattr(hub, name)) for hub in (ours, theirs))
        shown = [
            [(p.name, p.kind, p.default) for p in signature.parameters.values()]
            for signature in (mine, other)
        ]
        assert shown[0] == shown[1]
    assert our_zoo.load_url is ours.load_state_dict_from_url
    assert their_zoo.load_url is theirs.load_state_dict_from_url


def test_local_folders(folder):
    good, path = str(folder / "good"), list(sys.path)
    seen = both(lambda hub: hub.load(good, "model", 4, source="local", pretrained=True))
    assert seen == (4, True, 5, 5)
    both(lambda hub: hub.load(folder / "good", "model", source="LOCAL"))
    for name, model, source in [
        ("good", "nothing", "local"),
        ("good", "number", "local"),
        ("good", 3, "local"),
        ("good", "model", "svn"),
        ("needy", "model", "local"),
        ("empty", "model", "local"),
    ]:
        kind, _ = both(lambda hub: hub.load(str(folder / name), model, source=source))  # noqa: B023
        assert issubclass(kind, Exception)
    assert sys.path == path


def test_the_hubs_folder(folder, monkeypatch):
    assert both(lambda hub: hub.get_dir()) == str(folder / "home" / "hub")
    both(lambda hub: hub.set_dir("~/x"))
    assert both(lambda hub: hub.get_dir()) == os.path.expanduser("~/x")
    monkeypatch.delenv("TORCH_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert both(lambda hub: hub._get_torch_home()) == "/cache/torch"
    monkeypatch.delenv("XDG_CACHE_HOME")
    both(lambda hub: hub._get_torch_home())
    assert ours.HASH_REGEX.pattern == theirs.HASH_REGEX.pattern


def archive(folder):
    """A repository as GitHub packs it: everything in a folder named after the commit."""
    file = folder / "repository.zip"
    with zipfile.ZipFile(file, "w") as packed:
        for name in ("hubconf.py", "a_module_of_the_repository.py"):
            packed.write(folder / "good" / name, f"owner-name-1a2b3c/{name}")
    return file.as_uri()


def test_repositories(folder, monkeypatch, capsys):
    url = archive(folder)
    asked = []

    def link(owner, name, ref):
        asked.append((owner, name, ref))
        return url

    monkeypatch.setattr(ours, "_git_archive_link", link)
    seen = ours.load("owner/name:a/branch", "model", trust_repo=True)
    assert seen == (1, False, 5, 5)
    assert asked == [("owner", "name", "a/branch")]
    kept = folder / "home" / "hub" / "owner_name_a_branch"
    assert sorted(os.listdir(kept.parent)) == ["owner_name_a_branch", "trusted_list"]
    assert "Downloading" in capsys.readouterr().err
    # PyTorch finds what was fetched in the cache.
    shown = both(lambda hub: hub.load("owner/name:a/branch", "model", skip_validation=True))
    assert shown == seen
    said = capsys.readouterr().err.splitlines()
    assert said == [f"Using cache found in {kept}"] * 2
    assert both(lambda hub: hub.list("owner/name:a/branch", skip_validation=True)) == ["model"]
    assert both(lambda hub: hub.help("owner/name:a/branch", "model")) == "What the model is."
    (kept / "hubconf.py").write_text("")
    ours.load("owner/name:a/branch", "model", force_reload=True)
    assert len(asked) == 2


def test_no_network(folder, monkeypatch):
    def offline(*args, **kwargs):
        raise ours.URLError("no network")

    for hub in (ours, theirs):
        monkeypatch.setattr(hub, "urlopen", offline)
    kind, text = both(lambda hub: hub.load("owner/name", "model"))
    assert kind is RuntimeError and "no internet connection" in text
    shutil.copytree(folder / "good", folder / "home" / "hub" / "owner_name_master")
    assert both(lambda hub: hub._parse_repo_info("owner/name")) == ("owner", "name", "master")
    both(lambda hub: hub._parse_repo_info("a-name"))


def test_trust(folder, monkeypatch):
    questions = []

    def answer(text):
        def ask(question):
            questions.append(question)
            return text

        monkeypatch.setattr("builtins.input", ask)

    listed = folder / "home" / "hub" / "trusted_list"
    listed.parent.mkdir(parents=True)
    known = []
    for hub in (ours, theirs):
        listed.unlink(missing_ok=True)
        seen = []
        for text, owner, trust in [
            ("", "a", "check"), ("no", "a", False), ("perhaps", "a", "check"), ("y", "a", "check"),
            ("no", "a", "check"), ("no", "pytorch", "check"), ("no", "b", True),
        ]:  # fmt: skip
            answer(text)
            call = (owner, "name", f"{owner}_name_main", trust)
            seen.append(outcome(lambda: hub._check_repo_is_trusted(*call)))  # noqa: B023
        known.append((seen, listed.read_text(), questions[:]))
        questions.clear()
    assert known[0] == known[1]


def test_an_archive_with_files_elsewhere(folder):
    file = folder / "evil.zip"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("../outside", "x")
    with zipfile.ZipFile(file) as packed, pytest.raises(ValueError, match="lies outside"):
        ours._safe_extract_zip(packed, str(folder / "good"))


@pytest.fixture
def weights(folder):
    """The URLs of a file of weights under a right and a wrong name."""
    file = folder / "weights.pth"
    torch.save({"a": torch.ones(2)}, file)
    right = folder / f"weights-{hashlib.sha256(file.read_bytes()).hexdigest()[:8]}.pth"
    wrong = folder / f"weights-{'0' * 8}.pth"
    for place in (right, wrong):
        shutil.copy(file, place)
    return right.as_uri(), wrong.as_uri()


def test_weights(folder, weights, capsys):
    right, wrong = weights
    checkpoints = folder / "home" / "hub" / "checkpoints"

    def read(url, **options):
        def call(hub):
            shutil.rmtree(checkpoints, ignore_errors=True)
            state = hub.load_state_dict_from_url(url, progress=False, **options)
            return {key: value.tolist() for key, value in state.items()}, os.listdir(checkpoints)

        return both(call)

    state, names = read(right, check_hash=True)
    assert state == {"a": [1, 1]} and names == [right.rpartition("/")[2]]
    assert read(wrong) == ({"a": [1, 1]}, [wrong.rpartition("/")[2]])
    assert read(right, file_name="other.pth")[1] == ["other.pth"]
    assert read(right, weights_only=True, map_location="cpu")[0] == state
    kind, text = read(wrong, check_hash=True)
    assert kind is RuntimeError and 'expected "00000000"' in text
    assert os.listdir(checkpoints) == []
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == f'Downloading: "{right}" to {checkpoints / names[0]}'
    tlc.save({"a": tlc.zeros(1)}, checkpoints / "cached.pth")
    assert ours.load_state_dict_from_url("http://nowhere/cached.pth")["a"].tolist() == [0]


def test_downloads(folder, weights, capsys):
    target = folder / "fetched"
    ours.download_url_to_file(weights[0], str(target))  # with a bar if tqdm is there
    assert target.read_bytes() == (folder / "weights.pth").read_bytes()
    target.write_text("old")
    before = sorted(os.listdir(folder))
    kind, _ = both(lambda hub: hub.download_url_to_file(weights[0], target, "abc", False))
    assert kind is RuntimeError
    missing = (folder / "missing").as_uri()
    kind, _ = both(lambda hub: hub.download_url_to_file(missing, str(target), None, False))
    assert kind is ours.URLError
    assert target.read_text() == "old" and sorted(os.listdir(folder)) == before


def test_an_old_archive(folder):
    torch.save(torch.ones(2), folder / "inner.pth", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(folder / "old.zip", "w") as packed:
        packed.write(folder / "inner.pth", "inner.pth")
    for hub in (ours, theirs):
        with pytest.warns(FutureWarning, match=r"1\.6"):
            state = hub.load_state_dict_from_url((folder / "old.zip").as_uri(), progress=False)
        assert state.tolist() == [1, 1]
