"""The plan that the tests patch: a canonical file, written by hand, with digests computed from its JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hintplan

PLAN_FILE = Path(__file__).parent / "revenue_by_country.json"


@pytest.fixture(scope="session")
def plan_text() -> str:
    return PLAN_FILE.read_text(encoding="utf-8")


@pytest.fixture
def plan(plan_text: str) -> hintplan.Plan:
    return hintplan.loads(plan_text)


@pytest.fixture
def patched(plan_text: str) -> Callable[..., str]:
    """The plan text with each given text, which must occur, replaced once: what someone did in an editor."""

    def patch(*edits: tuple[str, str]) -> str:
        text = plan_text
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new, 1)
        return text

    return patch


@pytest.fixture
def refusal() -> Callable[..., str]:
    """The text of the error that loading gives."""

    def load(text: str | bytes, **options: bool) -> str:
        with pytest.raises(hintplan.PlanError) as caught:
            hintplan.loads(text, file="plan.json", **options)
        return str(caught.value)

    return load
