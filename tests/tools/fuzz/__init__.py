"""Random calls against PyTorch: python -m tests.tools.fuzz --calls 20000 --seed 0.

What is drawn: samples of the op table's rows with other sizes, dtypes, layouts and odd values;
the same in place, into `out=`, with mixed dtypes and with gradients; operators, conversions, keys
and functions of nn.functional. Values, dtypes, shapes and refusals must be PyTorch's, and inputs
must stay as they are. What differs is printed with the number of its call; `--only NUMBER` repeats
that one.
"""

from tests.device import DEVICE
from tests.tools.fuzz.calls import call, run

if DEVICE == "strict":
    import tests.strict_backend  # noqa: F401

__all__ = ["call", "run"]
