"""The JSON Schema that is checked in is what the fields of operators and settings say."""

from __future__ import annotations

from hintplan.plans.format.generate import schema_file_text
from hintplan.plans.format.schema import schema_text


def test_the_schema_is_fresh() -> None:
    assert schema_text() == schema_file_text(), "python -m hintplan.plans.format.generate writes it"
