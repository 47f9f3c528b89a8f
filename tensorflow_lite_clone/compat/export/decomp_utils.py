"""``torch.export.decomp_utils``: the table of decompositions; transformers' exporters import it."""

from __future__ import annotations

from tensorflow_lite_clone.export import CustomDecompTable

__all__ = ["CustomDecompTable"]
