"""The grammar of statements about plans: COMPILE PLAN, EXECUTE PLAN, EXPLAIN, and their statement sets.

Other modules read and write files, and decide about an existing plan file.

>>> from hintplan.planner.syntax.dialect import tokenize
>>> from hintplan.planner.syntax.source import Source
>>> source = Source(text="EXECUTE PLAN 'plan.json'")
>>> cursor = Cursor(source, source.text, tokenize(source.text))
>>> cursor.take("EXECUTE"), read_execute(cursor, 0).path
(True, 'plan.json')
"""

from __future__ import annotations

from hintplan.planner.statements.model import CompilePlan, ExecutePlan, Explain, Insert, Select, StatementSet
from hintplan.planner.statements.query_statements import read_insert, read_select
from hintplan.planner.syntax.cursor import Cursor, word_of

_SET_FORM = "write EXECUTE STATEMENT SET BEGIN ...; END;"
_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "PLAN_ADVICE")


def read_set(cursors: list[Cursor], offset: int, *, opened_by: str) -> StatementSet:
    """Read a statement set from after STATEMENT SET. Each of ``cursors`` has the text up to a semicolon."""
    cursor, *following = cursors
    source = cursor.source
    if opened_by != "BEGIN":
        cursor.expect("BEGIN", _SET_FORM)
        if cursor.at_end:
            raise source.error("a statement set holds INSERT statements", cursor.offset, "add one, then END;")
    inserts = [] if cursor.at_end else [_member(cursor)]
    for member in following:
        if member.take("END"):
            if not member.at_end:
                raise member.unexpected("';'", "end each statement with ';'")
            if not inserts:
                raise source.error("a statement set holds INSERT statements", offset, "add one before END;")
            return StatementSet(inserts=tuple(inserts), offset=offset)
        inserts.append(_member(member))
    raise source.error("this statement set is never closed", offset, "add END; after its last INSERT")


def _member(cursor: Cursor) -> Insert:
    if cursor.peek("EXECUTE", "STATEMENT", "SET") or cursor.peek("BEGIN", "STATEMENT", "SET"):
        raise cursor.source.error("statement sets cannot be nested", cursor.offset, "close the first with END;")
    if cursor.peek("CREATE"):
        message = "a statement set holds INSERT statements, and no CREATE, as in Flink"
        raise cursor.source.error(
            message, cursor.offset, "declare the table before the set, and write INSERT INTO in it"
        )
    if not cursor.peek("INSERT"):
        raise cursor.unexpected("INSERT INTO in the statement set", "close the statement set with END; first")
    return read_insert(cursor)


def read_execute(cursor: Cursor, offset: int) -> ExecutePlan | Insert | Select:
    """Read ``EXECUTE PLAN 'path'``, or EXECUTE before a query or an INSERT, from after EXECUTE."""
    if cursor.take("PLAN"):
        place = cursor.offset
        return ExecutePlan(path=cursor.last_string("the path of a plan file"), path_offset=place, offset=offset)
    job = _job([cursor])
    if isinstance(job, StatementSet):
        raise cursor.source.error("expected PLAN, INSERT INTO, SELECT or STATEMENT SET", offset, _SET_FORM)
    return job


def read_compile(cursors: list[Cursor], offset: int) -> CompilePlan:
    """Read ``COMPILE [AND EXECUTE] PLAN 'path' [IF NOT EXISTS] FOR job`` from after COMPILE."""
    cursor = cursors[0]
    execute = cursor.take("AND", "EXECUTE")
    cursor.expect("PLAN", "write COMPILE PLAN 'plan.json' FOR INSERT INTO ...")
    path_offset = cursor.offset
    path = cursor.string("the path of a plan file")
    condition = cursor.offset
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    if if_not_exists and execute:
        advice = "remove it: an existing plan file is executed"
        raise cursor.source.error("COMPILE AND EXECUTE PLAN takes no IF NOT EXISTS", condition, advice)
    cursor.expect("FOR", "write COMPILE PLAN 'plan.json' FOR INSERT INTO ...")
    place = cursor.offset
    job = _job(cursors)
    if isinstance(job, Select):
        advice = "write INSERT INTO <sink table> SELECT ...: a plan needs a sink"
        raise cursor.source.error("a plan is compiled for INSERT INTO or a statement set", place, advice)
    return CompilePlan(
        path=path,
        path_offset=path_offset,
        job=job,
        offset=offset,
        if_not_exists=if_not_exists,
        execute=execute,
    )


def read_explain(cursors: list[Cursor], offset: int) -> Explain:
    """Read ``EXPLAIN [PLAN FOR] [EXECUTE] job`` or ``EXPLAIN PLAN FOR 'path'`` from after EXPLAIN."""
    cursor = cursors[0]
    as_json = cursor.take("JSON_EXECUTION_PLAN")
    if not cursor.at_end and word_of(cursor.tokens[cursor.index]) in _DETAILS:
        detail = cursor.tokens[cursor.index].text.upper()
        advice = "write EXPLAIN, which shows state, settings and who set them, or EXPLAIN JSON_EXECUTION_PLAN"
        raise cursor.source.error(f"{detail} is not supported", cursor.offset, advice)
    if not as_json and cursor.take("PLAN"):
        cursor.expect("FOR", "write EXPLAIN PLAN FOR SELECT ..., or EXPLAIN PLAN FOR 'plan.json'")
        if cursor.next_is_string:
            return Explain(job=cursor.last_string("the path of a plan file"), offset=offset)
    if cursor.peek("CREATE", "TABLE"):
        message = "EXPLAIN of CREATE TABLE ... AS is not supported"
        raise cursor.source.error(message, cursor.offset, "write EXPLAIN before the query alone")
    cursor.take("EXECUTE")
    return Explain(job=_job(cursors), offset=offset, as_json=as_json)


def _job(cursors: list[Cursor]) -> Insert | Select | StatementSet:
    cursor = cursors[0]
    offset = cursor.offset
    if cursor.take("STATEMENT", "SET"):
        return read_set(cursors, offset, opened_by="")
    if cursor.peek("INSERT"):
        return read_insert(cursor)
    if (query := read_select(cursor)) is not None:
        return query
    raise cursor.unexpected("INSERT INTO, SELECT or STATEMENT SET", "see docs/sql-client.md for the statements")
