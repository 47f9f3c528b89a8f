"""Models from a folder or a GitHub repository with a `hubconf.py`, and weights from a URL.

The functions of a `hubconf.py` whose names do not begin with an underscore are its entry points;
its list `dependencies` names the modules that must be there. Loading runs the repository's code.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from tensorflow_lite_clone import serialization
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.serialization._unpacking import extract_zip

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

#: The part of a file's name that its SHA-256 sum begins with: ``weights-1a2b3c4d.pth``.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")

ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
ENV_GITHUB_TOKEN = "GITHUB_TOKEN"
DEFAULT_CACHE_DIR = "~/.cache"
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
READ_DATA_CHUNK = 128 * 1024
_TRUSTED_REPO_OWNERS = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_PATH_SEPARATOR = re.compile(r"[/\\]")
_SOURCES = ("github", "local")

_hub_dir: str | None = None


# -- folders ----------------------------------------------------------------------------------


def _get_torch_home() -> str:
    """``$TORCH_HOME``, by default ``$XDG_CACHE_HOME/torch``, by default ``~/.cache/torch``."""
    cache = os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR)
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, os.path.join(cache, "torch")))


def get_dir() -> str:
    """Where repositories and weights are kept: what `set_dir` chose, else ``hub`` in the home."""
    return _hub_dir or os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Choose where repositories and weights are kept."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# -- repositories on GitHub ---------------------------------------------------------------------


def _request(url: str) -> Request:
    request = Request(url, headers={"User-Agent": "tensorflow_lite_clone"})
    token = os.environ.get(ENV_GITHUB_TOKEN)
    if token and urlparse(url).hostname in ("github.com", "api.github.com"):
        request.add_header("Authorization", f"token {token}")
    return request


def _git_archive_link(repo_owner: str, repo_name: str, ref: str) -> str:
    return f"https://github.com/{repo_owner}/{repo_name}/zipball/{ref}"


def _parse_repo_info(github: str) -> tuple[str, str, str]:
    """Owner, name and branch or tag of ``owner/name[:ref]``.

    Without a ref it is "main" if there is one, else "master"; with no network, the one of them
    that is in the cache, RuntimeError if there is none.
    """
    repository, _, ref = github.partition(":")
    owner, name = repository.split("/")
    if ref:
        return owner, name, ref
    try:
        with urlopen(_request(f"https://github.com/{owner}/{name}/tree/main/")):
            return owner, name, "main"
    except HTTPError as error:
        error.close()
        if error.code != 404:
            raise
        return owner, name, "master"
    except URLError as error:
        for branch in ("main", "master"):
            if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{branch}")):
                return owner, name, branch
        raise RuntimeError(
            "It looks like there is no internet connection and the repo could not be found in the "
            f"cache ({get_dir()})"
        ) from error


def _check_repo_is_trusted(
    repo_owner: str, repo_name: str, owner_name_branch: str, trust_repo: Any
) -> None:
    """Ask whether to trust a repository, unless its owner, the list of trusted ones in the hub's
    folder or, with "check", the cache has it; with True put it in the list without asking."""
    listed = Path(get_dir(), "trusted_list")
    listed.touch()
    name = f"{repo_owner}_{repo_name}"
    known = name in listed.read_text().split()
    if trust_repo == "check":
        cached = os.path.exists(os.path.join(get_dir(), owner_name_branch))
        if known or cached or repo_owner in _TRUSTED_REPO_OWNERS:
            return
        trust_repo = False
    if trust_repo is False:
        answer = input(
            f"The repository {name} does not belong to the list of trusted repositories and "
            "as such cannot be downloaded. Do you trust this repository and wish to add it to the "
            "trusted list of repositories (y/N)?"
        ).lower()
        if answer in ("", "n", "no"):
            raise Exception("Untrusted repository.")
        if answer not in ("y", "yes"):
            raise ValueError(f"Unrecognized response {answer}.")
    if not known:
        with listed.open("a") as file:
            file.write(f"{name}\n")


_safe_extract_zip = extract_zip


def _get_cache_or_reload(
    github: str, force_reload: bool, trust_repo: Any, verbose: bool = True
) -> str:
    """The folder of a repository, fetched if it is not there."""
    os.makedirs(get_dir(), exist_ok=True)
    owner, name, ref = _parse_repo_info(github)
    label = f"{owner}_{name}_{re.sub(_PATH_SEPARATOR, '_', ref)}"
    folder = os.path.join(get_dir(), label)
    _check_repo_is_trusted(owner, name, label, trust_repo)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    with tempfile.TemporaryDirectory(dir=get_dir()) as place:
        url, file = _git_archive_link(owner, name, ref), os.path.join(place, "archive.zip")
        if verbose:
            sys.stderr.write(f'Downloading: "{url}" to {folder}.zip\n')
        download_url_to_file(url, file, progress=False)
        with zipfile.ZipFile(file) as archive:
            top = archive.namelist()[0].split("/")[0]
            _safe_extract_zip(archive, place)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(place, top), folder)
    return folder


# -- hubconf.py -------------------------------------------------------------------------------


@contextlib.contextmanager
def _add_to_sys_path(path: str) -> Iterator[None]:
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)


def _import_module(name: str, path: str) -> Any:
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _hubconf(folder: str | os.PathLike) -> Any:
    with _add_to_sys_path(os.fspath(folder)):
        return _import_module(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))


def _check_dependencies(hubconf: Any) -> None:
    needed = getattr(hubconf, VAR_DEPENDENCY, None) or []
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")


def _load_entry_from_hubconf(hubconf: Any, model: str) -> Callable[..., Any]:
    """An entry point, once the dependencies are known to be there."""
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    _check_dependencies(hubconf)
    entry = getattr(hubconf, model, None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return entry


def list(  # noqa: A001
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> Any:
    """The names of the entry points of a repository on GitHub, "owner/name[:ref]".

    `skip_validation` changes nothing: whether the ref belongs to a fork is not looked up.
    """
    hubconf = _hubconf(_get_cache_or_reload(github, force_reload, trust_repo, verbose))
    return [
        name
        for name in dir(hubconf)
        if callable(getattr(hubconf, name)) and not name.startswith("_")
    ]


def help(  # noqa: A001
    github: str,
    model: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
) -> str | None:
    """The docstring of an entry point of a repository on GitHub."""
    hubconf = _hubconf(_get_cache_or_reload(github, force_reload, trust_repo))
    return _load_entry_from_hubconf(hubconf, model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the entry point `model` returns for the other arguments.

    With ``source="local"`` `repo_or_dir` is a folder, with "github" it is "owner/name[:ref]" and
    is fetched into `get_dir()` once (again with `force_reload`); with ``trust_repo="check"`` it is
    asked whether to trust it. Raises RuntimeError for a missing dependency or entry point.
    """
    source = source.lower()
    if source not in _SOURCES:
        allowed = " | ".join(f'"{name}"' for name in _SOURCES)
        raise ValueError(f'Unknown source: "{source}". Allowed values: {allowed}.')
    if source == "github":
        repo_or_dir = _get_cache_or_reload(repo_or_dir, force_reload, trust_repo, verbose)
    return _load_local(repo_or_dir, model, *args, **kwargs)


def _load_local(hubconf_dir: str | os.PathLike, model: str, *args: Any, **kwargs: Any) -> Any:
    hubconf = _hubconf(hubconf_dir)
    with _add_to_sys_path(os.fspath(hubconf_dir)):
        return _load_entry_from_hubconf(hubconf, model)(*args, **kwargs)


# -- files ------------------------------------------------------------------------------------


def _bar(title: str, total: int | None) -> Any:
    """A progress bar on standard error, None if tqdm is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return contextlib.nullcontext()
    return tqdm(desc=title, total=total, unit="B", unit_scale=True, unit_divisor=1024)


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetch a URL's contents into a file, which appears when it is complete.

    RuntimeError if its SHA-256 sum does not begin with `hash_prefix`.
    """
    dst = os.path.expanduser(dst)
    part = f"{dst}.{uuid.uuid4().hex}.partial"
    digest = hashlib.sha256()
    try:
        with urlopen(_request(url)) as reply, open(part, "wb") as file:
            length = reply.headers.get("Content-Length")
            title = os.path.basename(dst)
            whole = _bar(title, int(length) if length else None) if progress else None
            with whole or contextlib.nullcontext() as bar:
                while chunk := reply.read(READ_DATA_CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    if bar is not None:
                        bar.update(len(chunk))
        seen = digest.hexdigest()
        if hash_prefix is not None and not seen.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{seen}")')
        os.replace(part, dst)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(part)


def _legacy_member(file: str) -> str | None:
    """The one file in a plain ZIP archive, None if the file is no such archive."""
    if not zipfile.is_zipfile(file):
        return None
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    return names[0] if len(names) == 1 and not names[0].endswith("/") else None


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """What `torch.load` reads of a URL's file, which is kept in `model_dir`.

    The default folder is ``checkpoints`` in `get_dir()`, the default name the URL's last part.
    With `check_hash` that name must hold the beginning of its SHA-256 sum: ``name-1a2b3c4d.pth``.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    file = os.path.join(folder, name)
    if not os.path.exists(file):
        sys.stdout.write(f'Downloading: "{url}" to {file}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, file, found.group(1) if found else None, progress)
    member = _legacy_member(file)
    if member is not None:
        warnings.warn(
            "A ZIP archive around one file is the format of PyTorch before 1.6; save it again.",
            FutureWarning,
            stacklevel=level_outside(),
        )
        with zipfile.ZipFile(file) as archive:
            _safe_extract_zip(archive, folder)
        file = os.path.join(folder, member)
    return serialization.load(file, map_location=map_location, weights_only=weights_only)
