"""Which names a query block can use, and what they stand for.

Names are case-sensitive, as in Flink. Owns the resolution of columns, ``*`` and ``t.*``, and the errors for names
that are unknown or ambiguous. Does not know where the fields of an input come from.

>>> orders = Input(name="o", kind="table", fields=(Field(id=1, name="o_id", type=INT),), offset=0)
>>> Scope(inputs=(orders,)).find(None, "o_id")[0].field.id
1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hintplan.planner.expressions import nested
from hintplan.planner.expressions.typed import INT, UNKNOWN, Expr, Field, Ref
from hintplan.planner.syntax.source import Source
from hintplan.plans.text.names import did_you_mean

__all__ = ["INT", "Input", "Scope", "levels", "resolve", "resolve_path", "star"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Something in FROM. ``name`` is what the block calls it, None for a sub-query without an alias.

    ``path`` is the full path if the name is that of a table or view, not an alias. ``kind`` is for messages.
    ``looked_up`` says that it stands before FOR SYSTEM_TIME AS OF, ``called`` that a function returns it. An input that
    ``failed`` could not be compiled: any name may be a column of it.
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
        """Return the fields called ``name``; a query may ask for each of thousands."""
        if not self._by_name:
            for each in self.fields:
                self._by_name.setdefault(each.name, []).append(each)
        return self._by_name.get(name, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The inputs of a block in order; ``merged`` are the columns that USING made one; ``parent`` is the outer block."""

    inputs: tuple[Input, ...]
    merged: Mapping[str, Field] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()
    parent: Scope | None = None

    def find(self, qualifier: str | None, name: str) -> list[Ref]:
        """All columns of this block, not of outer ones, that the name can mean; the first that an input calls so."""
        if qualifier is None and name in self.merged:
            return [Ref(field=self.merged[name])]
        inputs = self.inputs if qualifier is None else [i for i in self.inputs if i.name == qualifier]
        return [Ref(field=found) for each in inputs for found in each.named(name)[:1]]


def resolve(source: Source, scope: Scope, qualifier: str | None, name: str, offset: int) -> Expr:
    """The column that ``[qualifier.]name`` means; SqlError if there is none or more than one.

    UNKNOWN for what may be a column of an input that failed.
    """
    level: Scope | None = scope
    while level is not None:
        found = level.find(qualifier, name)
        if len(found) > 1:
            owners = [f"{i.name}.{name}" for i in level.inputs for _ in i.named(name) if i.name]
            raise source.error(
                f"column '{name}' is ambiguous",
                offset,
                f"write one of {', '.join(owners)}" if len(set(owners)) > 1 else "give the columns different names",
            )
        if found:
            return Ref(field=found[0].field, offset=offset)
        level = level.parent
    if may_be_of_failed(scope, qualifier):
        source.problems.doubts += 1
        return UNKNOWN
    raise _unknown(source, scope, qualifier, name, offset)


def may_be_of_failed(scope: Scope, qualifier: str | None) -> bool:
    """True if an input that failed may have what is not found in the others."""
    inputs = [each for level in levels(scope) for each in level.inputs]
    sound = (each.name for each in inputs if not each.failed)
    return any(each.failed for each in inputs) and (qualifier is None or qualifier not in sound)


def resolve_path(source: Source, scope: Scope, names: tuple[str, ...], offset: int) -> Expr:
    """The column or field that ``a``, ``t.a``, ``a.b`` or ``t.a.b`` means; SqlError if there is none, or several.

    What can be a column of an input is one; else the first name is a column, and those after it are fields.
    """
    first, *others = names
    if not others:
        return resolve(source, scope, None, first, offset)
    seen = list(levels(scope))
    if any(level.find(first, others[0]) for level in seen) or not any(level.find(None, first) for level in seen):
        found, rest = resolve(source, scope, first, others[0], offset), others[1:]
    else:
        found, rest = resolve(source, scope, None, first, offset), others
    if found is UNKNOWN:
        return found
    for name in rest:
        found = nested.field(source, found, name, offset)
    return found


def levels(scope: Scope) -> Iterator[Scope]:
    """``scope`` and those around it, from the inside out."""
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
        message = "'$rowtime' is not supported: there is no event time, and a table has the columns that it declares"
        return source.error(message, offset, "declare a column with the time of a row, such as ts TIMESTAMP(3)")
    return source.error(f"unknown column '{name}' {where}", offset, did_you_mean(name, columns, what="columns"))


def star(source: Source, scope: Scope, qualifier: str | None, offset: int) -> tuple[Field, ...]:
    """The fields of ``*`` or ``qualifier.*``, in order; columns merged by USING come first and once."""
    if qualifier is None:
        rest = (f for i in scope.inputs for f in i.fields if f.id not in scope.hidden)
        return tuple(dict.fromkeys((*scope.merged.values(), *rest)))
    for found in scope.inputs:
        if found.name == qualifier:
            return found.fields
    if may_be_of_failed(scope, qualifier):
        source.problems.doubts += 1
        return ()
    raise _unknown(source, scope, qualifier, "*", offset)
