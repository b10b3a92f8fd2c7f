"""A run as the value of a notebook cell: how it stands, and what it last wrote to each sink.

>>> print(as_text(job_table("running", ["sink_a"], [])))
running
sink     rows out  time
sink_a
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hintplan.plans.text.amounts import human_bytes, human_duration
from hintplan.plans.text.unprintable import clean
from hintplan.runtime.progress import BatchProgress, JobProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressTable:
    """A line on the whole run, and the cells below ``headings``; only the first column is no number.

    ``error`` is why the run failed, empty if it did not.
    """

    head: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    error: str = ""


def stream_table(head: str, sinks: Sequence[str], last: Mapping[str, BatchProgress], error: str = "") -> ProgressTable:
    """A row for each sink with its ``last`` micro-batch, and below it one for each state of its query."""
    rows: list[tuple[str, ...]] = []
    for sink in sinks:
        batch = last.get(sink)
        if batch is None:
            rows.append((sink, *[""] * 6))
            continue
        flow = (str(batch.batch), f"{batch.rows_in:,}", f"{batch.rows_out:,}", human_duration(batch.duration_ms))
        rows.append((sink, *flow, "", ""))
        for name, found in batch.operators.items():
            state = (f"{found.state_rows:,}", human_bytes(found.state_bytes))
            rows.append((f"· {name}", "", f"{found.rows_in:,}", f"{found.rows_out:,}", "", *state))
    headings = ("sink", "batch", "rows in", "rows out", "time", "state rows", "state")
    return ProgressTable(head=head, headings=headings, rows=tuple(rows), error=error)


def job_table(head: str, sinks: Sequence[str], done: Iterable[JobProgress], error: str = "") -> ProgressTable:
    """A row for each sink of a batch plan, with its job if that is ``done``."""
    finished = {job.sink: (f"{job.rows_out:,}", human_duration(job.duration_ms)) for job in done}
    rows = tuple((sink, *finished.get(sink, ("", ""))) for sink in sinks)
    return ProgressTable(head=head, headings=("sink", "rows out", "time"), rows=rows, error=error)


def as_html(table: ProgressTable) -> str:
    """HTML without scripts, styles and outside links."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table.headings)
    rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    cells = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    error = f"<pre>{_text(table.error)}</pre>\n" if table.error else ""
    return f"<p><strong>{_text(table.head)}</strong></p>\n{error}{cells}"


def as_text(table: ProgressTable) -> str:
    """The same in aligned columns."""
    lines = [tuple(clean(cell) for cell in line) for line in (table.headings, *table.rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.headings))]
    shown = [
        "  ".join([f"{line[0]:<{widths[0]}}", *(f"{c:>{w}}" for c, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    error = [clean(table.error)] if table.error else []
    return "\n".join([clean(table.head), *error, *(line.rstrip() for line in shown)])


def _text(text: str) -> str:
    return escape(clean(text))
