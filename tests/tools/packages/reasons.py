"""Why a step is not equal, and why a module cannot be imported, where the message does not say."""

from __future__ import annotations

_LONGER = "the message begins as PyTorch's and says more"
#: (package, step): the reason.
REASONS: dict[tuple[str, str], str] = {
    ("mlflow-skinny", "a PyTorch model logged and loaded"): (
        "mlflow pickles models by cloudpickle, whose pickler in C asks nobody about storages"
    ),
    ("tensorboard", "the graph of a model has its layers"): "`add_graph` writes nothing",
    ("torch-geometric", "PNA, GroupAddRev, GPS-like transformers: SGFormer, Polynormer"): (
        "GroupAddRev frees memory by `UntypedStorage.resize_`, which is not here"
    ),
    ("diffusers", "gradients through a step; float64; bfloat16"): (
        "a number that multiplies bfloat16 is rounded to it first; PyTorch keeps it in float32"
    ),
    ("transformers", "an unknown dtype"): _LONGER,
}
#: A module: the reason.
WITHOUT: dict[str, str] = {}
