"""An older name of `hub.load_state_dict_from_url`, as ``torch.utils.model_zoo``."""

from __future__ import annotations

from tensorflow_lite_clone.hub import load_state_dict_from_url

load_url = load_state_dict_from_url

__all__ = ["load_state_dict_from_url", "load_url"]
