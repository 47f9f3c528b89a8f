"""``torch._ops``: the namespaces of operations, and the type of what is in them."""

from __future__ import annotations

from tensorflow_lite_clone import ops
from tensorflow_lite_clone.ops.namespaces import Namespace, OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]

_OpNamespace = Namespace
