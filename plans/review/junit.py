"""Remarks and tests as JUnit XML, which most build servers display. Errors fail their case; other remarks are output.

>>> 'failures="0"' in junit([], suite="diff")
True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from hintplan.plans.frozen import frozen
from hintplan.plans.review.annotations import Remark
from hintplan.plans.text.escapes import clean

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@frozen
class JUnitFailure:
    """The failure of a case: its type, its message, and its details; an error is the failure to run the case."""

    type: str
    message: str
    text: str
    is_error: bool = False


@frozen
class JUnitCase:
    """A case of a suite; ``seconds`` is None if no time was measured."""

    name: str
    classname: str
    file: str | None = None
    line: int | None = None
    seconds: float | None = None
    failure: JUnitFailure | None = None
    output: str | None = None


@frozen
class JUnitSuite:
    """A suite of cases; the suite of a file of tests also counts errors and seconds."""

    name: str
    cases: Sequence[JUnitCase]
    file: str | None = None


def junit(remarks: Sequence[Remark], *, suite: str) -> str:
    """Return the document; a review without remarks is a single passing case."""
    cases = [_case_of(remark, suite) for remark in remarks]
    nothing = [JUnitCase(name="nothing to remark", classname=f"hintplan.{suite}")]
    return junit_text([JUnitSuite(name=f"hintplan {suite}", cases=cases or nothing)])


def junit_text(suites: Sequence[JUnitSuite]) -> str:
    """Return the document with ``suites``."""
    root = ElementTree.Element("testsuites")
    for suite in suites:
        failed = [case.failure for case in suite.cases if case.failure is not None]
        errors = sum(failure.is_error for failure in failed) if suite.file is not None else 0
        attributes = {
            "name": _text(suite.name), "tests": str(len(suite.cases)), "failures": str(len(failed) - errors)
        }  # fmt: skip
        if suite.file is not None:
            seconds = sum(case.seconds or 0 for case in suite.cases)
            attributes |= {"errors": str(errors), "time": f"{seconds:.3f}", "file": _text(suite.file)}
        element = ElementTree.SubElement(root, "testsuite", attributes)
        for case in suite.cases:
            _add(element, case)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add(element: ElementTree.Element, case: JUnitCase) -> None:
    attributes = {"name": _text(case.name), "classname": _text(case.classname)}
    if case.file is not None:
        attributes["file"] = _text(case.file)
    if case.line is not None:
        attributes["line"] = str(case.line)
    if case.seconds is not None:
        attributes["time"] = f"{case.seconds:.3f}"
    added = ElementTree.SubElement(element, "testcase", attributes)
    if case.failure is not None:
        details = {"type": case.failure.type, "message": _text(case.failure.message)}
        failure = ElementTree.SubElement(added, "error" if case.failure.is_error else "failure", details)
        failure.text = _text(case.failure.text)
    if case.output is not None:
        ElementTree.SubElement(added, "system-out").text = _text(case.output)


def _case_of(remark: Remark, suite: str) -> JUnitCase:
    place = ":".join(str(part) for part in (remark.file, remark.line, remark.column) if part is not None)
    is_error = remark.level == "error"
    return JUnitCase(
        name=f"{remark.subject or place or suite}",
        classname=f"hintplan.{remark.rule}",
        file=remark.file,
        line=remark.line,
        failure=JUnitFailure(type=remark.rule, message=remark.message, text=place) if is_error else None,
        output=None if is_error else remark.message,
    )


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))
