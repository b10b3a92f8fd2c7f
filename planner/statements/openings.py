"""The words that each statement begins with, for completion in the SQL client.

>>> OPENINGS[AlterView]
('ALTER VIEW ',)
"""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.planner.statements.catalog_statements import KINDS, LISTED
from hintplan.planner.statements.model import (
    AddJar,
    AlterTable,
    AlterView,
    CacheTable,
    CompilePlan,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    ExecutePlan,
    Explain,
    Insert,
    ResetOption,
    Select,
    SetOption,
    Show,
    Statement,
    StatementSet,
    StopJobStatement,
    UncacheTable,
    UseDefault,
)

OPENINGS: Mapping[type[Statement], tuple[str, ...]] = {
    SetOption: ("SET ",),
    ResetOption: ("RESET",),
    CreateTable: ("CREATE TABLE ", "CREATE TEMPORARY TABLE "),
    CreateView: ("CREATE VIEW ", "CREATE OR REPLACE VIEW ", "CREATE TEMPORARY VIEW "),
    AlterTable: ("ALTER TABLE ",),
    AlterView: ("ALTER VIEW ",),
    CreateFunction: ("CREATE FUNCTION ", "CREATE TEMPORARY FUNCTION ", "CREATE TEMPORARY SYSTEM FUNCTION "),
    Drop: tuple(f"DROP {kind} " for kind in KINDS),
    CacheTable: ("CACHE TABLE ", "CACHE LAZY TABLE "),
    UncacheTable: ("UNCACHE TABLE ",),
    UseDefault: ("USE ", "USE CATALOG "),
    AddJar: ("ADD JAR '",),
    Insert: ("INSERT INTO ", "INSERT OVERWRITE "),
    StatementSet: ("EXECUTE STATEMENT SET BEGIN ", "BEGIN STATEMENT SET;"),
    Select: ("SELECT ", "WITH "),
    Show: (*(f"SHOW {listed}" for listed in LISTED), "SHOW CREATE TABLE ", "SHOW CREATE VIEW "),
    Describe: ("DESCRIBE ",),
    Explain: ("EXPLAIN ", "EXPLAIN PLAN FOR "),
    CompilePlan: ("COMPILE PLAN '", "COMPILE AND EXECUTE PLAN '"),
    ExecutePlan: ("EXECUTE PLAN '",),
    StopJobStatement: ("STOP JOB '",),
}
"""The openings of each kind of statement, up to the first name, value or query."""

ALL_OPENINGS = tuple(opening for openings in OPENINGS.values() for opening in openings)
