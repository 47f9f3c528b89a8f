"""The methods that `SummaryWriter` has, whatever it writes."""

from __future__ import annotations

import datetime
import os
import socket
import time
import warnings
from typing import Any, Self

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.utils.runs import contents, pictures


class Face:
    """The methods of a `SummaryWriter`, one for each kind of thing that programs log.

    A subclass says what is written: `_make` has a function for each kind, which returns what
    `add_summary` of a file takes; `_open_file` opens the file of a folder.
    """

    _make: Any  # the module of these functions

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            moment = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{moment}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.default_bins = contents.default_bins()
        self.file_writer: Any = None
        self.all_writers: dict[str, Any] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> Any:
        """The main file, opened again if it was closed."""
        if self.file_writer is None:
            writer = self._open(self.log_dir)
            if self.purge_step is not None:
                self._purge(writer, self.purge_step)
                self.purge_step = None
            self.file_writer = writer
        return self.file_writer

    def _open(self, folder: Any) -> Any:
        """The file of a folder."""
        if self.all_writers is None:
            self.all_writers = {}
        name = os.fspath(folder)
        if name not in self.all_writers:
            self.all_writers[name] = self._open_file(name)
        return self.all_writers[name]

    def _open_file(self, folder: str) -> Any:
        raise NotImplementedError

    def _purge(self, writer: Any, step: int) -> None:
        """Hide what was written into the folder of a file before, from a step on."""
        raise NotImplementedError

    def _add(self, made: Any, step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(made, step, walltime)

    def get_logdir(self) -> Any:
        """The folder."""
        return self.log_dir

    # -- numbers ------------------------------------------------------------------------------

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add a point of a curve."""
        made = self._make.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._add(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add points of several curves of one chart; each curve has a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        root = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            writer = self._open(f"{root}/{main_tag.replace('/', '_')}_{tag}")
            writer.add_summary(self._make.scalar(main_tag, value), global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add a whole tensor."""
        self._add(self._make.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Add the histogram of all values; `bins` is "tensorflow" or what numpy.histogram takes."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(self._make.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,  # noqa: A002
        max: float,  # noqa: A002
        num: float,
        sum: float,  # noqa: A002
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a histogram of which everything is known."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = self._make.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(made, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add the precision-recall curve of binary labels and predicted probabilities."""
        labels, predictions = contents.make_np(labels), contents.make_np(predictions)
        made = self._make.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._add(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a precision-recall curve of which everything is known."""
        counts = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
        )
        made = self._make.pr_curve_raw(tag, *counts, precision, recall, num_thresholds, weights)
        self._add(made, global_step, walltime)

    # -- pictures, sound, text ------------------------------------------------------------------

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add a picture of bytes, or of numbers from 0 to 1."""
        self._add(self._make.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add several pictures as one."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Add a picture with boxes (left, top, right, bottom); `labels` is a text for each."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != len(box_tensor):
            labels = None
        made = self._make.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Add a figure of Matplotlib's, or a list of them, and close it."""
        pixels = pictures.figure_to_image(figure, close)
        formats = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, pixels, global_step, walltime, formats)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Add videos (N, T, C, H, W) of bytes, or of numbers from 0 to 1, side by side."""
        self._add(self._make.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Add sound: (1, L), numbers from -1 to 1."""
        self._add(self._make.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a text; TensorBoard shows it as Markdown."""
        self._add(self._make.text(tag, text_string), global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict | None = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add points (N, points, 3), with colors and triangles if given."""
        made = self._make.mesh(tag, vertices, colors, faces, config_dict)
        self._add(made, global_step, walltime)

    # -- runs and models ------------------------------------------------------------------------

    def add_hparams(
        self,
        hparam_dict: dict,
        metric_dict: dict,
        hparam_domain_discrete: dict | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Add a run's hyperparameters and final metrics, in a folder `run_name` of its own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        made = self._make.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        name = str(time.time()) if run_name is None else run_name
        folder = os.path.join(self._get_file_writer().get_logdir(), name)
        with type(self)(log_dir=folder) as writer:
            for part in made:
                writer._add(part, None, None)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Add points (N, D) in a space; `metadata` holds N labels, or with
        `metadata_header` N rows of labels; `label_img` N pictures (N, C, H, W)."""
        self._embed(mat, metadata, label_img, global_step, tag, metadata_header)

    def _embed(
        self, mat: Any, metadata: Any, label_img: Any, global_step: Any, tag: str, header: Any
    ) -> None:
        raise NotImplementedError

    def add_custom_scalars(self, layout: dict) -> None:
        """Add charts of several scalars; see `custom_scalars` of utils.tensorboard.summary."""
        self._add(self._make.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Add one chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Add one chart of a scalar and its lower and upper bounds."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Write what a model runs for these inputs, a tensor or several, in the boxes of its
        modules; `verbose` prints it, too.

        The model is exported as it is for evaluation, by `torch.export.export`, which raises
        where values decide what is run. `use_strict_trace` changes nothing. Only TensorBoard's
        own files have graphs: other writers warn, and write nothing. `viz` draws them.
        """
        self._add_graph(model, input_to_model, verbose)

    def _add_graph(self, model: Any, inputs: Any, verbose: bool) -> None:
        warnings.warn(
            "SummaryWriter.add_graph writes nothing: graphs are for TensorBoard's own files",
            stacklevel=level_outside(),
        )

    # -- the files ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what is queued."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what is queued, and close the files; adding something opens a new one."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
