"""Remarks as SARIF 2.1.0 (OASIS standard), the input format of code scanning.

>>> sarif([], {})["runs"][0]["results"]
[]
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import quote

from hintplan.plans.review.annotations import Remark
from hintplan.plans.text.escapes import clean

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(remarks: Sequence[Remark], rules: Mapping[str, str]) -> dict[str, Any]:
    """Return the log of one run as JSON values; ``rules`` maps the id of a rule to its description."""
    used = list(dict.fromkeys(remark.rule for remark in remarks))
    driver = {
        "name": "hintplan",
        "version": _version(),
        "rules": [{"id": rule, "shortDescription": {"text": rules.get(rule, rule)}} for rule in used],
    }
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                # hintplan counts columns in characters, not in UTF-16 units.
                "columnKind": "unicodeCodePoints",
                "results": [_result(remark, used.index(remark.rule)) for remark in remarks],
            }
        ],
    }


def _result(remark: Remark, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": remark.rule,
        "ruleIndex": rule,
        "level": remark.level,
        # SARIF reads square brackets as links, and braces as placeholders.
        "message": {"text": _plain(remark.message)},
        # Code scanning identifies a remark across runs by its fingerprint, not by its line.
        "partialFingerprints": {"hintplan/v1": _fingerprint(remark)},
    }
    if remark.file is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(remark.file)}}
        if remark.line is not None:
            place["region"] = {"startLine": remark.line}
            if remark.column is not None:
                place["region"]["startColumn"] = remark.column
        result["locations"] = [{"physicalLocation": place}]
    return result


def _plain(text: str) -> str:
    text = clean(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return text.replace("{", "{{").replace("}", "}}")


def _fingerprint(remark: Remark) -> str:
    return hashlib.sha256("\0".join((remark.rule, remark.file or "", remark.subject)).encode()).hexdigest()[:32]


def _uri(file: str) -> str:
    path = quote(file.replace(os.sep, "/"))
    return f"file://{path}" if os.path.isabs(file) else path


def _version() -> str:
    try:
        return version("hintplan")
    except PackageNotFoundError:
        return "0"
