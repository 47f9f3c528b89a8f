"""Fetching, checking and unpacking the files of datasets, with torchvision's names."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.serialization._unpacking import (
    COMPRESSED,
    decompress,
    extract_tar,
    extract_zip,
)

AnyPath = str | os.PathLike
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tar.xz", ".txz")


def fetch(urls: Sequence[str], path: Path, md5: str | None = None) -> None:
    """Fetches a file from the first URL that has it; see `vision._download`."""
    from tensorflow_lite_clone.vision import _download

    _download.download(urls, path, md5)


def calculate_md5(fpath: AnyPath, chunk_size: int = 1024 * 1024) -> str:
    """The hexadecimal MD5 sum of a file (a guard against accidents, not attacks)."""
    from tensorflow_lite_clone.vision import _download

    return _download.md5_of(Path(fpath))


def check_md5(fpath: AnyPath, md5: str, **kwargs: Any) -> bool:
    """Whether a file has that MD5 sum."""
    return md5 == calculate_md5(fpath, **kwargs)


def check_integrity(fpath: AnyPath, md5: str | None = None) -> bool:
    """Whether the file exists, and has that MD5 sum if one is given."""
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


def download_url(
    url: str,
    root: AnyPath,
    filename: AnyPath | None = None,
    md5: str | None = None,
    max_redirect_hops: int = 3,
) -> None:
    """Fetches a file into the folder `root`, under `filename` or the URL's last part.

    A file that is there and has the right sum is left; one with another sum is replaced. A
    broken download is continued by the next call. Raises RuntimeError, which says why, if it
    fails. `max_redirect_hops` is accepted; Python's own limit holds.
    """
    folder = Path(root).expanduser()
    path = folder / (filename or os.path.basename(url))
    if check_integrity(path, md5):
        return
    folder.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    fetch([url], path, md5)


def extract_archive(
    from_path: AnyPath, to_path: AnyPath | None = None, remove_finished: bool = False
) -> AnyPath:
    """Unpacks an archive into the folder `to_path`, by default the one it lies in; returns it.

    The name's end says the format: .zip, .tar and packed tars, or one file packed as .gz, .bz2 or
    .xz, of which `to_path` is then the unpacked file. Raises RuntimeError for other names, for an
    archive with a member that would be written outside the folder, and for one that would unpack
    to more than 256 MiB and more than 200 times its size; nothing of them is unpacked then.
    """
    source = Path(from_path)
    name = source.name.lower()
    is_archive = name.endswith((*TAR_ENDINGS, ".zip"))
    if not is_archive and source.suffix.lower() not in COMPRESSED:
        raise RuntimeError(
            f"{source} is no archive by its name: expected .zip, {', '.join(TAR_ENDINGS)}, "
            f"{', '.join(COMPRESSED)}"
        )
    if to_path is not None:
        target = Path(to_path)
    else:
        target = source.parent if is_archive else source.with_suffix("")
    try:
        if name.endswith(".zip"):
            with zipfile.ZipFile(source) as archive:
                extract_zip(archive, str(target))
        elif is_archive:
            extract_tar(str(source), str(target))
        else:
            decompress(str(source), str(target))
    except ValueError as error:
        raise RuntimeError(f"{source} is refused: {error}") from error
    if remove_finished:
        source.unlink()
    return to_path if to_path is not None else str(target)


def download_and_extract_archive(
    url: str,
    download_root: AnyPath,
    extract_root: AnyPath | None = None,
    filename: AnyPath | None = None,
    md5: str | None = None,
    remove_finished: bool = False,
) -> None:
    """`download_url`, then `extract_archive` into `extract_root` (by default `download_root`)."""
    folder = os.path.expanduser(download_root)
    filename = filename or os.path.basename(url)
    download_url(url, folder, filename, md5)
    extract_archive(os.path.join(folder, filename), extract_root or folder, remove_finished)


def list_dir(root: AnyPath, prefix: bool = False) -> list[str]:
    """The names of the folders in a folder, as paths with `prefix`."""
    root = os.path.expanduser(root)
    names = [name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name))]
    return [os.path.join(root, name) for name in names] if prefix else names


def list_files(root: AnyPath, suffix: str | tuple[str, ...], prefix: bool = False) -> list[str]:
    """The names of the files in a folder that end in `suffix`, as paths with `prefix`."""
    root = os.path.expanduser(root)
    names = [name for name in os.listdir(root) if name.endswith(suffix)]
    names = [name for name in names if os.path.isfile(os.path.join(root, name))]
    return [os.path.join(root, name) for name in names] if prefix else names


def iterable_to_str(iterable: Iterable) -> str:
    """The items in quotes, with commas between."""
    return "'" + "', '".join(str(item) for item in iterable) + "'"


def verify_str_arg(
    value: Any,
    arg: str | None = None,
    valid_values: Iterable[Any] | None = None,
    custom_msg: str | None = None,
) -> Any:
    """`value`, if it is a string among `valid_values`; else ValueError, which names the argument"""
    where = "" if arg is None else f" for argument {arg}"
    if not isinstance(value, str):
        raise ValueError(f"Expected type str{where}, but got type {type(value)}.")
    if valid_values is not None and value not in (values := tuple(valid_values)):
        allowed = f"{{{iterable_to_str(values)}}}"
        raise ValueError(
            custom_msg or f"Unknown value '{value}'{where}. Valid values are {allowed}."
        )
    return value
