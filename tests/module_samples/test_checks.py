"""The checks themselves, on modules that agree and on ones made to differ."""

from __future__ import annotations

from typing import Any

import pytest
from torch.testing._internal.common_modules import module_db

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn  # noqa: F401  (binds tlc.nn)
from tests.module_samples import checks
from tests.samples.comparison import Difference, Nothing
from tests.samples.translate import Missing

ENTRIES = {info.name.removeprefix("nn."): info for info in module_db}
#: kind -> a module for it, where that is not Linear
MODULES = {
    "errors": "HuberLoss",
    "memory_format": "ReLU",
    "non_contiguous": "ReLU",
    "inplace": "ReLU",
}


class OtherValues(tlc.nn.Linear):
    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.weight.data.mul_(2)


class OneDtype(tlc.nn.Linear):
    def __init__(self, *args: Any, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class Offset(tlc.nn.Linear):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs) + 1


class Steeper(tlc.nn.Linear):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        result = super().forward(*args, **kwargs)
        return 2 * result - result.detach()


class Curved(tlc.nn.Linear):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        result = super().forward(*args, **kwargs)
        return result + (result - result.detach()) ** 2


class Lenient(tlc.nn.HuberLoss):
    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction, abs(delta) or 1.0)


class RowMajor(tlc.nn.ReLU):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs).contiguous()


class Gaps(tlc.nn.ReLU):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return super().forward(*args, **kwargs) * (1 if args[0].is_contiguous() else 2)


class Anonymous(tlc.nn.Linear):
    def extra_repr(self) -> str:
        return ""


class Forgetful(tlc.nn.Linear):
    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.weight.data.zero_()


class Immovable(tlc.nn.Linear):
    def half(self) -> Any:
        return self


class Deaf(tlc.nn.Linear):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


class Beside(tlc.nn.ReLU):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return args[0].relu()


class Tireless(tlc.nn.Linear):
    def train(self, mode: bool = True) -> Any:
        return self


class Recording(tlc.nn.Linear):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        with tlc.enable_grad():
            return super().forward(*args, **kwargs)


DIFFERENT: dict[str, type] = {
    "initial_values": OtherValues,
    "factory_arguments": OneDtype,
    "forward": Offset,
    "half_precision": Offset,
    "gradients": Steeper,
    "second_gradients": Curved,
    "errors": Lenient,
    "memory_format": RowMajor,
    "non_contiguous": Gaps,
    "representation": Anonymous,
    "copies": Forgetful,
    "moves": Immovable,
    "hooks": Deaf,
    "inplace": Beside,
    "modes": Tireless,
    "gradient_modes": Recording,
}


@pytest.mark.parametrize("kind", checks.KINDS)
def test_a_module_that_agrees(kind: str) -> None:
    checks.KINDS[kind](ENTRIES[MODULES.get(kind, "Linear")])


@pytest.mark.parametrize("kind", checks.KINDS)
def test_a_difference_is_noticed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = MODULES.get(kind, "Linear")
    other = DIFFERENT[kind]
    other.__name__ = name  # what is noticed is not the name
    monkeypatch.setattr(tlc.nn, name, other)
    with pytest.raises((AssertionError, Difference)):
        checks.KINDS[kind](ENTRIES[name])


def test_a_missing_module_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tlc.nn, "Linear")
    with pytest.raises(Missing):
        checks.forward(ENTRIES["Linear"])


@pytest.mark.parametrize("kind", ["errors", "inplace", "memory_format"])
def test_nothing_to_check_is_no_success(kind: str) -> None:
    with pytest.raises(Nothing):
        checks.KINDS[kind](ENTRIES["Linear"])
