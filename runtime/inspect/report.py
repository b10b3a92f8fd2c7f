"""Formats the state of a checkpoint as a table for people and as JSON for scripts. Pure: data in, text out.

>>> age(3_900_000), age(59_999), age(100_000_000)
('1 h 5 min', '59 s', '1 d 3 h')
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hintplan.plans.checkpoint.continuation import KEEP
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.evidence.ages import pairs
from hintplan.plans.evidence.document import period_json
from hintplan.plans.settings.state import readable_ttl
from hintplan.plans.text.aligned import aligned_rows, unpainted
from hintplan.plans.text.counts import count, human_bytes
from hintplan.plans.text.escapes import clean
from hintplan.runtime.engine.watermarks import watermark_text
from hintplan.runtime.inspect.contents import (
    Amount,
    CheckpointState,
    EntryState,
    OperatorState,
    OperatorWatermark,
    QueryState,
    UnderEdit,
)
from hintplan.runtime.inspect.rows import Cells, row_cells, rows_json, time_text, utc

_HEADINGS = ("ttl", "rows", "keys", "bytes", "share", "oldest", "newest", "expire in 1 h", "expired")
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))
_UNKNOWN = "–"

Part = Literal["heading", "operator", "state", "edit"]
Paint = Callable[[str, Part], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    part: Part
    left: str
    cells: Sequence[str] = ()


def state_text(contents: CheckpointState, *, paint: Paint = unpainted) -> str:
    """Return the table, largest states first; ``paint`` may colour the left of a line and must not change its width."""
    partitions = count(contents.partitions, "partition")
    when = f"as of {time_text(contents.at, contents.time_zone)} {contents.time_zone}"
    head = [contents.plan, contents.checkpoint, partitions, when]
    if contents.written_by != contents.plan:
        head.append(f"written by plan {contents.written_by}")
    blocks = [clean(" · ".join(head))]
    whole = contents.total.bytes
    queries = sorted(contents.queries, key=_least_of_query)
    tables = [(query, list(_lines(query, contents.at, whole))) for query in queries]
    total = _Line(part="heading", left="total", cells=_amount_cells("", contents.total, contents.at, whole, plain=True))
    lines = [_Line(part="heading", left="", cells=_HEADINGS), *(line for _, rows in tables for line in rows), total]
    left = max(len(line.left) for line in lines) + 3
    amounts = aligned_rows([line.cells for line in lines], right=range(1, len(_HEADINGS)))
    texts = [
        (paint(f"{line.left:<{left}}", line.part) + cells).rstrip() for line, cells in zip(lines, amounts, strict=True)
    ]
    remaining = iter(texts[1:])
    for index, (query, rows) in enumerate(tables):
        title = clean(_title(query, contents))
        heading = [texts[0]] if index == 0 and rows else []
        blocks.append("\n".join([title, *heading, *itertools.islice(remaining, len(rows))]))
    if any(rows for _, rows in tables):
        blocks.append(texts[-1])
    blocks += _shown(contents)
    return "\n\n".join(blocks)


def _title(query: QueryState, contents: CheckpointState) -> str:
    name = " + ".join(query.sinks)
    if query.batch is None or query.started is None:
        return f"{name} · no batch committed yet"
    when = time_text(query.started, contents.time_zone)
    return f"{name} · batch {query.batch}, started {when}, {age(contents.at - query.started)} ago"


def _bytes(operator: OperatorState) -> int:
    return sum(entry.amount.bytes for entry in operator.entries)


def _least_of_query(query: QueryState) -> int:
    return -sum(map(_bytes, query.operators))


def _lines(query: QueryState, now: int, whole: int) -> Iterator[_Line]:
    """Yield the lines of a query, with its operators ordered by size; ``whole`` is the size of all queries in bytes."""
    for operator in sorted(query.operators, key=_bytes, reverse=True):
        yield _Line(part="operator", left=clean(_name(operator)))
        if operator.watermark is not None:
            yield _Line(part="state", left=clean(f"   {_watermark(operator.watermark)}"))
        wide = max(len(entry.name) for entry in operator.entries)
        for entry in operator.entries:
            left = clean(f"   {entry.name:<{wide}}  {entry.input or ''}".rstrip())
            yield _Line(part="state", left=left, cells=_amount_cells(_ttl(entry), entry.amount, now, whole))
            for name, amount in entry.tables:
                cells = _amount_cells("", amount, now, whole)
                yield _Line(part="state", left=clean(f"      {name}"), cells=cells)
            if entry.edited is not None:
                edit = entry.edited
                left = human_bytes(bytes_left(entry.amount, edit))
                cells = (
                    readable_ttl(edit.ttl),
                    f"{edit.rows:,}",
                    "",
                    left,
                    *[""] * 3,
                    f"{edit.soon:,}",
                    f"{edit.expired:,}",
                )
                yield _Line(part="edit", left="      if", cells=cells)


def bytes_left(amount: Amount, edit: UnderEdit) -> int:
    """Estimate the bytes that another TTL leaves, in proportion to the rows that it leaves.

    >>> bytes_left(Amount(rows=10, bytes=1000), UnderEdit(ttl="1 h", rows=2, expired=8, soon=0))
    200
    """
    stored = edit.rows + edit.expired
    return amount.bytes * edit.rows // stored if stored else 0


def _ttl(entry: EntryState) -> str:
    return _UNKNOWN if entry.ttl is None else readable_ttl(entry.ttl)


def _watermark(watermark: OperatorWatermark) -> str:
    """Return a watermark as text.

    >>> _watermark(OperatorWatermark(after=19_000, held_by="watermark_bid", split="bids/3"))
    'watermark 1970-01-01 00:00:19 UTC, held back by bids/3 of watermark_bid'
    """
    text = watermark_text(watermark.after)
    if watermark.held_by is None:
        return text
    return f"{text}, held back by {f'{watermark.split} of ' if watermark.split else ''}{watermark.held_by}"


def _name(operator: OperatorState) -> str:
    notes = {
        "read": f"  (stored as {operator.was})" if operator.was else "",
        "orphan": "  (not in the plan)",
        "other-meaning": f"  (another state in the plan: a run starts it empty{_keeping(operator)})",
        "other-layout": "  (stored with other columns than in the plan)",
    }
    return operator.id + notes[operator.status]


def _keeping(operator: OperatorState) -> str:
    return f", or keeps it with {KEEP} {operator.id}" if operator.keepable else ""


def _share(part: int, whole: int) -> str:
    """Return a part of the whole in percent.

    >>> _share(1, 3), _share(1, 1000), _share(0, 10), _share(999, 1000), _share(0, 0)
    ('33 %', '< 1 %', '0 %', '> 99 %', '')
    """
    if not whole:
        return ""
    percent = round(100 * part / whole)
    return "< 1 %" if part and not percent else "> 99 %" if part < whole and percent == 100 else f"{percent} %"


def _amount_cells(ttl: str, amount: Amount, now: int, whole: int, *, plain: bool = False) -> tuple[str, ...]:
    def number(value: int | None) -> str:
        return "" if plain and value is None else _UNKNOWN if value is None else f"{value:,}"

    def since(value: int | None) -> str:
        return "" if plain else _UNKNOWN if value is None else age(now - value)

    return (
        ttl,
        number(amount.rows),
        number(amount.keys),
        human_bytes(amount.bytes),
        "" if plain else _share(amount.bytes, whole),
        since(amount.oldest),
        since(amount.newest),
        number(amount.soon),
        number(amount.expired),
    )


def age(milliseconds: int) -> str:
    """Return a duration in its largest unit and the unit below it, rounded down."""
    if milliseconds < 0:
        return f"-{age(-milliseconds)}"
    for index, (unit, size) in enumerate(_UNITS):
        if milliseconds >= size:
            whole, remainder = divmod(milliseconds, size)
            below, smaller = _UNITS[index + 1] if index + 1 < len(_UNITS) else ("", 1)
            return f"{whole} {unit}" + (f" {remainder // smaller} {below}" if below and remainder >= smaller else "")
    return "0 s"


def _shown(contents: CheckpointState) -> Iterator[str]:
    for query in contents.queries:
        for operator in query.operators:
            for entry in operator.entries:
                for name, rows in entry.shown:
                    title = f"{operator.id}.{entry.name}" + (f" · {name}" if len(entry.tables) > 1 else "")
                    title += f" · {query.id}" if len(contents.queries) > 1 else ""
                    cells = row_cells(rows, entry.keys, contents.time_zone, _expiry(entry, contents.at))
                    last = "the row written last" if rows.num_rows == 1 else f"the {rows.num_rows} rows written last"
                    yield clean(f"{title} · {last}") + "\n" + _indented(cells)


def _expiry(entry: EntryState, now: int) -> Callable[[int], str]:
    ttl = 0 if entry.ttl is None else parse_duration(entry.ttl)

    def expires(write: int) -> str:
        if not ttl:
            return "never"
        left = write + ttl - now
        return f"in {age(left)}" if left > 0 else f"{age(-left)} ago"

    return expires


def _indented(cells: Cells) -> str:
    cleaned = [[clean(" ".join(cell.split("\n"))) for cell in row] for row in cells]
    return "\n".join(f"  {line}" for line in aligned_rows(cleaned))


def state_json(contents: CheckpointState) -> dict[str, Any]:
    """Return the same contents as JSON values, with times in UTC."""
    total = contents.total
    return {
        "plan": contents.plan,
        "written-by": contents.written_by,
        "checkpoint": contents.checkpoint,
        "at": utc(contents.at),
        "partitions": contents.partitions,
        "queries": [
            {
                "id": query.id,
                "sinks": list(query.sinks),
                "batch": query.batch,
                "started": None if query.started is None else utc(query.started),
                "operators": [_operator_json(operator, contents.at) for operator in query.operators],
            }
            for query in contents.queries
        ],
        "total": {name: value for name, value in _amount_json(total).items() if name in _ADDED},
    }


_ADDED = ("rows", "bytes", "expire-in-1h", "expired")


def _operator_json(operator: OperatorState, now: int) -> dict[str, Any]:
    watermark = operator.watermark
    of_time = (
        {}
        if watermark is None
        else {
            "watermark": {
                "at": watermark.after,
                "held-by": watermark.held_by,
                "split": watermark.split,
            }
        }
    )
    return {
        "id": operator.id,
        "status": operator.status,
        "was": operator.was,
        "may-be-kept": operator.keepable,
        **of_time,
        "state": [_entry_json(entry, now) for entry in operator.entries],
    }


def _entry_json(entry: EntryState, now: int) -> dict[str, Any]:
    document = {"name": entry.name, "input": entry.input, "ttl": entry.ttl, **_amount_json(entry.amount)}
    if entry.edited is not None:
        edit = entry.edited
        document["if"] = {
            "ttl": edit.ttl,
            "rows": edit.rows,
            "bytes": bytes_left(entry.amount, edit),
            "expire-in-1h": edit.soon,
            "expired": edit.expired,
        }
    if entry.tables:
        document["tables"] = [{"name": name, **_amount_json(amount)} for name, amount in entry.tables]
    if entry.observed:
        document["observed"] = [period_json(period) for period in entry.observed]
    if entry.lateness is not None:
        document["lateness"] = pairs(entry.lateness)
    if entry.shown:
        ttl = None if entry.ttl is None else parse_duration(entry.ttl)
        document["shown"] = {name: rows_json(rows, entry.keys, ttl, now) for name, rows in entry.shown}
    return document


def _amount_json(amount: Amount) -> dict[str, Any]:
    return {
        "rows": amount.rows,
        "keys": amount.keys,
        "bytes": amount.bytes,
        "oldest-write": None if amount.oldest is None else utc(amount.oldest),
        "newest-write": None if amount.newest is None else utc(amount.newest),
        "expire-in-1h": amount.soon,
        "expired": amount.expired,
    }
