"""The options of PyTorch's code generator, which is not here."""

from __future__ import annotations

from tensorflow_lite_clone.compiler.dynamo.options import Options

#: Set by programs, read by nothing.
config = Options("torch._inductor.config")
