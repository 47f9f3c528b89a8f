"""The signatures of aten's operations: `python -m tests.tools.aten` writes them anew.

``python_dispatch/aten.txt`` has those that a public function of this package may stand for, read
from the PyTorch that is installed. Operations of one signature stand on one line, continued where
it is indented; an in-place twin (``add_``) is left out where its signature is that of ``add``.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core.public import EXPORTS
from tests.tools.markdown import ROOT

FILE = ROOT / "tensorflow_lite_clone" / "python_dispatch" / "aten.txt"
#: Operations whose names are those of no public function.
OTHERS = """
    H T _adaptive_avg_pool2d __and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__
    __or__ __rshift__
    __xor__ _assert_scalar _embedding_bag _log_softmax _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training _softmax _to_copy _unsafe_view _upsample_bicubic2d_aa
    _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d affine_grid_generator alias col2im constant_pad_nd convolution copy
    cross_entropy_loss embedding glu grid_sampler im2col imag index lift_fresh_copy log_sigmoid mH
    mT max_pool2d_with_indices max_pool3d_with_indices native_dropout native_group_norm
    native_layer_norm nll_loss_nd numpy_T real reflection_pad1d
    reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
    select_scatter slice slice_scatter sym_size
    upsample_bicubic2d upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d
    upsample_nearest3d upsample_trilinear3d
""".split()
#: Where functions are public, and how aten's names of these begin.
PREFIXES = {
    "torch": "", "method": "", "functional": "", "linalg": "linalg_", "fft": "fft_",
    "special": "special_",
}  # fmt: skip


def names() -> list[str]:
    """The operations that a public function may stand for."""
    tlc.fft, tlc.linalg, tlc.special  # noqa: B018  what they export is collected when imported
    public = [
        prefix + name
        for place, prefix in PREFIXES.items()
        for name in EXPORTS[place]
        if not name.startswith("_")
    ]
    return sorted({*public, *OTHERS})


def signatures() -> dict[str, str]:
    """The arguments of every overload, "add.Tensor" -> "Tensor self, ..."."""
    found: dict[str, str] = {}
    dispatched = set(torch._C._dispatch_get_all_op_names())  # others are TorchScript's alone
    for name in names():
        packet = getattr(torch.ops.aten, name, None)
        for overload in getattr(packet, "overloads", list)():
            operation = getattr(packet, overload)
            schema = operation._schema
            if operation.name() not in dispatched:
                continue
            values = [str(value.type) for value in (*schema.arguments, *schema.returns)]
            text = str(schema)
            if not any("Tensor" in value for value in values) or "Dimname" in text:
                continue
            if "out" in overload.split("_") or "(a!) out" in text or "complex" in overload:
                continue
            text = text.removeprefix(f"aten::{name}").rpartition(" -> ")[0]
            text = re.sub(r"\(\w[^ ()]*( -> [^()]*)?\)", "", text.partition("(")[2][:-1])
            found[name if overload == "default" else f"{name}.{overload}"] = text
    return {name: text for name, text in found.items() if found.get(_twin(name)) != text}


def _twin(name: str) -> str:
    """What an in-place operation is the form of; "" for another."""
    return (
        re.sub(r"(?<=[a-z0-9])_(?=\.|$)", "", name) if re.search(r"[a-z0-9]_(\.|$)", name) else ""
    )


def text() -> str:
    """What the file says."""
    groups: dict[str, list[str]] = {}
    for name, signature in signatures().items():
        groups.setdefault(signature, []).append(name)
    lines = [
        textwrap.fill(
            f"({signature}): {' '.join(found)}", 100, subsequent_indent="    ",
            break_long_words=False, break_on_hyphens=False,
        )
        for signature, found in sorted(groups.items())
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(FILE).write_text(text())
