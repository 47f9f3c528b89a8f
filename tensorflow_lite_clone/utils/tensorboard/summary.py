"""The messages of TensorBoard's plugins, one function for each, as in PyTorch.

Each takes tensors, arrays or numbers and returns the `Summary` that a writer adds to its file.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from tensorflow_lite_clone.core.dtypes import int16
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils.runs import contents, pictures
from tensorflow_lite_clone.utils.runs.contents import compute_curve, make_np
from tensorflow_lite_clone.utils.runs.pictures import draw_boxes

__all__ = [
    "audio",
    "compute_curve",
    "custom_scalars",
    "draw_boxes",
    "histogram",
    "histogram_raw",
    "hparams",
    "image",
    "image_boxes",
    "make_histogram",
    "make_image",
    "make_video",
    "mesh",
    "pr_curve",
    "pr_curve_raw",
    "scalar",
    "tensor_proto",
    "text",
    "video",
]

# dtype -> (name of TensorBoard's type, the field its values go into).
_FIELDS = {
    "float16": ("DT_HALF", "half_val"),
    "bfloat16": ("DT_BFLOAT16", "half_val"),
    "float32": ("DT_FLOAT", "float_val"),
    "float64": ("DT_DOUBLE", "double_val"),
    "int8": ("DT_INT8", "int_val"),
    "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"),
    "int64": ("DT_INT64", "int64_val"),
    "uint8": ("DT_UINT8", "int_val"),
    "bool": ("DT_BOOL", "bool_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}
# What a mesh is made of, and the numbers of the kinds.
_MESH_PARTS = {"VERTEX": 1, "FACE": 2, "COLOR": 3}


def _shape(shape: Any) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in shape])


def _plugin(name: str, content: bytes = b"") -> SummaryMetadata:
    data = SummaryMetadata.PluginData(plugin_name=name, content=content)
    return SummaryMetadata(plugin_data=data)


def _one(**value: Any) -> Summary:
    return Summary(value=[Summary.Value(**value)])


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Summary:
    """A number: a tensor or array of one element, or what `float` takes; `new_style` makes it a
    tensor, of float64 with `double_precision`."""
    number = contents.number(tensor)
    if not new_style:
        return _one(tag=name, simple_value=number)
    if double_precision:
        value = TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        value = TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _one(tag=name, tensor=value, metadata=_plugin("scalars"))


def tensor_proto(tag: str, tensor: Tensor) -> Summary:
    """A whole tensor; ValueError for a dtype that TensorBoard does not have."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    kind, field = _FIELDS[name]
    line: Any = tensor.detach().cpu().resolve_conj().reshape(-1)
    if field == "half_val":
        line = make_np(line.view(int16)).view(np.uint16)
    elif tensor.is_complex():
        parts = make_np(line)
        line = np.stack([parts.real, parts.imag], axis=1).reshape(-1)
    values = {field: line.tolist()}
    value = TensorProto(dtype=kind, tensor_shape=_shape(tensor.shape), **values)
    return _one(tag=tag, tensor=value, metadata=_plugin("tensor"))


def text(tag: str, text: str) -> Summary:
    """A text, which is shown as Markdown."""
    value = TensorProto(
        dtype="DT_STRING", string_val=[text.encode("utf_8")], tensor_shape=_shape([1])
    )
    plugin = _plugin("text", TextPluginData(version=0).SerializeToString())
    return _one(tag=tag + "/text_summary", tensor=value, metadata=plugin)


# -- histograms and curves --------------------------------------------------------------------


def histogram_raw(
    name: str,
    min: float,  # noqa: A002
    max: float,  # noqa: A002
    num: float,
    sum: float,  # noqa: A002
    sum_squares: float,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Summary:
    """A histogram of which everything is known: counts, and the buckets' upper ends."""
    histo = HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )
    return _one(tag=name, histo=histo)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """The histogram of all values; see `make_histogram`."""
    array = make_np(values).astype(float)
    return _one(tag=name, histo=make_histogram(array, bins, max_bins))


def make_histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> HistogramProto:
    """Counts of values; see `contents.histogram`. ValueError where all lie outside `bins`."""
    found = contents.histogram(values, bins, max_bins)
    if not found.counts:
        raise ValueError("The histogram is empty, please file a bug report.")
    return HistogramProto(
        min=found.min,
        max=found.max,
        num=found.num,
        sum=found.sum,
        sum_squares=found.sum_squares,
        bucket_limit=found.limits,
        bucket=found.counts,
    )


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Summary:
    """A precision-recall curve: true and false positives and negatives, precision and recall at
    each threshold."""
    return _curve(tag, np.stack((tp, fp, tn, fn, precision, recall)), num_thresholds)


def _curve(tag: str, rows: np.ndarray, num_thresholds: int) -> Summary:
    content = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127))
    value = TensorProto(
        dtype="DT_FLOAT", float_val=rows.reshape(-1).tolist(), tensor_shape=_shape(rows.shape)
    )
    return _one(tag=tag, tensor=value, metadata=_plugin("pr_curves", content.SerializeToString()))


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Summary:
    """The precision-recall curve of binary labels and their predicted probabilities."""
    num_thresholds = min(num_thresholds, 127)
    return _curve(tag, compute_curve(labels, predictions, num_thresholds, weights), num_thresholds)


# -- pictures and sound -----------------------------------------------------------------------


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """A picture of bytes, or of numbers from 0 to 1; several become a grid."""
    pixels = pictures.to_hwc(make_np(tensor), dataformats)
    return _one(tag=tag, image=make_image(pictures.to_bytes(pixels), rescale))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Summary:
    """A picture with boxes (left, top, right, bottom), a row of `tensor_boxes` each."""
    pixels = pictures.to_bytes(pictures.to_hwc(make_np(tensor_image), dataformats))
    made = make_image(pixels, rescale, rois=make_np(tensor_boxes).tolist(), labels=labels)
    return _one(tag=tag, image=made)


def make_image(
    tensor: np.ndarray, rescale: float = 1, rois: Any = None, labels: Any = None
) -> Summary.Image:
    """The PNG of bytes (H, W, C), with boxes `rois` and their labels."""
    height, width, channels = tensor.shape
    return Summary.Image(
        height=height,
        width=width,
        colorspace=channels,
        encoded_image_string=pictures.encode_png(tensor, rescale, rois, labels),
    )


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Videos (N, T, C, H, W) of bytes, or of numbers from 0 to 1, side by side."""
    frames = pictures.to_bytes(pictures.side_by_side(make_np(tensor)))
    return _one(tag=tag, image=make_video(frames, fps))


def make_video(tensor: np.ndarray, fps: float) -> Summary.Image:
    """The GIF of frames of bytes (T, H, W, C)."""
    _, height, width, channels = tensor.shape
    return Summary.Image(
        height=height,
        width=width,
        colorspace=channels,
        encoded_image_string=pictures.encode_gif(tensor, fps),
    )


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """One channel of sound, numbers from -1 to 1."""
    content, length = contents.sound(tensor, sample_rate)
    made = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=length,
        encoded_audio_string=content,
        content_type="audio/wav",
    )
    return _one(tag=tag, audio=made)


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: dict | None,
    display_name: str | None = None,
    description: str | None = None,
) -> Summary:
    """Points (N, points, 3), with colors of that shape and triangles (N, triangles, 3) or None.

    `config_dict` goes to the viewer (three.js) as it is.
    """
    parts = {
        kind: make_np(x)
        for kind, x in {"VERTEX": vertices, "FACE": faces, "COLOR": colors}.items()
        if x is not None
    }
    components = sum(1 << _MESH_PARTS[kind] for kind in parts)
    values = []
    for kind, x in parts.items():
        content = MeshPluginData(
            version=0,
            name=tag,
            content_type=_MESH_PARTS[kind],
            components=components,
            shape=x.shape,
            json_config=json.dumps(config_dict or {}, sort_keys=True),
        )
        plugin = _plugin("mesh", content.SerializeToString())
        plugin.display_name = display_name or ""
        plugin.summary_description = description or ""
        value = TensorProto(
            dtype="DT_FLOAT", float_val=x.reshape(-1).tolist(), tensor_shape=_shape(x.shape)
        )
        values.append(Summary.Value(tag=f"{tag}_{kind}", tensor=value, metadata=plugin))
    return Summary(value=values)


# -- layouts and hyperparameters --------------------------------------------------------------


def custom_scalars(layout: dict) -> Summary:
    """Charts of several scalars: {category: {chart: ["Multiline", tags] or ["Margin", tags]}}.

    The tags of a margin chart are three: a value and its lower and upper bounds.
    """
    categories = []
    for title, charts in layout.items():
        made = []
        for name, (kind, tags, *_) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(f"len(tags) != 3: {tags}")
                value, lower, upper = tags
                series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
                margin = layout_pb2.MarginChartContent(series=[series])
                made.append(layout_pb2.Chart(title=name, margin=margin))
            else:
                lines = layout_pb2.MultilineChartContent(tag=tags)
                made.append(layout_pb2.Chart(title=name, multiline=lines))
        categories.append(layout_pb2.Category(title=title, chart=made))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    value = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _one(tag="custom_scalars__config__", tensor=value, metadata=_plugin("custom_scalars"))


def _hparam(value: Any) -> tuple[Any, Any]:
    """TensorBoard's type and value of a hyperparameter."""
    value = contents.hyperparameter(value)
    if isinstance(value, str):
        return api_pb2.DATA_TYPE_STRING, struct_pb2.Value(string_value=value)
    return api_pb2.DATA_TYPE_FLOAT64, struct_pb2.Value(number_value=value)


def hparams(
    hparam_dict: dict | None = None,
    metric_dict: dict | None = None,
    hparam_domain_discrete: dict | None = None,
) -> tuple[Summary, Summary, Summary]:
    """A run's hyperparameters (numbers, bools, text, tensors of one element) and the names of its
    metrics: three summaries, of the experiment, the run's beginning and its end.

    `hparam_domain_discrete` lists the values that some of them can take. TypeError for what is
    no dictionary, ValueError for values of other types; None is left out.
    """
    contents.check_hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
    domains = hparam_domain_discrete or {}
    start = plugin_data_pb2.SessionStartInfo()
    infos = []
    for name, value in (hparam_dict or {}).items():
        if value is None:
            continue
        kind, message = _hparam(value)
        start.hparams[name].CopyFrom(message)
        options = {}
        if name in domains:
            choices = [_hparam(choice)[1] for choice in domains[name]]
            options["domain_discrete"] = struct_pb2.ListValue(values=choices)
        infos.append(api_pb2.HParamInfo(name=name, type=kind, **options))
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metric_dict or {}]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)

    def summary(tag: str, **content: Any) -> Summary:
        data = plugin_data_pb2.HParamsPluginData(version=0, **content)
        return _one(tag=tag, metadata=_plugin(metadata.PLUGIN_NAME, data.SerializeToString()))

    return (
        summary(metadata.EXPERIMENT_TAG, experiment=experiment),
        summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        summary(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )
