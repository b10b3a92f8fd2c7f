"""Reading and writing of plan files.

Reading checks text, then schema, then changed facts, then meaning, and reports the position of each error. Writing has
one layout; the same plan gives the same bytes in any process.

>>> plan = load("plan.json")                                       # doctest: +SKIP
>>> dump(plan, "plan.json")                                        # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as FilePath
from typing import Any

from hintplan.plans.analysis.validate import plan_problems
from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.format.digest import document_digests, plan_digests, tables_of_settings
from hintplan.plans.format.document import from_document, to_document
from hintplan.plans.format.finding import SchemaFinding, described_json
from hintplan.plans.format.paths import find, path_text
from hintplan.plans.format.printer import print_document
from hintplan.plans.format.schema import ENOUGH
from hintplan.plans.format.schema import schema_findings as check_schema
from hintplan.plans.model.plan import FORMAT, Plan
from hintplan.plans.operators import KINDS
from hintplan.plans.settings.cached import CACHED
from hintplan.plans.text.jsontext import MAX_BYTES, JsonText, Path
from hintplan.plans.text.links import reason, refuse_leading_out, refuse_symlinks
from hintplan.plans.text.names import nearest

_GROUPS = [*dict.fromkeys(group.name for kind in KINDS for group in kind.groups if group is not CACHED)]
FREE = (
    f"config, the ttl of states, {', '.join(_GROUPS[:-1])} and {_GROUPS[-1]} of operators, cached, "
    "and table options but 'connector'"
)


def load(path: str | os.PathLike[str], *, allow_fact_edits: bool = False, check_meaning: bool = True) -> Plan:
    """Read the plan file at ``path``; raise PlanError with file, line, column and path of every error.

    A fact that differs from its digest is an error, unless ``allow_fact_edits`` is set. ``check_meaning=False`` skips
    :func:`hintplan.plans.analysis.validate.plan_problems`, to look at a plan that cannot run.
    """
    data = read_plan_bytes(path)
    return loads(data, file=os.fspath(path), allow_fact_edits=allow_fact_edits, check_meaning=check_meaning)


def loads(
    data: bytes | str, *, file: str | None = None, allow_fact_edits: bool = False, check_meaning: bool = True
) -> Plan:
    """Read a plan like :func:`load`, from text; ``file`` is its name in messages."""
    source = _checked_text(data, file)
    document = source.value
    plan = from_document(document)
    changed = [] if allow_fact_edits else list(_changed_facts(plan, document.get("digests")))
    # An error in a changed fact explains more than the bare change, so meaning is checked, too.
    problems = plan_problems(plan) if check_meaning or changed else ()
    if changed or problems:
        meant = [
            SchemaFinding(path=find(p.path or "", document), message=p.message, hint=p.hint) for p in problems[:ENOUGH]
        ]
        diagnostics = _placed(source, [*meant, *changed])
        if changed:
            raise FactsChanged(diagnostics, file=file, plan=plan, written=document.get("digests", {}))
        raise PlanError(diagnostics=diagnostics)
    return plan


class FactsChanged(PlanError):
    """Facts of ``plan`` do not match the digests ``written`` in its ``file``."""

    def __init__(
        self, diagnostics: tuple[Diagnostic, ...], *, file: str | None, plan: Plan, written: dict[str, dict[str, str]]
    ) -> None:
        super().__init__(diagnostics=diagnostics)
        self.file, self.plan, self.written = file, plan, written


def read_document(data: bytes | str, *, file: str | None = None) -> dict[str, Any]:
    """Return the JSON values of a plan's text, checked for format but not for meaning, with its written digests."""
    document: dict[str, Any] = _checked_text(data, file).value
    return document


def is_script(name: str) -> bool:
    """Return True if ``name`` has the ending of a SQL script.

    >>> is_script("git:main:job.sql"), is_script("plan.json")
    (True, False)
    """
    return name.lower().endswith(".sql")


def _checked_text(data: bytes | str, file: str | None) -> JsonText:
    try:
        source = JsonText(data, file=file)
    except PlanError as error:
        if file is None or not is_script(file):
            raise
        hint = f"compile it: hintplan compile {file} -o {file[:-4]}.json; or run its statements: hintplan sql {file}"
        raise PlanError("this is a SQL script, and no plan", file=file, hint=hint) from error
    findings = _check_format(source.value) or check_schema(source.value)
    if findings:
        raise PlanError(diagnostics=_placed(source, findings))
    return source


def dumps(plan: Plan) -> bytes:
    """Return the canonical bytes of ``plan``, including its digests; raise PlanError if it is no plan."""
    if not isinstance(plan, Plan):
        raise PlanError(f"expected a plan, found {type(plan).__name__}", hint="hintplan.load(path) reads one")
    document = to_document(plan)
    return print_document({**document, "digests": document_digests(plan, document["operators"])})


def fingerprint(plan: Plan) -> str:
    """Return 16 hex digits of the sha256 of the canonical bytes of ``plan``, which ignore the layout of its file."""
    return hashlib.sha256(dumps(plan)).hexdigest()[:16]


def dump(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write ``plan`` to ``path``, atomically."""
    write_plan_bytes(dumps(plan), path)


def plan_bytes(name: str) -> tuple[bytes, str]:
    """Return the bytes of plan file ``name``, or of standard input for ``-``, and its name in messages."""
    if name == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>"
    return read_plan_bytes(name), name


def read_plan_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a plan file.

    Raise PlanError if it is too large, is a link that leads elsewhere, or cannot be read.
    """
    name = os.fspath(path)
    refuse_leading_out(path)
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MAX_BYTES:
                raise PlanError(f"the file has {size:,} bytes, more than {MAX_BYTES // 2**20} MiB", file=name)
            # The size of a pipe is unknown: one byte above the limit is enough to refuse it.
            return stream.read(MAX_BYTES + 1)
    except OSError as error:
        near = _near(name) if isinstance(error, FileNotFoundError) else None
        hint = f"did you mean '{near}'?" if near else None
        raise PlanError(f"cannot be read: {reason(error, path)}", file=name, hint=hint) from error


def _near(path: str) -> str | None:
    """Return the path in the directory of ``path`` with the most similar name, or None."""
    directory, name = os.path.split(path)
    with suppress(OSError):
        found = nearest(name, os.listdir(directory or "."))
        return None if found is None else os.path.join(directory, found)
    return None


def write_plan_bytes(data: bytes, path: str | os.PathLike[str]) -> None:
    """Replace the file at ``path`` atomically, keeping its mode; raise PlanError for a link: it may lead anywhere."""
    import tempfile  # which takes a while; most commands write nothing

    target = FilePath(path)
    refuse_symlinks(target)
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, mode)
            os.replace(temporary, target)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise PlanError(f"cannot be written: {reason(error, path)}", file=os.fspath(path)) from error


def put_plan_bytes(data: bytes, path: str | None) -> None:
    """Write a plan file to ``path`` like :func:`write_plan_bytes`, or to standard output if it is None."""
    if path is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_plan_bytes(data, path)


def _umask() -> int:
    # The only way to read the umask is to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _check_format(document: object) -> list[SchemaFinding]:
    """Return the error of a plan in another format, for which a comparison with this schema is pointless."""
    if not isinstance(document, dict):
        return [
            SchemaFinding(path=(), message=f"expected a plan, which is an object, found {described_json(document)}")
        ]
    if document.get("format", FORMAT) != FORMAT:
        message = f"plan format {described_json(document['format'])} is not supported"
        hint = f"this version of hintplan reads format '{FORMAT}'; compile the plan again from its SQL"
        return [SchemaFinding(path=("format",), message=message, hint=hint)]
    return []


def _changed_facts(plan: Plan, written: dict[str, dict[str, str]] | None) -> Iterator[SchemaFinding]:
    accept = "--allow-fact-edits accepts the change"
    if written is None:
        message = "the plan has no digests, so hintplan cannot check whether its facts were changed by hand"
        yield SchemaFinding(path=(), message=message, hint="--allow-fact-edits accepts the plan unchanged")
        return
    free = tables_of_settings(plan)
    positions = {operator.id: index for index, operator in enumerate(plan.operators)}
    for kind, actual in {"functions": {}, **plan_digests(plan)}.items():
        noun = kind.removesuffix("s")
        for name, digest in actual.items():
            path: Path = (kind, positions[name] if kind == "operators" else name)
            recorded = written.get(kind, {}).get(name)
            if recorded is None and kind == "tables" and name in free:
                continue
            if recorded is None:
                message = f"{noun} '{name}': it was added or renamed by hand (it has no digest)"
                yield SchemaFinding(path=path, message=message, hint=accept)
            elif recorded != digest:
                message = f"{noun} '{name}': its facts were changed by hand (digest {digest}, in the file {recorded})"
                hint = f"free to edit are {FREE}; {accept}"
                yield SchemaFinding(path=path, message=message, hint=hint)
        gone = written.get(kind, {}).keys() - actual.keys() - (free if kind == "tables" else frozenset())
        for name in sorted(gone):
            message = f"{noun} '{name}': it was removed or renamed by hand (only its digest is left)"
            yield SchemaFinding(path=("digests", kind, name), message=message, hint=accept)


def _placed(source: JsonText, findings: list[SchemaFinding]) -> tuple[Diagnostic, ...]:
    """Add line, column and readable path to the first hundred findings, in the order of the file."""
    more = len(findings) >= ENOUGH
    findings = findings[: ENOUGH - 1]
    spans = source.spans({finding.path[:length] for finding in findings for length in range(len(finding.path) + 1)})
    placed = []
    for finding in findings:
        located, key = finding.path, finding.key
        while located not in spans:
            located, key = located[:-1], False
        line, column = source.line_column(spans[located][0 if key else 1])
        path = path_text(finding.path, source.value) or None
        placed.append(
            Diagnostic(
                message=finding.message, hint=finding.hint, file=source.file, line=line, column=column, path=path
            )
        )
    placed.sort(key=lambda d: (d.line or 0, d.column or 0))
    if more:
        placed.append(Diagnostic(message="there are more problems than these", file=source.file))
    return tuple(placed)
