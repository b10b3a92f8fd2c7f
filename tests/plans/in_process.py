"""Runs a command line of hintplan in this process: what it prints and its exit code, without a new interpreter."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from hintplan.plans.cli import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def hintplan(
    *words: str | Path,
    folder: Path | None = None,
    stdin: bytes | str | None = b"",
    environment: Mapping[str, str] | None = None,
    together: bool = False,
) -> Done:
    """Run ``hintplan`` with ``words`` in ``folder``; what both streams say stands in ``stdout`` if ``together``."""
    stdin = stdin.encode() if isinstance(stdin, str) else stdin or b""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    printed = out if together else err
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    code = 0
    with (
        chdir(folder or Path.cwd()),
        mock.patch.dict(os.environ, {"NO_COLOR": "1", **(environment or {})}),
        mock.patch.object(sys, "stdin", given),
        redirect_stdout(out),
        redirect_stderr(printed),
    ):
        try:
            main([str(word) for word in words])
        except SystemExit as request:
            code = request.code if isinstance(request.code, int) else 1
    texts = []
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
        texts.append(stream.read())
    return Done(returncode=code, stdout=texts[0], stderr=texts[1])
