"""Remarks as workflow commands of GitHub Actions, which displays them at the lines of a pull request.

    ::warning file=plan.json,line=3,col=5,title=hintplan%3A diff-rebuild::...

No text in a remark can end a command or begin another: line ends, ``%``, ``:`` and ``,`` are written as codes.

>>> github([Remark(rule="diff-ttl", level="note", message="a\\n::error::b", file="p,1.json", line=2)])
'::notice file=p%2C1.json,line=2,title=hintplan%3A diff-ttl::a%0A::error::b'
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.plans.review.annotations import Remark
from hintplan.plans.text.escapes import clean

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def github(remarks: Sequence[Remark]) -> str:
    """Return one command per line."""
    return "\n".join(map(_command, remarks))


def _command(remark: Remark) -> str:
    properties = {"file": remark.file, "line": remark.line, "col": remark.column, "title": f"hintplan: {remark.rule}"}
    assignments = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{_COMMANDS[remark.level]} {assignments}::{_data(remark.message)}"


def _data(text: str) -> str:
    return clean(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
