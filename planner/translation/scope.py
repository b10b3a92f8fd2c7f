"""The names that a query block can use, and their resolution.

Names are case-sensitive, as in Flink. This module resolves columns, ``*`` and ``t.*``, and raises the errors for names
that are unknown or ambiguous. It does not know the origin of an input's fields.

>>> orders = Input(name="o", kind="table", fields=(Field(id=1, name="o_id", type=INT),), offset=0)
>>> Scope(inputs=(orders,)).find(None, "o_id")[0].field.id
1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hintplan.planner.expressions import nested
from hintplan.planner.expressions.typed import INT, UNKNOWN, Expr, Field, FieldRef
from hintplan.planner.syntax.source import Source
from hintplan.plans.text.names import did_you_mean

__all__ = ["INT", "Input", "Scope", "levels", "resolve_column", "resolve_path", "star"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A source in FROM. ``name`` is its name in the block, or None for a sub-query without an alias.

    - ``path`` is the full path of a table or view without an alias.
    - ``kind`` describes the input in messages.
    - ``looked_up`` is True before FOR SYSTEM_TIME AS OF, ``called`` for the result of a function or UNNEST.
    - ``failed`` is True if the input could not be compiled, so any name may be a column of it.
    """

    name: str | None
    kind: str
    fields: tuple[Field, ...]
    offset: int
    path: tuple[str, ...] = ()
    looked_up: bool = False
    called: bool = False
    failed: bool = False
    _by_name: dict[str, list[Field]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def named(self, name: str) -> list[Field]:
        """Return the fields with the name ``name``, through an index, because a query may read thousands of columns."""
        if not self._by_name:
            for each in self.fields:
                self._by_name.setdefault(each.name, []).append(each)
        return self._by_name.get(name, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The inputs of a block in order; ``merged`` are columns merged by USING; ``parent`` is the outer block's scope."""

    inputs: tuple[Input, ...]
    merged: Mapping[str, Field] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    parent: Scope | None = None

    def find(self, qualifier: str | None, name: str) -> list[FieldRef]:
        """Return all columns of this block, not of outer blocks, that the name may mean: at most one per input."""
        if qualifier is None and name in self.merged:
            return [FieldRef(field=self.merged[name])]
        inputs = self.inputs if qualifier is None else [i for i in self.inputs if i.name == qualifier]
        return [FieldRef(field=match) for each in inputs for match in each.named(name)[:1]]


def resolve_column(source: Source, scope: Scope, qualifier: str | None, name: str, offset: int) -> Expr:
    """Return the column ``[qualifier.]name``; raise SqlError if there is none, or more than one.

    Returns UNKNOWN if it may be a column of an input that failed.
    """
    level: Scope | None = scope
    while level is not None:
        matches = level.find(qualifier, name)
        if len(matches) > 1:
            owners = [f"{i.name}.{name}" for i in level.inputs for _ in i.named(name) if i.name]
            raise source.error(
                f"column '{name}' is ambiguous",
                offset,
                f"write one of {', '.join(owners)}" if len(set(owners)) > 1 else "give the columns different names",
            )
        if matches:
            return FieldRef(field=matches[0].field, offset=offset)
        level = level.parent
    if may_be_of_failed(scope, qualifier):
        source.problems.doubts += 1
        return UNKNOWN
    raise _unknown(source, scope, qualifier, name, offset)


def may_be_of_failed(scope: Scope, qualifier: str | None) -> bool:
    """Return True if a name that no other input has may belong to an input that failed."""
    inputs = [each for level in levels(scope) for each in level.inputs]
    sound = (each.name for each in inputs if not each.failed)
    return any(each.failed for each in inputs) and (qualifier is None or qualifier not in sound)


def resolve_path(source: Source, scope: Scope, names: tuple[str, ...], offset: int) -> Expr:
    """Return the column or field ``a``, ``t.a``, ``a.b`` or ``t.a.b``; raise SqlError if there is none, or several.

    The first two names are an input and its column if such a column exists. Otherwise the first name is a column, and
    the names after it are fields.
    """
    first, *path = names
    if not path:
        return resolve_column(source, scope, None, first, offset)
    seen = list(levels(scope))
    if any(level.find(first, path[0]) for level in seen) or not any(level.find(None, first) for level in seen):
        value, field_names = resolve_column(source, scope, first, path[0], offset), path[1:]
    else:
        value, field_names = resolve_column(source, scope, None, first, offset), path
    if value is UNKNOWN:
        return value
    for name in field_names:
        value = nested.field(source, value, name, offset)
    return value


def levels(scope: Scope) -> Iterator[Scope]:
    """Yield ``scope`` and the scopes of its outer blocks, from the inside out."""
    level: Scope | None = scope
    while level is not None:
        yield level
        level = level.parent


def _unknown(source: Source, scope: Scope, qualifier: str | None, name: str, offset: int) -> Exception:
    names = [i.name for i in scope.inputs if i.name]
    if qualifier is not None and qualifier not in names:
        if scope.parent is not None and any(i.name == qualifier for i in scope.parent.inputs):
            scope = scope.parent
        else:
            aliased = [i.name for i in scope.inputs if i.kind.endswith(f" {qualifier}") and i.name]
            hint = (
                f"it is called '{aliased[0]}' here" if aliased else did_you_mean(qualifier, names, what="inputs here")
            )
            return source.error(f"unknown table or alias '{qualifier}'", offset, hint)
    if qualifier is None:
        columns = [f.name for i in scope.inputs for f in i.fields]
        where = "in this query" if len(scope.inputs) != 1 else f"in '{names[0]}'" if names else "in the sub-query"
    else:
        columns = [f.name for i in scope.inputs if i.name == qualifier for f in i.fields]
        where = f"in '{qualifier}'"
    if name == "$rowtime":
        message = "'$rowtime' is not supported: a table has only the columns that it declares"
        return source.error(message, offset, "declare a column with the time of a row, such as ts TIMESTAMP(3)")
    return source.error(f"unknown column '{name}' {where}", offset, did_you_mean(name, columns, what="columns"))


def star(source: Source, scope: Scope, qualifier: str | None, offset: int) -> tuple[Field, ...]:
    """Return the fields of ``*`` or ``qualifier.*``, in order; columns merged by USING come first, and only once."""
    if qualifier is None:
        visible = (f for i in scope.inputs for f in i.fields if f.id not in scope.hidden)
        return tuple(dict.fromkeys((*scope.merged.values(), *visible)))
    for input_ in scope.inputs:
        if input_.name == qualifier:
            return input_.fields
    if may_be_of_failed(scope, qualifier):
        source.problems.doubts += 1
        return ()
    raise _unknown(source, scope, qualifier, "*", offset)
