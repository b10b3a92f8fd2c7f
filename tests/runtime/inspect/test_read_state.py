"""What is said of a checkpoint, without Spark: rows counted by hand, whose they are, what a run sweeps meanwhile."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import hintplan
from hintplan import read_state
from hintplan.plans.checkpoint.report import Expiring
from hintplan.plans.edit.edit import set_value
from hintplan.plans.errors import PlanError, RunError
from hintplan.plans.model.plan import Plan
from hintplan.runtime.inspect import command, opening
from hintplan.runtime.inspect.checked import checked_here
from hintplan.runtime.inspect.contents import (
    Amount,
    CheckpointState,
    EntryState,
    OperatorState,
    QueryState,
    UnderEdit,
)
from hintplan.runtime.inspect.entries import Entry, choice
from hintplan.runtime.inspect.report import state_json, state_text
from tests.plans.in_process import hintplan as in_process
from tests.runtime.stored import run_on

HOUR, MINUTE = 3_600_000, 60_000
ROOT = Path(__file__).parents[3]


def script(*, columns: str = "k BIGINT, a STRING", of: str = "a", counted: str = "l") -> str:
    def table(name: str, columns: str, connector: str) -> str:
        return f"CREATE TABLE {name} ({columns}) WITH ('connector' = '{connector}');"

    return "\n".join(
        [
            "SET 'table.exec.state.ttl' = '1 d';",
            table("l", columns, "datagen"),
            table("r", "k BIGINT, b STRING", "datagen"),
            table("joined", "a STRING, b STRING", "blackhole"),
            table(f"counted_{counted}", "k BIGINT, n BIGINT", "blackhole"),
            f"INSERT INTO joined SELECT {of}, b FROM l JOIN r ON l.k = r.k;",
            f"INSERT INTO counted_{counted} SELECT k, COUNT(DISTINCT {'a' if counted == 'l' else 'b'}) "
            f"FROM {counted} GROUP BY k;",
        ]
    )


OLD, NEW = 100 * HOUR, 101 * HOUR
FIRST = [(1, "a1"), (1, "a2"), (2, "a3"), (2, "a3"), (None, "x")]
SECOND = [(2, "a3"), (4, "a4")]


@pytest.fixture
def kept(tmp_path: Path) -> Plan:
    """Two batches at ``tmp_path/checkpoint``, an hour apart."""
    plan = hintplan.compile_sql(script(), name="kept")
    queries = run_on(plan, tmp_path / "checkpoint").values()
    for query in queries:
        query.batch({"l": FIRST, "r": [(3, "b0")]}, OLD)
        query.batch({"l": SECOND}, NEW)
    hintplan.dump(plan, tmp_path / "plan.json")
    return plan


def files(directory: Path) -> dict[str, str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path): f"{path.stat().st_mtime_ns} {hashlib.md5(path.read_bytes()).hexdigest()}" for path in found}


def entry(found: CheckpointState, operator: str, name: str) -> EntryState:
    (one,) = (
        each
        for query in found.queries
        for state in query.operators
        if state.id == operator
        for each in state.entries
        if each.name == name
    )
    return one


def test_state_is_counted_as_by_hand(kept: Plan, tmp_path: Path) -> None:
    checkpoint, at = tmp_path / "checkpoint", NEW + 10 * MINUTE
    edited, _ = set_value(kept, "join_l_r.state.leftState.ttl", "70 min")
    before = files(checkpoint)
    found = read_state(kept, str(checkpoint), at=at, edited=edited, show=2)
    assert files(checkpoint) == before, "reading must leave the checkpoint as it is"
    assert {(query.id, query.batch, query.started) for query in found.queries} == {
        ("sink_joined", 1, NEW),
        ("sink_counted_l", 1, NEW),
    }
    # (1, a1), (1, a2) of the first batch; (2, a3), written again, and (4, a4) of the second; NULL keys never match.
    left = entry(found, "join_l_r", "leftState")
    assert left.amount == Amount(rows=4, keys=3, bytes=left.amount.bytes, oldest=OLD, newest=NEW, expired=0, soon=0)
    # Under 70 minutes the first batch expires at this moment, the second in an hour.
    assert left.edited == UnderEdit(ttl="70 min", rows=2, expired=2, soon=2)
    ((table, rows),) = left.shown
    assert table == "left"
    assert sorted((row["k"], row["a"], row["__count"]) for row in rows.to_pylist()) == [(2, "a3", 3), (4, "a4", 1)]
    right = entry(found, "join_l_r", "rightState")
    assert (right.amount.rows, right.amount.keys, right.edited) == (1, 1, None)
    # Groups 1, 2, 4 and NULL, and what is counted in them: a1 and a2, a3, a4, x.
    groups = entry(found, "aggregate_l", "groupAggregateState")
    assert (groups.amount.rows, groups.amount.keys, groups.amount.expired) == (9, 4, 0)
    assert {name: amount.rows for name, amount in groups.tables} == {"groups": 4, "values(a)": 5}
    assert found.total.rows == 4 + 1 + 9


def test_the_largest_states_come_first_with_their_share_and_what_a_ttl_leaves_of_their_bytes() -> None:
    def state(name: str, size: int, edited: UnderEdit | None = None) -> OperatorState:
        amount = Amount(rows=8, keys=8, bytes=size, oldest=OLD, newest=OLD, expired=2, soon=0)
        return OperatorState(
            id=name, status="read", entries=(EntryState(name="s", input="i", ttl="0 ms", amount=amount, edited=edited),)
        )

    shorter = UnderEdit(ttl="1 h", rows=5, expired=5, soon=0)
    queries = (
        QueryState(id="sink_a", sinks=("sink_a",), operators=(state("small", 1024), state("large", 6 * 1024, shorter))),
        QueryState(id="sink_b", sinks=("sink_b",), operators=(state("largest", 25 * 1024),)),
    )
    found = CheckpointState(
        plan="p", written_by="p", checkpoint="c", at=NEW, partitions=1, time_zone="UTC", queries=queries
    )
    lines = state_text(found).splitlines()
    assert [line for line in lines if line in ("small", "large", "largest")] == ["largest", "large", "small"]
    assert [line.split() for line in lines if line.startswith("   s  i")] == [
        ["s", "i", "never", "8", "8", "25.0", "KiB", "78", "%", "1", "h", "1", "h", "0", "2"],
        ["s", "i", "never", "8", "8", "6.0", "KiB", "19", "%", "1", "h", "1", "h", "0", "2"],
        ["s", "i", "never", "8", "8", "1.0", "KiB", "3", "%", "1", "h", "1", "h", "0", "2"],
    ]
    (edited,) = (line.split() for line in lines if line.startswith("      if"))
    assert edited == ["if", "1", "h", "5", "3.0", "KiB", "0", "5"]
    (told,) = (each["state"][0]["if"] for each in state_json(found)["queries"][0]["operators"] if each["id"] == "large")
    assert told["bytes"] == 3 * 1024


def test_check_counts_the_rows_that_a_shorter_ttl_hides(kept: Plan, tmp_path: Path) -> None:
    checkpoint, at = str(tmp_path / "checkpoint"), NEW + 10 * MINUTE
    edited, _ = set_value(kept, "join_l_r.state.leftState.ttl", "70 min")
    assert [change.effect.level for change in hintplan.diff(kept, edited)] == ["expire"]
    # Of four rows, the two of the first batch were last written 70 minutes ago: half of the state's bytes.
    (stored,) = read_state(kept, checkpoint, at=at, entries=("join_l_r.leftState",)).queries[0].operators[0].entries
    half, due = stored.amount.bytes // 2, NEW + 70 * MINUTE
    found = checked_here(edited, checkpoint, at=at)
    assert (found.verdict, dict(found.expiring)) == (
        "continues",
        {"join_l_r.leftState.ttl": Expiring(rows=2, of=4, bytes=half, first=due, last=due)},
    )
    said = found.text().splitlines()
    assert (
        said[3].split("   ")[-1]
        == f"leftState.ttl 1 d → 70 min, older rows expire: 2 of 4 rows (about {half} B) if the run starts at "
        "1970-01-05 05:10 UTC, the others at 06:10 UTC"
    )
    assert said[-1] == "a run continues with all state but 2 rows that shorter TTLs hide and soon delete"
    assert found.json()["at"] == "1970-01-05T05:10:00.000Z"
    assert found.json()["expiring"] == {
        "join_l_r.leftState.ttl": {
            "rows": 2,
            "of": 4,
            "bytes": half,
            "first": "1970-01-05T06:10:00.000Z",
            "last": "1970-01-05T06:10:00.000Z",
        }
    }
    longer, _ = set_value(kept, "join_l_r.state.leftState.ttl", "2 d")
    assert checked_here(longer, checkpoint, at=at).text().splitlines()[-1] == "a run continues with all state"


@pytest.mark.parametrize(
    ("at", "zone", "text"),
    [
        # Rows were last written at 04:00 and 05:00 UTC on 5 January, and pass a TTL of 6 h at 10:00 and 11:00.
        ("1970-01-05T05:10", "UTC", "0 of 4 rows if the run starts at 1970-01-05 05:10 UTC, the first at 10:00 UTC, "
         "all by 11:00 UTC"),
        ("1970-01-04T23:00Z", "UTC", "0 of 4 rows if the run starts at 1970-01-04 23:00 UTC, the first at 1970-01-05 "
         "10:00 UTC, all by 1970-01-05 11:00 UTC"),
        ("1970-01-05T10:30", "Asia/Tokyo", "0 of 4 rows if the run starts at 1970-01-05 10:30 Asia/Tokyo, the first at "
         "19:00 Asia/Tokyo, all by 20:00 Asia/Tokyo"),
        ("1970-01-05T10:30Z", "UTC", "2 of 4 rows (about {half} B) if the run starts at 1970-01-05 10:30 UTC, the "
         "others at 11:00 UTC"),
        ("1970-01-05T12:00Z", "UTC", "4 of 4 rows (about {all} B) if the run starts at 1970-01-05 12:00 UTC\n"),
    ],
)  # fmt: skip
def test_check_says_when_the_rows_that_are_left_pass_a_shorter_ttl(
    kept: Plan, tmp_path: Path, at: str, zone: str, text: str
) -> None:
    stored = entry(read_state(kept, str(tmp_path / "checkpoint"), at=NEW), "join_l_r", "leftState").amount.bytes
    edited, _ = set_value(kept, "join_l_r.state.leftState.ttl", "6 h")
    edited, _ = set_value(edited, "config.table.local-time-zone", zone)
    hintplan.dump(edited, tmp_path / "plan.json")
    given = ("check", "plan.json", "--checkpoint", "checkpoint", "--at", at)
    done = in_process(*given, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"older rows expire: {text.format(half=stored // 2, all=stored)}" in done.stdout
    printed = json.loads(in_process(*given, "--json", folder=tmp_path).stdout)
    assert printed["expiring"]["join_l_r.leftState.ttl"]["of"] == 4


def test_check_counts_for_now_if_no_time_is_given(kept: Plan, tmp_path: Path) -> None:
    edited, _ = set_value(kept, "join_l_r.state.leftState.ttl", "6 h")
    said = hintplan.check(edited, tmp_path / "checkpoint").text()
    assert "older rows expire: 0 of 0 rows if the run starts now\n" in said, "all are gone since 1970"


def test_state_that_a_run_would_keep_by_consent_is_shown_with_the_plan_that_would_keep_it(tmp_path: Path) -> None:
    """One literal more below the join: nothing carries over, and all of it may be kept."""
    before, after = (
        hintplan.compile_sql(
            script().replace("FROM l JOIN", f"FROM (SELECT * FROM l WHERE k IN ({keys})) AS l JOIN"), name="kept"
        )
        for keys in ("1, 2, 4", "1, 2, 3, 4")
    )
    (query,) = (query for name, query in run_on(before, tmp_path / "checkpoint").items() if "joined" in name)
    query.batch({"l": FIRST, "r": [(3, "b0")]}, OLD)
    after, _ = set_value(after, "join_l_r.state.leftState.ttl", "30 min")
    found = read_state(after, str(tmp_path / "checkpoint"), at=OLD + HOUR)
    (join,) = (each for query in found.queries for each in query.operators if each.id == "join_l_r")
    assert (join.status, join.keepable) == ("other-meaning", True)
    left, right = join.entries
    assert (left.name, left.ttl, left.amount.rows, left.amount.expired, left.amount.keys) == (
        "leftState",
        "30 min",
        0,
        3,
        0,
    )
    assert (right.name, right.ttl, right.amount.rows, right.amount.expired) == ("rightState", "1 d", 1, 0)
    line = "join_l_r  (another state in the plan: a run starts it empty, or keeps it with --keep-state join_l_r)"
    assert line in state_text(found)
    (told,) = (each for each in state_json(found)["queries"][0]["operators"] if each["id"] == "join_l_r")
    assert told["may-be-kept"] is True
    said = checked_here(after, str(tmp_path / "checkpoint"), at=OLD + MINUTE).text()
    assert "4 rows stay (TTLs 30 min to 1 d). Rows that only the new plan lets in are missing" in said
    kept = checked_here(after, str(tmp_path / "checkpoint"), at=OLD + MINUTE, keep=["join_l_r"]).text()
    assert "kept by --keep-state: 4 rows stay" in kept
    assert "older rows expire: 0 of 3 rows if the run starts at" in kept


def test_a_batch_that_is_not_committed_does_not_count(kept: Plan, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    query = run_on(kept, checkpoint)["sink_joined"]
    query.batch({"l": [(9, "new")]}, NEW + MINUTE, committed=False)
    found = read_state(kept, str(checkpoint), at=NEW, entries=["join_l_r.leftState"])
    assert (found.queries[0].batch, found.total.rows) == (1, 4)
    # It runs again with a row more, as the first batch of another run.
    query = run_on(kept, checkpoint)["sink_joined"]
    query.batch({"l": [(9, "new"), (10, "newer")]}, NEW + MINUTE)
    found = read_state(kept, str(checkpoint), at=NEW + MINUTE, entries=["join_l_r.leftState"])
    assert (found.queries[0].batch, found.total.rows) == (2, 6)


def test_state_that_a_plan_does_not_read_is_judged_by_the_plan_that_last_ran(kept: Plan, tmp_path: Path) -> None:
    changed = script(columns="k BIGINT, a STRING, c STRING", of="c", counted="r")
    found = read_state(hintplan.compile_sql(changed, name="changed"), str(tmp_path / "checkpoint"), at=NEW)
    states = {
        (query.id, query.batch, state.id, state.status): {each.name: each.amount.rows for each in state.entries}
        for query in found.queries
        for state in query.operators
    }
    assert states == {
        ("sink_joined", 1, "join_l_r", "other-meaning"): {"leftState": 4, "rightState": 1},
        ("sink_counted_r", None, "aggregate_r", "read"): {"groupAggregateState": 0},
        ("sink_counted_l", 1, "aggregate_l", "orphan"): {"groupAggregateState": 9},
    }
    shown = [each for query in found.queries for state in query.operators for each in state.entries if each.amount.rows]
    assert {each.ttl for each in shown} == {"1 d"}
    assert None not in {each.amount.keys for each in shown} | {each.amount.expired for each in shown}
    text = state_text(found)
    assert "join_l_r  (another state in the plan: a run starts it empty)" in text
    later = read_state(hintplan.compile_sql(changed, name="changed"), str(tmp_path / "checkpoint"), at=NEW + 25 * HOUR)
    assert (later.total.rows, later.total.expired) == (0, 14)
    assert "aggregate_l  (not in the plan)" in text
    assert "sink_counted_r · no batch committed yet" in text
    assert "written by plan kept" in text


def test_state_follows_an_operator_that_is_called_otherwise(kept: Plan, tmp_path: Path) -> None:
    renamed = hintplan.compile_sql(
        script().replace("FROM l JOIN r ON l.k", "FROM l AS x JOIN r ON x.k"), name="renamed"
    )
    found = read_state(renamed, str(tmp_path / "checkpoint"), at=NEW)
    assert entry(found, "join_x_r", "leftState").amount.rows == 4
    assert "join_x_r  (stored as join_l_r)" in state_text(found)


def test_a_plan_that_has_nothing_to_do_with_the_checkpoint_is_refused(kept: Plan, tmp_path: Path) -> None:
    stranger = hintplan.compile_sql(
        "CREATE TABLE x (a INT) WITH ('connector' = 'datagen');"
        "CREATE TABLE y (a INT) WITH ('connector' = 'blackhole');"
        "INSERT INTO y SELECT a FROM x;",
        name="stranger",
    )
    with pytest.raises(RunError, match="written by plan kept, which has no operator in common with stranger"):
        read_state(stranger, str(tmp_path / "checkpoint"))
    with pytest.raises(RunError, match="there is no checkpoint in"):
        read_state(stranger, str(tmp_path / "nothing"))


def test_state_of_several_operators_in_a_checkpoint_with_an_odd_name_that_is_given_as_a_url(tmp_path: Path) -> None:
    text = (
        script().partition("INSERT")[0]
        + """
        CREATE TABLE both (b STRING, n BIGINT) WITH ('connector' = 'blackhole');
        CREATE VIEW sums AS SELECT k, COUNT(a) AS n FROM l GROUP BY k;
        INSERT INTO both SELECT z.b, x.n + y.n
        FROM sums AS x JOIN sums AS y ON x.k = y.k JOIN (SELECT k, MAX(b) AS b FROM r GROUP BY k) AS z ON x.k = z.k"""
    )
    plan = hintplan.compile_sql(text)
    checkpoint = tmp_path / "state [1] {a,b}*?%20"
    (query,) = run_on(plan, checkpoint).values()
    query.batch({"l": [(1, "x"), (2, "x")], "r": [(1, "y")]}, NEW)
    (told,) = read_state(plan, f"file://{checkpoint}/", at=NEW).queries
    assert {(state.id, each.name): each.amount.rows for state in told.operators for each in state.entries} == {
        ("join_x_y_z", "leftState"): 2,
        ("join_x_y_z", "rightState"): 1,
        ("join_x_y", "leftState"): 2,
        ("join_x_y", "rightState"): 2,
        ("aggregate_l", "groupAggregateState"): 2,
        ("aggregate_r", "groupAggregateState"): 1,
    }


def test_a_manifest_that_is_lost_is_named(kept: Plan, tmp_path: Path) -> None:
    partition = tmp_path / "checkpoint" / "sink_joined" / "state" / "join_l_r.1" / "0" / "0"
    newest = max(partition.glob("1.*.manifest"))
    newest.unlink()
    with pytest.raises(RunError, match=r"join_l_r\.1/0/0/1\..*manifest is missing"):
        read_state(kept, str(tmp_path / "checkpoint"), at=NEW)
    for path in partition.iterdir():
        path.unlink()
    with pytest.raises(RunError, match=r"join_l_r\.1/0/0/ is missing"):
        read_state(kept, str(tmp_path / "checkpoint"), at=NEW)


def test_what_spark_has_removed_of_its_logs_is_not_missed(kept: Plan, tmp_path: Path) -> None:
    for query in run_on(kept, tmp_path / "checkpoint").values():
        query.batch({"l": [(5, "e")]}, NEW)
        for log in ("offsets", "commits"):
            (query.folder / log / "0").unlink()
    assert entry(read_state(kept, str(tmp_path / "checkpoint"), at=NEW), "join_l_r", "leftState").amount.rows == 5
    (tmp_path / "checkpoint" / "sink_joined" / "commits" / "1").unlink()
    (tmp_path / "checkpoint" / "sink_counted_l" / "offsets" / "2").unlink()
    with pytest.raises(RunError, match="is damaged: sink_counted_l/offsets/2 is missing"):
        read_state(kept, str(tmp_path / "checkpoint"), at=NEW)


def test_files_that_a_run_sweeps_while_they_are_read_are_looked_for_at_a_newer_batch(
    kept: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "checkpoint"
    query = run_on(kept, checkpoint)["sink_joined"]
    look, goes_on = opening.committed_batches, iter([30, 30])

    def while_a_run_goes_on(*arguments):
        found = look(*arguments)
        for number in range(next(goes_on, 0)):
            query.batch({"l": [(1000 + query.next, f"{number}")]}, NEW + query.next)
        return found

    monkeypatch.setattr(opening, "committed_batches", while_a_run_goes_on)
    found = read_state(kept, str(checkpoint), at=NEW, entries=["join_l_r.leftState"])
    # Twice 30 batches went by with a row each; the third look was undisturbed.
    assert (found.queries[0].batch, found.total.rows) == (61, 4 + 60)
    goes_on = iter([30] * 9)
    with pytest.raises(RunError, match=r"a run is active in .*, and removes files before they are read"):
        read_state(kept, str(checkpoint), at=NEW)


def test_the_command_prints_the_same_for_scripts(kept: Plan, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        command.state_command,
        [
            *(str(tmp_path / "plan.json"), "--checkpoint", str(tmp_path / "checkpoint"), "--json", "--show", "1"),
            *("--at", "2100-01-01T00:00:00Z", "--entry", "join_l_r.state.leftState.ttl"),
            *("--if", "config.table.exec.state.ttl=0s"),
        ],
        catch_exceptions=False,
    )
    document = json.loads(done.stdout)
    assert document["at"] == "2100-01-01T00:00:00.000Z"
    ((state,),) = (operator["state"] for query in document["queries"] for operator in query["operators"])
    assert (state["name"], state["ttl"], state["rows"], state["expired"]) == ("leftState", "1 d", 0, 4)
    assert state["if"] == {"ttl": "0 ms", "rows": 4, "bytes": state["bytes"], "expire-in-1h": 0, "expired": 0}
    (row,) = state["shown"]["left"]
    assert (row["key"]["k"], row["expired"]) in ((2, True), (4, True))


def test_the_command_needs_no_pyspark(kept: Plan, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('pyspark', 'py4j')))\n"  # an import of them fails
        "from hintplan.plans.cli import main\n"
        "sys.argv = ['hintplan', 'state', 'plan.json', '--checkpoint', 'checkpoint', '--json']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["queries"]) == 2


def test_what_cannot_be_meant_is_refused(kept: Plan, tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        done = CliRunner().invoke(command.state_command, [str(tmp_path / "plan.json"), *arguments])
        return done.output if done.exception is None or isinstance(done.exception, SystemExit) else str(done.exception)

    assert "there is no directory nowhere" in refused("--checkpoint", "nowhere")
    here = ("--checkpoint", str(tmp_path / "checkpoint"))
    assert "expected --if PATH=TTL" in refused(*here, "--if", "join_l_r")
    assert "'tables.l.options.path' is no TTL" in refused(*here, "--if", "tables.l.options.path=x")
    assert "bad duration '3'" in refused(*here, "--if", "join_l_r.leftState.ttl=3")
    assert "did you mean" in refused(*here, "--if", "join_l_r.leftStat.ttl=3d")
    assert "write a time such as" in refused(*here, "--at", "yesterday")


def test_an_unknown_state_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(PlanError, match=r"there is no state 'join_x\.leftStat'") as error:
        choice({"join_x": (Entry(name="leftState"),)}, ("aggregate_y",), ["join_x.leftStat"])
    assert "did you mean 'join_x.leftState'" in str(error.value)
