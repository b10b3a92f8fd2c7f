"""Run the command line, for ``python -m hintplan`` and for spark-submit.

spark-submit starts a Python program only by the path of a file, which is this file:

    spark-submit --master URL .../site-packages/hintplan/__main__.py run plan.json
"""

from __future__ import annotations

import os
import sys

# Python puts one directory first on the module search path: the folder of a program that is started by its path, or the
# working directory with -m. The packages in this folder would hide packages of the user with equal names. The working
# directory may contain arbitrary modules next to a plan.
if not sys.flags.safe_path and sys.path[0] in (
    os.getcwd() if __package__ else os.path.dirname(__file__),
    os.path.dirname(os.path.realpath(__file__)),
):
    del sys.path[0]

from hintplan.plans.cli import main

if __name__ == "__main__":
    main()
