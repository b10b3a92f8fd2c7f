"""A run as the value of a notebook cell: its status, and the last write to each sink.

>>> print(as_text(job_table("running", ["sink_a"], [])))
running
sink     rows out  time
sink_a
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hintplan.plans.text.aligned import aligned_rows
from hintplan.plans.text.counts import human_bytes, human_duration
from hintplan.plans.text.escapes import clean
from hintplan.runtime.progress import BatchProgress, JobProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressTable:
    """A line about the whole run, and the cells below ``headings``; all columns except the first are numbers.

    ``error`` is the reason why the run failed, empty if it did not.
    """

    head: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    error: str = ""


def stream_table(head: str, sinks: Sequence[str], last: Mapping[str, BatchProgress], error: str = "") -> ProgressTable:
    """Return a row for each sink with its ``last`` micro-batch, and below it one for each state of its query."""
    rows: list[tuple[str, ...]] = []
    for sink in sinks:
        batch = last.get(sink)
        if batch is None:
            rows.append((sink, *[""] * 6))
            continue
        flow = (str(batch.batch), f"{batch.rows_in:,}", f"{batch.rows_out:,}", human_duration(batch.duration_ms))
        rows.append((sink, *flow, "", ""))
        for name, progress in batch.operators.items():
            state = (f"{progress.state_rows:,}", human_bytes(progress.state_bytes))
            rows.append((f"· {name}", "", f"{progress.rows_in:,}", f"{progress.rows_out:,}", "", *state))
    headings = ("sink", "batch", "rows in", "rows out", "time", "state rows", "state")
    return ProgressTable(head=head, headings=headings, rows=tuple(rows), error=error)


def job_table(head: str, sinks: Sequence[str], done: Iterable[JobProgress], error: str = "") -> ProgressTable:
    """Return a row for each sink of a batch plan, with its job if that is ``done``."""
    finished = {job.sink: (f"{job.rows_out:,}", human_duration(job.duration_ms)) for job in done}
    rows = tuple((sink, *finished.get(sink, ("", ""))) for sink in sinks)
    return ProgressTable(head=head, headings=("sink", "rows out", "time"), rows=rows, error=error)


def as_html(table: ProgressTable) -> str:
    """Return HTML without scripts, styles and external links."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table.headings)
    rows = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in table.rows)
    cells = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    error = f"<pre>{_text(table.error)}</pre>\n" if table.error else ""
    return f"<p><strong>{_text(table.head)}</strong></p>\n{error}{cells}"


def as_text(table: ProgressTable) -> str:
    """Return the table in aligned columns."""
    lines = [tuple(clean(cell) for cell in line) for line in (table.headings, *table.rows)]
    numbers = range(1, len(table.headings))
    error = [clean(table.error)] if table.error else []
    return "\n".join([clean(table.head), *error, *aligned_rows(lines, gap="  ", right=numbers)])


def _text(text: str) -> str:
    return escape(clean(text))
