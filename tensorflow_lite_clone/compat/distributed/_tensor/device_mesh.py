"""The older name of `torch.distributed.device_mesh`."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
