"""Random queries over the tables a, b and c: joins of all kinds, sub-queries, conditions, grouping, unions.

Each join has an equality, as a streaming join must; integers may be compared and added, so that conditions move about.
"""

from __future__ import annotations

from random import Random

__all__ = ["random_calls", "random_lookup", "random_query"]

Columns = tuple[str, ...]
TABLES: dict[str, Columns] = {t: (f"{t}_id", f"{t}_k", f"{t}_v") for t in "abc"}


def random_query(dice: Random, depth: int = 2) -> tuple[str, Columns]:
    """A query and the names of its columns, all integers."""
    shape = dice.random()
    if depth and shape < 0.12:
        return _union(dice, depth)
    source, columns = _from(dice, depth)
    where = _where(dice, columns, depth)
    if shape < 0.4:
        return _grouped(dice, source, columns, where)
    chosen = dice.sample(columns, min(len(columns), dice.randint(2, 4)))
    items = [c if dice.random() < 0.7 else f"{c} + {dice.choice(columns)}" for c in chosen]
    names = tuple(f"x{i}" for i in range(len(items)))
    listed = ", ".join(f"{i} AS {n}" for i, n in zip(items, names, strict=True))
    distinct = "DISTINCT " if dice.random() < 0.15 else ""
    return f"SELECT {distinct}{listed} FROM {source}{where}", names


def random_lookup(dice: Random, right_sides: dict[str, tuple[Columns, Columns]], clause: str) -> tuple[str, Columns]:
    """One or two lookups of ``right_sides`` (names to columns and to those that can be asked for) over table a."""
    source, columns = "a t0", tuple(f"t0.{c}" for c in TABLES["a"])
    parts: list[str] = []
    for number in range(1, dice.choice((2, 2, 3))):
        name = dice.choice(tuple(right_sides))
        added, keys = (tuple(f"t{number}.{c}" for c in part) for part in right_sides[name])
        value = dice.choice((*columns, f"{dice.choice(columns)} + 1", str(dice.randint(0, 6))))
        sides = [dice.choice(keys), value]
        dice.shuffle(sides)
        on = " AND ".join(
            [" = ".join(sides), *(_condition(dice, columns + added) for _ in range(dice.choice((0, 1, 2))))]
        )
        if dice.random() < 0.2:
            source, parts = f"{source}, {name} {clause} AS t{number}", [*parts, on]
        else:
            source = f"{source} {dice.choice(('JOIN', 'LEFT JOIN', 'LEFT JOIN'))} {name} {clause} AS t{number} ON {on}"
        columns += added
    parts += [_condition(dice, columns) for _ in range(dice.choice((0, 0, 1)))]
    chosen = dice.sample(columns, dice.randint(2, 4))
    names = tuple(f"x{i}" for i in range(len(chosen)))
    listed = ", ".join(f"{c} AS {n}" for c, n in zip(chosen, names, strict=True))
    return f"SELECT {listed} FROM {source}{' WHERE ' + ' AND '.join(parts) if parts else ''}", names


def random_calls(dice: Random) -> tuple[str, Columns]:
    """One or two laterals ``split`` over table a or a join, and scalar calls of ``twice`` and ``maybe``."""
    source, columns = "a t0", tuple(f"t0.{c}" for c in TABLES["a"])
    if dice.random() < 0.4:
        kind = dice.choice(("JOIN", "LEFT JOIN"))
        source = f"{source} {kind} b t1 ON {dice.choice(columns)} = maybe(t1.b_k)"
        columns += tuple(f"t1.{c}" for c in TABLES["b"])
    for number in range(dice.choice((1, 1, 2))):
        argument = _called(dice, dice.choice((*columns, f"{dice.choice(columns)} + 1", "3")))
        call = f"LATERAL TABLE(split({argument})) AS p{number}"
        how = dice.choice((", {}", " CROSS JOIN {}", " LEFT JOIN {} ON TRUE", " LEFT JOIN {} ON TRUE"))
        source += how.format(call)
        columns += (f"p{number}.value",)
    where = [_condition(dice, tuple(_called(dice, c) for c in columns)) for _ in range(dice.choice((0, 1, 2)))]
    filtered = f" WHERE {' AND '.join(where)}" if where else ""
    if dice.random() < 0.3:
        return _grouped(dice, source, columns, filtered)
    chosen = [_called(dice, c) for c in dice.sample(columns, dice.randint(2, 4))]
    names = tuple(f"x{i}" for i in range(len(chosen)))
    listed = ", ".join(f"{c} AS {n}" for c, n in zip(chosen, names, strict=True))
    return f"SELECT {listed} FROM {source}{filtered}", names


def _called(dice: Random, expression: str) -> str:
    """``expression``, or sometimes a call with it."""
    return dice.choice(("{}", "{}", "{}", "twice({})", "maybe({})", "maybe(twice({}))")).format(expression)


def _union(dice: Random, depth: int) -> tuple[str, Columns]:
    parts = [random_query(dice, depth - 1) for _ in range(2)]
    width = min(len(columns) for _, columns in parts)
    selects = [
        f"SELECT {', '.join(f'{c} AS y{i}' for i, c in enumerate(columns[:width]))} FROM ({sql}) u{i}"
        for i, (sql, columns) in enumerate(parts)
    ]
    return dice.choice((" UNION ALL ", " UNION ")).join(selects), tuple(f"y{i}" for i in range(width))


def _from(dice: Random, depth: int) -> tuple[str, Columns]:
    source, columns = _input(dice, depth, 0)
    for number in range(1, dice.choice((1, 2, 2, 3))):
        right, added = _input(dice, depth, number)
        kind = dice.choice(("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        on = f"{dice.choice(columns)} = {dice.choice(added)}"
        for _ in range(dice.choice((0, 0, 1, 2))):
            on += f" AND {_condition(dice, columns + added)}"
        source, columns = f"{source} {kind} {right} ON {on}", columns + added
    return source, columns


def _input(dice: Random, depth: int, number: int) -> tuple[str, Columns]:
    alias = f"t{number}"
    if depth and dice.random() < 0.35:
        sql, columns = random_query(dice, depth - 1)
        return f"({sql}) {alias}", tuple(f"{alias}.{c}" for c in columns)
    table = dice.choice(tuple(TABLES))
    return f"{table} {alias}", tuple(f"{alias}.{c}" for c in TABLES[table])


def _condition(dice: Random, columns: Columns) -> str:
    a, b = dice.choice(columns), dice.choice(columns)
    return dice.choice((
        f"{a} > {dice.randint(0, 4)}", f"{a} <> {b}", f"{a} + 1 >= {b}", f"({a} < {dice.randint(1, 5)} OR {b} IS NULL)",
        f"{a} IS NOT NULL", f"COALESCE({a}, {b}, 3) > 2", f"NOT {a} = {b}", f"{a} IN (1, 2, 4)",
        f"{a} BETWEEN 1 AND 4",
    ))  # fmt: skip


def _where(dice: Random, columns: Columns, depth: int) -> str:
    parts = [_condition(dice, columns) for _ in range(dice.choice((0, 1, 1, 2)))]
    if depth and dice.random() < 0.25:
        table = dice.choice(tuple(TABLES))
        inner = tuple(f"e.{c}" for c in TABLES[table])
        on = f"{dice.choice(inner)} = {dice.choice(columns)}"
        if dice.random() < 0.5:
            on += f" AND {_condition(dice, inner + columns)}"
        parts.append(f"{dice.choice(('', 'NOT '))}EXISTS (SELECT 1 FROM {table} e WHERE {on})")
    if depth and dice.random() < 0.2:
        value, beside = _value(dice, columns), dice.choice(columns)
        part = f"{beside} {dice.choice(('<', '>=', '='))} {value}"
        parts.append(part if dice.random() < 0.7 else f"({part} OR {beside} = 2)")
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _value(dice: Random, columns: Columns) -> str:
    """A scalar sub-query, most often correlated."""
    table = dice.choice(tuple(TABLES))
    inner = tuple(f"f.{c}" for c in TABLES[table])
    made = dice.choice(("MAX({0})", "COUNT(*)", "COUNT({0}) + 1", "SUM({0})", "MIN({0}) + COUNT({1})"))
    on = [
        f"{dice.choice(inner)} {dice.choice(('=', '=', '<', '>=', '<>'))} {dice.choice(columns)}"
        for _ in range(dice.choice((0, 1, 1, 2)))
    ]
    on += [_condition(dice, inner) for _ in range(dice.choice((0, 0, 1)))]
    if len(on) > 1 and dice.random() < 0.2:
        on = [f"({' OR '.join(on)})"]
    where = f" WHERE {' AND '.join(on)}" if on else ""
    return f"(SELECT {made.format(*dice.sample(inner, 2))} FROM {table} f{where})"


def _grouped(dice: Random, source: str, columns: Columns, where: str) -> tuple[str, Columns]:
    keys = dice.sample(columns, dice.choice((1, 1, 2)))
    calls = [
        dice.choice(("COUNT(*)", f"SUM({c})", f"MIN({c})", f"COUNT(DISTINCT {c})", f"MAX({c}) FILTER (WHERE {c} > 2)"))
        for c in dice.sample(columns, 2)
    ]
    items = [*keys, *calls]
    names = tuple(f"g{i}" for i in range(len(items)))
    listed = ", ".join(f"{i} AS {n}" for i, n in zip(items, names, strict=True))
    having = f" HAVING COUNT(*) > 1 AND {keys[0]} > 0" if dice.random() < 0.3 else ""
    return f"SELECT {listed} FROM {source}{where} GROUP BY {', '.join(keys)}{having}", names
