"""Run scripts under PyTorch: ``python forked.py SCRIPT ...``.

Each runs in a process that begins with PyTorch and torchvision imported: importing them takes
longer than most scripts do. What one prints goes to a file of its name in the working folder, with
``.txt`` behind.
"""

import os
import runpy
import sys
import traceback

from tests.vision.declared import imported

imported()

if __name__ == "__main__":
    for script in sys.argv[1:]:
        child = os.fork()
        if not child:
            status = 1
            sys.argv = [script]
            sys.path[0] = os.path.dirname(script)
            sys.stdout = open(os.path.basename(script) + ".txt", "w")  # noqa: SIM115
            try:
                runpy.run_path(script, run_name="__main__")
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            os._exit(status)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{script} failed")
