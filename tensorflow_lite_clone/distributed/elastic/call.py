"""What a worker does that calls a function: `elastic_launch` starts it."""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing import spawn
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import record


@record
def main() -> None:
    """Call the function of the file that the command names, and write down what it gives."""
    with open(sys.argv[1], "rb") as file:
        spawn.prepare(pickle.load(file))  # which finds the functions of a main program
        function, args = pickle.load(file)
    given = function(*args)
    folder = Path(os.environ["TORCHELASTIC_ERROR_FILE"]).parent
    (folder / "result.pickle").write_bytes(pickle.dumps(given))


def result(folder: Path) -> Any:
    """What the function gave in the worker of a folder, which the launcher made for it."""
    return pickle.loads((folder / "result.pickle").read_bytes())
