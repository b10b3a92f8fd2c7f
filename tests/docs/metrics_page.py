"""Write the table of ``docs/metrics.md`` from the table in the code.

python -m tests.docs.metrics_page
"""

from __future__ import annotations

from pathlib import Path

from hintplan.runtime.metrics.table import METRICS, Metric

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

_BEGIN = "<!-- Made by `python -m tests.docs.metrics_page`; do not edit. -->\n"
_END = "<!-- End of what is made. -->\n"
_UNITS = {"s": "seconds", "By": "bytes"}


def table() -> str:
    """Return the table of all metrics."""
    head = "| metric | type | labels | meaning |\n|---|---|---|---|\n"
    return head + "".join(_row(metric) for metric in METRICS)


def page() -> str:
    """Return the page with a new table; the rest stays as it is."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{_BEGIN}{table()}{_END}{rest.partition(_END)[2]}"


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    counted = f"{metric.type}, {_UNITS[metric.unit]}" if metric.unit in _UNITS else metric.type
    return f"| `{metric.prometheus}` | {counted} | {labels} | {metric.description} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
