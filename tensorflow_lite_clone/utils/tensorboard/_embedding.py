"""The files of TensorBoard's projector: points, their labels and their pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from tensorflow_lite_clone.utils.runs import pictures
from tensorflow_lite_clone.utils.runs.contents import make_np


def folder_name(tag: str) -> str:
    """A tag as the name of one folder."""
    return tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")


def _write_rows(path: Path, rows: Any) -> None:
    lines = ["\t".join([str(x) for x in row]) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")


def _write_labels(path: Path, metadata: Any, header: Any, count: int) -> None:
    if len(metadata) != count:
        raise AssertionError("#labels should equal with #data points")
    rows = metadata if header else [[label] for label in metadata]
    _write_rows(path, [header, *rows] if header else rows)


def write_embedding(
    root: Path, folder: str, name: str, mat: Any, metadata: Any, label_img: Any, header: Any
) -> EmbeddingInfo:
    """Write the files of one set of points (a row of `mat` each) into ``root/folder``."""
    points = make_np(mat)
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    (root / folder).mkdir(parents=True, exist_ok=True)
    info = EmbeddingInfo(tensor_name=name, tensor_path=f"{folder}/tensors.tsv")
    if metadata is not None:
        info.metadata_path = f"{folder}/metadata.tsv"
        _write_labels(root / info.metadata_path, metadata, header, len(points))
    if label_img is not None:
        images = make_np(label_img)
        info.sprite.image_path = f"{folder}/sprite.png"
        info.sprite.single_image_dim.extend([images.shape[3], images.shape[2]])
        sheet = pictures.sheet(images, len(points))
        (root / info.sprite.image_path).write_bytes(pictures.encode_png(sheet))
    _write_rows(root / info.tensor_path, points.tolist())
    return info


def write_config(root: Path, config: ProjectorConfig) -> None:
    """Write which sets of points there are."""
    (root / "projector_config.pbtxt").write_text(text_format.MessageToString(config))
