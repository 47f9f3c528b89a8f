"""Why a step is not equal, and why a module cannot be imported, where the message does not say."""

from __future__ import annotations

_BOUND = "functions kept in a class become its methods; PyTorch's are builtins, which do not"
_LONGER = "the message begins as PyTorch's and says more"
#: (package, step): the reason.
REASONS: dict[tuple[str, str], str] = {
    ("datasets", "refused: a device that is not there"): (
        "the type of the error is BackendUnavailableError, and it says what to install"
    ),
    ("diffusers", "refused: a GPU that is not there"): (
        "the type of the error is BackendUnavailableError, and it says what to install"
    ),
    ("mlflow-skinny", "a PyTorch model logged and loaded"): (
        "mlflow pickles models by cloudpickle, whose pickler in C asks nobody about storages"
    ),
    ("tensorboard", "the graph of a model has its layers"): "`add_graph` writes nothing",
    ("torch-geometric", "PNA, GroupAddRev, GPS-like transformers: SGFormer, Polynormer"): (
        "GroupAddRev frees memory by `UntypedStorage.resize_`, which is not here"
    ),
    ("kornia", "Hausdorff losses"): _BOUND,
    ("sentence-transformers", "a cross-encoder: scores and ranks"): _BOUND,
    ("bitsandbytes", "refused: int8 factors of other lengths"): (
        "bitsandbytes multiplies int8 as it does on a machine without AVX-512: as float32"
    ),
    ("transformers", "an unknown dtype"): _LONGER,
}
#: A module: the reason.
WITHOUT: dict[str, str] = {}
