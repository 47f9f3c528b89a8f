"""docs/names.md says what is true now, and gives a reason for every name that is absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorflow_lite_clone._absent import LEFT_OUT, PLANNED, why
from tests.tools import names


def test_the_page_is_up_to_date() -> None:
    """To bring it up to date: python -m tests.tools.names."""
    assert names.PAGE.read_text(encoding="utf-8") == names.page(names.spaces())


def test_every_absent_name_has_a_reason() -> None:
    unknown = [f"{s.name}.{name}" for s in names.spaces() for name in s.absent.get(None, [])]
    assert unknown == []


def test_reasons() -> None:
    assert why("torch.nested.nested_tensor") == (LEFT_OUT, "nested and padded tensors")
    assert why("torch.masked.MaskedTensor") == (PLANNED, "smaller parts")
    assert why("torch.no_such_name") is None


def test_a_census_is_weighed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = {"torch.Tensor": 6, "torch.export.draft_export": 3, "torch.no_such_name": 1}
    file = tmp_path / "census.json"
    file.write_text(json.dumps({"names": {k: {"repositories": n} for k, n in entries.items()}}))
    names.census(file)
    printed = capsys.readouterr().out
    assert printed.startswith("60.00% of 3 names")
    assert "torch.export.draft_export: left out" in printed
    assert "torch.no_such_name: no reason" in printed
    assert printed.endswith("0 of the 0 that have signatures lack keywords of PyTorch's\n")


def test_missing_keywords_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names.lacking_keywords("torch.float32") is None
    assert names.lacking_keywords("torch.nn.functional.gelu") in (None, [])
    assert names.lacking_keywords("torch.nn.functional.layer_norm") == []
    monkeypatch.setattr(names.tlc.nn.functional, "layer_norm", lambda x, weight=None: x)
    assert names.lacking_keywords("torch.nn.functional.layer_norm") == [
        "input", "normalized_shape", "bias", "eps"
    ]  # fmt: skip
