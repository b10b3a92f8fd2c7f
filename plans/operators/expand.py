"""``expand``: repeats every row for each grouping set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated

from hintplan.plans.declarations.fields import Name, Names, OneInput, OperatorId
from hintplan.plans.declarations.tables import Column
from hintplan.plans.errors import Diagnostic
from hintplan.plans.frozen import frozen
from hintplan.plans.operators.contract.columns import check_known, check_names, parse, types_of
from hintplan.plans.operators.contract.declared import Columns, Declared, Inputs
from hintplan.plans.operators.contract.operator import Operator
from hintplan.plans.settings.layers import Settings
from hintplan.plans.text.names import did_you_mean


@frozen
class Expand(Operator):
    """Repeats every input row for each of ``sets``, with NULL in the ``keys`` outside the set; row kinds pass through.

    ``group_id`` is an additional column, BIGINT NOT NULL, that identifies the set. In binary it has a digit for each of
    ``keys``, which is 1 if the key is not in the set, as in Flink's Expand. Stateless.
    """

    op = "expand"
    title = "expand"
    description = (
        "Every input row once for each grouping set, with NULL in the keys that are not in the set; row kinds "
        "pass through. Stateless."
    )

    id: OperatorId
    inputs: OneInput
    keys: Annotated[
        Names,
        "The grouping columns, from the highest digit of the group id to the lowest.",
        {"minItems": 1, "maxItems": 63, "uniqueItems": True},
    ]
    sets: Annotated[
        tuple[Annotated[Names, {"uniqueItems": True}], ...],
        "The grouping sets: the keys that each of them keeps.",
        {"minItems": 1, "maxItems": 512},
    ]
    group_id: Annotated[Name, "The name of the column with the set's id.", {"examples": ["$e"]}]
    settings: Mapping[str, Settings] = field(default_factory=dict)

    @property
    def reads_order(self) -> bool:
        return False

    def output_columns(self, inputs: Inputs) -> Columns:
        return (*_expanded(self, inputs.only), Column(name=self.group_id, type="BIGINT NOT NULL"))

    def check(self, inputs: Inputs) -> Iterator[Diagnostic]:
        columns = inputs.only
        yield from check_known(self.keys, types_of(columns), f"{self.path}.keys", "key column")
        keys, seen = set(self.keys), set[frozenset[str]]()
        for index, grouping_set in enumerate(self.sets):
            here = f"{self.path}.sets[{index}]"
            for name in grouping_set:
                if name not in keys:
                    hint = did_you_mean(name, self.keys, what="keys")
                    yield Diagnostic(message=f"'{name}' is not one of the keys", path=here, hint=hint)
            if frozenset(grouping_set) in seen:
                yield Diagnostic(message="this grouping set is there twice", path=here, hint="remove it")
            seen.add(frozenset(grouping_set))
        yield from check_names([*(column.name for column in columns), self.group_id], self.path, "group-id")

    def names_above(self, place: int, column: str) -> tuple[str, ...]:
        return () if column in self.keys else (column,)

    def describe(self, plan: Declared) -> str:
        sets = (f"({', '.join(grouping_set)})" for grouping_set in self.sets)
        return f"GROUPING SETS {', '.join(sets)}"


def _expanded(expand: Expand, columns: Columns) -> Iterator[Column]:
    """Yield the columns of the input; a key that is missing from a set becomes nullable."""
    for column in columns:
        sometimes = column.name in expand.keys and not all(column.name in keys for keys in expand.sets)
        yield Column(name=column.name, type=str(parse(column.type).as_nullable())) if sometimes else column
