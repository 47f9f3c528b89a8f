"""The files of TensorBoard's projector: points, their labels and their pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from tensorflow_lite_clone.utils.tensorboard import _pictures
from tensorflow_lite_clone.utils.tensorboard._convert_np import make_np


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


def _write_sprite(path: Path, images: np.ndarray, count: int) -> None:
    """All pictures in one, in as many rows as columns."""
    if len(images) != count:
        raise AssertionError("#images should equal with #data points")
    side = math.ceil(math.sqrt(count))
    full = np.zeros((side * side, *images.shape[1:]), images.dtype)
    full[:count] = images
    sheet = _pictures.to_bytes(_pictures.grid(full, side)).transpose(1, 2, 0)
    path.write_bytes(_pictures.encode_png(sheet))


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
        _write_sprite(root / info.sprite.image_path, images, len(points))
    _write_rows(root / info.tensor_path, points.tolist())
    return info


def write_config(root: Path, config: ProjectorConfig) -> None:
    """Write which sets of points there are."""
    (root / "projector_config.pbtxt").write_text(text_format.MessageToString(config))
