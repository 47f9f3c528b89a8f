"""The records of what programs log: a function for each of those of `utils.tensorboard.summary`.

Each returns a dictionary of `kind`, `tag` and `value`, ready for `log.FileWriter`; the kinds and
what their values hold stand in docs/watch.md.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils.runs import contents, pictures
from tensorflow_lite_clone.utils.runs.contents import make_np

Record = dict[str, Any]


def _record(kind: str, tag: str, value: Any) -> Record:
    if not isinstance(tag, str):
        raise TypeError(f"a tag is a str, not {type(tag).__name__}")
    return {"kind": kind, "tag": tag, "value": value}


def _media(type: str, content: bytes, **more: Any) -> Record:
    return {"type": type, **more, "data": base64.b64encode(content).decode()}


def scalar(tag: str, tensor: Any, **options: Any) -> Record:
    """A number: a tensor or array of one element, or what `float` takes. `options` are
    TensorBoard's."""
    return _record("scalar", tag, contents.number(tensor))


def tensor_proto(tag: str, tensor: Tensor) -> Record:
    """A whole tensor; complex numbers are pairs."""
    dtype, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
    array = make_np(tensor)
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], axis=-1)
    return _record("tensor", tag, {"dtype": dtype, "shape": shape, "values": array.tolist()})


def text(tag: str, text: str) -> Record:
    """A text."""
    if not isinstance(text, str):
        raise TypeError(f"a text is a str, not {type(text).__name__}")
    return _record("text", tag, text)


def histogram_raw(tag: str, *figures: Any) -> Record:
    """A histogram of which everything is known, in the order of `SummaryWriter`'s method."""
    names = ("min", "max", "num", "sum", "sum_squares", "limits", "counts")
    value = {name: np.asarray(x, float).tolist() for name, x in zip(names, figures, strict=True)}
    return _record("histogram", tag, value)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Record:
    """The histogram of all finite values, and how many others there are (`nonfinite`)."""
    array = make_np(values).astype(float).reshape(-1)
    finite = array[np.isfinite(array)]
    if array.size and not finite.size:
        found = contents.Histogram(0, 0, 0, 0, 0, [], [])
    else:
        found = contents.histogram(finite, bins, max_bins)
    moments = found.min, found.max, found.num, found.sum, found.sum_squares
    made = histogram_raw(name, *moments, found.limits, found.counts)
    made["value"]["nonfinite"] = array.size - finite.size
    return made


def pr_curve_raw(tag: str, *curves: Any) -> Record:
    """A precision-recall curve: true and false positives and negatives, precision and recall at
    each threshold. What `SummaryWriter`'s method is given besides is TensorBoard's alone."""
    names = ("tp", "fp", "tn", "fn", "precision", "recall")
    rows = np.stack(curves[: len(names)]).astype(float).tolist()
    return _record("pr_curve", tag, dict(zip(names, rows)))


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Record:
    """The precision-recall curve of binary labels and their predicted probabilities."""
    rows = contents.compute_curve(labels, predictions, min(num_thresholds, 127), weights)
    return pr_curve_raw(tag, *rows)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Record:
    """A picture of bytes, or of numbers from 0 to 1; several become a grid."""
    pixels = pictures.to_bytes(pictures.to_hwc(make_np(tensor), dataformats))
    if rescale == 1:
        return _record("image", tag, _media("image/png", pictures.plain_png(pixels)))
    return _record("image", tag, _media("image/png", pictures.encode_png(pixels, rescale)))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Record:
    """A picture with boxes (left, top, right, bottom), a row of `tensor_boxes` each."""
    pixels = pictures.to_bytes(pictures.to_hwc(make_np(tensor_image), dataformats))
    content = pictures.encode_png(pixels, rescale, make_np(tensor_boxes).tolist(), labels)
    return _record("image", tag, _media("image/png", content))


def video(tag: str, tensor: Any, fps: float = 4) -> Record:
    """Videos (N, T, C, H, W) of bytes, or of numbers from 0 to 1, side by side."""
    frames = pictures.to_bytes(pictures.side_by_side(make_np(tensor)))
    return _record("image", tag, _media("image/gif", pictures.encode_gif(frames, fps)))


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Record:
    """One channel of sound, numbers from -1 to 1."""
    content, _ = contents.sound(tensor, sample_rate)
    return _record("audio", tag, _media("audio/wav", content, sample_rate=sample_rate))


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: dict | None) -> Record:
    """Points (N, points, 3), with colors of that shape and triangles (N, triangles, 3) or None."""
    parts = {"vertices": vertices, "colors": colors, "faces": faces}
    value = {name: make_np(x).tolist() for name, x in parts.items() if x is not None}
    return _record("mesh", tag, {**value, "config": config_dict or {}})


def embedding(tag: str, mat: Any, metadata: Any, label_img: Any, header: Any) -> Record:
    """Points (N, D) with their labels, and their pictures in one."""
    points = make_np(mat)
    if points.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    value: Record = {"points": points.tolist()}
    if metadata is not None:
        if len(metadata) != len(points):
            raise AssertionError("#labels should equal with #data points")
        rows = metadata if header else [[label] for label in metadata]
        value["labels"] = [[str(x) for x in row] for row in rows]
        value["header"] = [str(x) for x in header or ["label"]]
    if label_img is not None:
        sheet = pictures.sheet(make_np(label_img), len(points))
        value["sheet"] = _media("image/png", pictures.plain_png(sheet))
    return _record("embedding", tag, value)


def custom_scalars(layout: dict) -> Record:
    """Charts of several scalars: {category: {chart: ["Multiline", tags] or ["Margin", tags]}}."""
    for charts in layout.values():
        for kind, tags, *_ in charts.values():
            if kind == "Margin" and len(tags) != 3:
                raise AssertionError(f"len(tags) != 3: {tags}")
    return _record("layout", "layout", layout)


def hparams(
    hparam_dict: dict | None = None,
    metric_dict: dict | None = None,
    hparam_domain_discrete: dict | None = None,
) -> tuple[Record]:
    """A run's hyperparameters (numbers, bools, text, tensors of one element) and the names of its
    metrics. TypeError for what is no dictionary, ValueError for values of other types; None is
    left out."""
    contents.check_hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
    given = {k: contents.hyperparameter(v) for k, v in (hparam_dict or {}).items() if v is not None}
    return (_record("hparams", "hparams", {"hparams": given, "metrics": list(metric_dict or {})}),)
