"""TorchScript archives hold compiled code: they are neither read nor written."""

from __future__ import annotations

from typing import Any, NoReturn

_INSTEAD = (
    "save the state_dict with torch.save, and load it into a module made by the model's Python code"
)


def refuse_to_save(what: str) -> NoReturn:
    """Raise NotImplementedError for something that would write an archive."""
    raise NotImplementedError(
        f"{what} writes TorchScript, which needs PyTorch's compiler; nothing is compiled here: "
        f"{_INSTEAD}"
    )


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Always NotImplementedError: there is no compiled code that an archive could hold."""
    refuse_to_save("torch.jit.save()")


def load(
    f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
) -> Any:
    """Always NotImplementedError: an archive's code runs in PyTorch's interpreter only."""
    raise NotImplementedError(
        "torch.jit.load(): TorchScript archives are not read, since their code runs in PyTorch's "
        f"interpreter only. Where PyTorch is installed, {_INSTEAD}"
    )
