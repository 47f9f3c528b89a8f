"""`python -m tests.op_db [pytest arguments]`: check the table and its suites.

They run with PyTorch on both sides, so that what fails is the table's or a suite's fault.
"""

from __future__ import annotations

import os
import subprocess
import sys

command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "tests/ops", *sys.argv[1:]]
sys.exit(subprocess.run(command, env=os.environ | {"SELF_CHECK": "1"}, check=False).returncode)
