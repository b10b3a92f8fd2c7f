"""Run the command line: ``python -m hintplan``, and the program to give to spark-submit.

spark-submit starts a program for Python only by the path of a file, this one:

    spark-submit --master URL .../site-packages/hintplan/__main__.py run plan.json
"""

from __future__ import annotations

import os
import sys

# Python puts the folder of a program that is started by its path first on the module search path, and by -m the
# directory where it starts. From the first, the packages in this folder would hide those of the user that have the same
# names; in the second is whatever lies beside a plan.
if not sys.flags.safe_path and sys.path[0] in (
    os.getcwd() if __package__ else os.path.dirname(__file__),
    os.path.dirname(os.path.realpath(__file__)),
):
    del sys.path[0]

from hintplan.plans.cli import main

if __name__ == "__main__":
    main()
