"""Tests that count what Spark keeps begin with nothing kept, whatever other tests of the process have left."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def nothing_kept(request: pytest.FixtureRequest) -> None:
    if "spark" not in request.fixturenames:
        return
    spark = request.getfixturevalue("spark")
    spark.catalog.clearCache()
    for kept in spark.sparkContext._jsc.getPersistentRDDs().values():
        kept.unpersist()
