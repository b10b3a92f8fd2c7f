"""What Prometheus would read of a run: the page, by its own client's parser of it."""

from __future__ import annotations

from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(url: str) -> Samples:
    """The samples at ``url`` by name and labels."""
    with urlopen(url, timeout=30) as page:
        text = page.read().decode()
    families = text_string_to_metric_families(text)
    return {(one.name, tuple(sorted(one.labels.items()))): one.value for family in families for one in family.samples}


def of(samples: Samples, name: str, **labels: str) -> float:
    """The only sample of ``name`` that has ``labels`` among its own."""
    wanted = labels.items()
    (found,) = [value for (each, own), value in samples.items() if each == name and wanted <= dict(own).items()]
    return found


def names(samples: Samples) -> set[str]:
    """The names of all samples."""
    return {name for name, _ in samples}
