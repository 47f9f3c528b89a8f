"""Stands where torch would, in a process that another one started: see `dropin.finder`."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("tensorflow_lite_clone") is None:
    sys.path.append(str(Path(__file__).parents[4]))

from tensorflow_lite_clone import install_as_torch

install_as_torch()
importlib.import_module(__name__)  # what stands for it now replaces this module
