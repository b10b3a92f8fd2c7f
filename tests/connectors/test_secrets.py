"""``${env:NAME}`` in options."""

from __future__ import annotations

import pytest

from hintplan.plans.errors import RunError
from hintplan.runtime.secrets import resolve


def test_every_placeholder_becomes_the_value_of_its_variable(monkeypatch):
    monkeypatch.setenv("DB_DIR", "/srv")
    monkeypatch.setenv("DB_NAME", "a${env:DB_DIR}")
    assert resolve("x:${env:DB_DIR}/${env:DB_NAME}.db") == "x:/srv/a${env:DB_DIR}.db"


def test_a_text_without_placeholders_stays_as_it_is():
    assert resolve("${HOME} $x") == "${HOME} $x"


def test_a_missing_variable_is_named_and_the_others_are_not_shown(monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "hunter2")
    monkeypatch.delenv("DB_HOST", raising=False)
    with pytest.raises(RunError) as error:
        resolve("${env:DB_PASSWORD}@${env:DB_HOST}")
    assert "environment variable DB_HOST is not set" in str(error.value)
    assert "hunter2" not in str(error.value)
