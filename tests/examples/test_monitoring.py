"""The dashboard for Grafana and the rules for Prometheus ask for metrics and labels that there are.

Expressions are parsed as Prometheus parses them; that the dashboard is one is what Grafana's own library says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from hintplan.runtime.metrics.table import METRICS, Metric

FOLDER = Path(__file__).parents[2] / "examples" / "monitoring"
DASHBOARD = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
OF_PROMETHEUS = {"instance", "job", "le"}
"""Labels that are not ours."""


def series(metric: Metric) -> list[str]:
    """The names under which Prometheus keeps a metric."""
    parts = ("_bucket", "_sum", "_count") if metric.type == "histogram" else ("",)
    return [metric.prometheus + part for part in parts]


LABELS = {name: set(metric.labels) for metric in METRICS for name in series(metric)}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str, str]]:
    """Where each expression stands, the expression, and the text that shows its labels."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"], ""
    for rule in RULES:
        shown = " ".join(re.findall(r"\$labels\.\w+", str(rule["annotations"])))
        yield rule["alert"], rule["expr"], re.sub(r"\$labels\.(\w+)", r"{{\1}}", shown)


def parsed(expression: str) -> Any:
    """As Grafana sends it, with some interval for its variables."""
    return promql_parser.parse(re.sub(r"\$__(rate_interval|range|interval)", "5m", expression))


def nodes(node: Any) -> Iterator[Any]:
    yield node
    below = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "param", "vector_selector")]
    for child in (*below, *(getattr(node, "args", None) or ())):
        if child is not None:
            yield from nodes(child)


def selectors(expression: str) -> list[Any]:
    return [node for node in nodes(parsed(expression)) if type(node).__name__ == "VectorSelector"]


@pytest.mark.parametrize(("where", "expression", "shown"), list(expressions()))
def test_every_expression_asks_for_what_there_is(where: str, expression: str, shown: str) -> None:
    found = selectors(expression)
    assert found
    for selector in found:
        assert selector.name in LABELS
        assert {matcher.name for matcher in selector.matchers.matchers} <= LABELS[selector.name] | OF_PROMETHEUS
    known = set.intersection(*(LABELS[selector.name] for selector in found)) | OF_PROMETHEUS
    for node in nodes(parsed(expression)):
        modifier = getattr(node, "modifier", None)
        grouped = (
            getattr(modifier, "labels", None) or getattr(getattr(modifier, "matching", None), "labels", None) or ()
        )
        assert set(grouped) <= known
        # A counter says something only by how it grows.
        if type(node).__name__ == "Call" and node.func.name in ("rate", "increase"):
            (selector,) = selectors(str(node.args[0].vector_selector.name))
            assert selector.name.endswith(("_total", "_bucket", "_sum", "_count"))
    assert set(re.findall(r"{{(\w+)}}", shown)) <= known


def test_every_metric_of_streams_is_shown_or_in_a_rule() -> None:
    used = {selector.name for _, expression, _ in expressions() for selector in selectors(expression)}
    streams = [metric for metric in METRICS if not metric.name.startswith(("hintplan.job.", "hintplan.cached_result."))]
    hidden = {metric.name for metric in streams if used.isdisjoint(series(metric))}
    of_others = {"hintplan.batch.rows_out", "hintplan.source.lag_size", "hintplan.function.rows_out"}
    assert hidden == of_others | {"hintplan.lookup.in_flight_max"}


def test_the_dashboard_is_one_of_grafana() -> None:
    plugins.register_default_plugins()
    read = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(DASHBOARD)))
    assert list(_lost(DASHBOARD, read, "")) == []


def _lost(ours: Any, read: Any, path: str) -> Iterator[str]:
    """What Grafana's library does not know, or has otherwise."""
    if isinstance(ours, dict) and isinstance(read, dict):
        for name, value in ours.items():
            yield from _lost(value, read[name], f"{path}.{name}") if name in read else [f"{path}.{name}"]
    elif isinstance(ours, list) and isinstance(read, list) and len(ours) == len(read):
        for index, (one, other) in enumerate(zip(ours, read, strict=True)):
            yield from _lost(one, other, f"{path}[{index}]")
    elif ours != read:
        yield path


def test_panels_have_ids_of_their_own_and_do_not_cover_each_other() -> None:
    every = DASHBOARD["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    taken: set[tuple[int, int]] = set()
    for panel in every:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert taken.isdisjoint(cells)
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_variables_of_the_dashboard_are_used_and_known() -> None:
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert names == {"datasource", "plan", "operator"}
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(DASHBOARD)))
    assert {name for name in used if not name.startswith("__")} == names
