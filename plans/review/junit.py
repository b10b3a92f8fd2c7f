"""Remarks as JUnit XML, which most build servers display as tests: errors fail their case, other remarks are output.

>>> 'failures="0"' in junit([], suite="diff")
True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from hintplan.plans.review.annotations import Remark
from hintplan.plans.text.escapes import clean

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(remarks: Sequence[Remark], *, suite: str) -> str:
    """Return the document; a review without remarks is a single passing case."""
    failures = sum(remark.level == "error" for remark in remarks)
    attributes = {"name": f"hintplan {suite}", "tests": str(max(len(remarks), 1)), "failures": str(failures)}
    root = ElementTree.Element("testsuites")
    element = ElementTree.SubElement(root, "testsuite", attributes)
    if not remarks:
        ElementTree.SubElement(element, "testcase", {"name": "nothing to remark", "classname": f"hintplan.{suite}"})
    for remark in remarks:
        place = ":".join(str(part) for part in (remark.file, remark.line, remark.column) if part is not None)
        name = _text(f"{remark.subject or place or suite}")
        case = ElementTree.SubElement(element, "testcase", {"name": name, "classname": f"hintplan.{remark.rule}"})
        if remark.file is not None:
            case.set("file", _text(remark.file))
        if remark.line is not None:
            case.set("line", str(remark.line))
        if remark.level == "error":
            failure = ElementTree.SubElement(case, "failure", {"type": remark.rule, "message": _text(remark.message)})
            failure.text = _text(place)
        else:
            ElementTree.SubElement(case, "system-out").text = _text(remark.message)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))
