'''The program of a bundle, which spark-submit starts: a few lines for people to read, with a copy in the archive.

The program unpacks the archive, because Python loads no compiled code from one, and hintplan sends its own files to
workers. The program runs on any Python 3, so that it can report a version that is too old.

>>> print(program_text(name="revenue", options=["--expect", "91fce7406047196c"], platform="linux-x86_64"))
... # doctest: +ELLIPSIS
"""Runs the plan revenue.json of revenue.zip on Spark: spark-submit ... --py-files revenue.zip revenue_main.py
...
'''

from __future__ import annotations

import json
from collections.abc import Sequence

_TEXT = '''\
"""Runs the plan {name}.json of {name}.zip on Spark: spark-submit ... --py-files {name}.zip {name}_main.py

Made by hintplan bundle. Its arguments go to hintplan run, after the options below.
"""

import os
import sys
import sysconfig
import tempfile
import zipfile

ARCHIVE = {archive}
PLATFORM = {platform}
OPTIONS = {options}


def archive_path():
    """Find the archive: around this file, among the --py-files of spark-submit, or in the folder of this file."""
    folder = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() else os.getcwd()
    if zipfile.is_zipfile(folder):
        return folder
    for path in [*sys.path, os.path.join(folder, ARCHIVE), ARCHIVE]:
        if os.path.basename(path) == ARCHIVE and zipfile.is_zipfile(path):
            return path
    sys.exit(f"{{ARCHIVE}} is missing: pass it to spark-submit with --py-files, or put it into {{folder}}")


if sys.version_info < (3, 11):
    sys.exit(f"hintplan needs Python 3.11 or newer, and {{sys.executable}} is {{sys.version.split()[0]}}")
if sysconfig.get_platform() != PLATFORM:
    sys.exit(f"{{ARCHIVE}} is for {{PLATFORM}}, not {{sysconfig.get_platform()}}: hintplan bundle has --platform")
with tempfile.TemporaryDirectory(prefix="hintplan-") as unpacked:
    with zipfile.ZipFile(archive_path()) as archive:
        archive.extractall(unpacked)
    sys.path.insert(0, unpacked)
    sys.argv[1:1] = ["run", os.path.join(unpacked, {plan}), *OPTIONS]
    from hintplan.plans.cli import main

    main()
'''


def program_text(*, name: str, options: Sequence[str], platform: str) -> str:
    """Return the program for the plan ``name``.json in the archive ``name``.zip.

    ``options`` are options of ``hintplan run``.
    """
    lines = "".join(f"    {json.dumps(option, ensure_ascii=False)},\n" for option in options)
    return _TEXT.format(
        name=name,
        archive=json.dumps(f"{name}.zip"),
        plan=json.dumps(f"{name}.json"),
        platform=json.dumps(platform),
        options=f"[\n{lines}]",
    )
