"""Which source continues as which: by what is read, and its own id where there are several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hintplan.plans.compare.carryover import carried, in_order, with_old_timers
from hintplan.plans.compare.query_record import QueryRecord
from hintplan.plans.compare.sources import (
    ENDING,
    TIMER,
    SourceRecord,
    continued_sources,
    order_under,
    waking_name,
)


def source(text: str) -> SourceRecord:
    operator, table, lineage = text.split()
    return SourceRecord(operator=operator, table=table, lineage=lineage)


@pytest.mark.parametrize(
    ("old", "new", "origins", "unclear"),
    [
        pytest.param(["a t 1"], ["a t 1"], {"a": "a"}, (), id="the same"),
        pytest.param(["a t 1"], ["b t 1"], {"b": "a"}, (), id="another id"),
        pytest.param(["a t 1"], ["a t 2"], {"a": "a"}, (), id="other columns"),
        pytest.param(["a t 1"], ["b t 2"], {"b": "a"}, (), id="other columns and another id"),
        pytest.param(["a t 1"], ["a u 1"], {}, (), id="another table"),
        pytest.param(["a t 1"], [], {}, (), id="one less"),
        pytest.param([], ["a t 1"], {}, (), id="one more"),
        pytest.param(["a t 1", "b t 2"], ["b t 1", "a t 2"], {"b": "a", "a": "b"}, (), id="ids that changed places"),
        pytest.param(["a t 1", "b t 2"], ["a t 3", "b t 4"], {"a": "a", "b": "b"}, (), id="other columns of both"),
        pytest.param(["a t 1"], ["a t 1", "b t 2"], {"a": "a"}, (), id="one more of the same table"),
        pytest.param(["a t 1", "b t 2"], ["x t 2"], {"x": "b"}, (), id="the other one less"),
        pytest.param(["a t 1", "b t 2"], ["a t 3"], {}, ("t",), id="one of two, which may be either"),
        pytest.param(["a t 1"], ["a t 2", "b t 3"], {}, ("t",), id="two for one, which may be either"),
        pytest.param(["a t 1", "b t 1"], ["a t 1"], {"a": "a"}, (), id="one of two alike, by its id"),
        pytest.param(["a t 1", "b t 1"], ["c t 1"], {}, ("t",), id="one of two alike, with another id"),
    ],
)
def test_the_origin_of_a_source(
    old: list[str], new: list[str], origins: dict[str, str], unclear: tuple[str, ...]
) -> None:
    found = continued_sources(tuple(map(source, old)), tuple(map(source, new)))
    assert (found.origins, found.unclear) == (origins, unclear)


def test_sources_that_end_event_time_continue_as_any_other_of_them() -> None:
    def ending(*operators: str) -> tuple[SourceRecord, ...]:
        pairs = map(str.split, operators)
        return tuple(SourceRecord(operator=name, table=ENDING, lineage=lineage) for name, lineage in pairs)

    assert continued_sources(ending("a 1", "b 2"), ending("c 3")).origins == {"c": "a"}
    found = continued_sources(ending("a 1", "b 2"), ending("b 3", "c 1", "d 4"))
    assert (found.origins, found.unclear) == ({"c": "a", "b": "b"}, ())


def test_an_order_is_told_in_the_ids_of_the_plan_before() -> None:
    assert order_under((("x", 0), ("new", 1), ("x", 0)), {"x": "a"}) == (("a", 0), (None, 1), ("a", 0))


@pytest.mark.parametrize(
    ("old", "begun", "now", "generation"),
    [
        ((("a", 0), ("b", 1)), True, (("x", 0), ("y", 1)), 3),
        ((("a", 0), ("b", 1)), True, (("y", 0), ("x", 1)), 4),
        ((("a", 0), ("b", 1)), True, (("x", 0), ("x", 0), ("y", 1)), 4),
        ((("a", 0), ("b", 1)), True, (("x", 0), ("new", 1)), 4),
        ((("a", 0), ("b", 1)), False, (("y", 0), ("x", 1)), 3),
        ((), True, (("x", 0), ("y", 1)), 3),
    ],
    ids=["the same", "the other way round", "twice", "another", "not begun", "not known, after Spark Connect"],
)
def test_another_order_of_sources_is_another_generation(
    old: tuple[tuple[str, int], ...], begun: bool, now: tuple[tuple[str, int], ...], generation: int
) -> None:
    def record(*sources: str, order: tuple[tuple[str, int], ...] = ()) -> QueryRecord:
        found = tuple(map(source, sources))
        return QueryRecord(id="q", sinks=("q",), sources=found, states=(), order=order, generation=3, begun=begun)

    found = in_order(record("a t 1", "b u 2", order=old), record("x t 1", "y u 2"), now)
    assert (found.order, found.generation) == (now, generation)


def test_the_readers_of_sparks_sources_stand_in_the_order_of_their_numbers() -> None:
    one = SourceRecord(operator="scan_a", table="a (filesystem)", lineage="1")
    other = SourceRecord(operator="scan_b", table="b (filesystem)", lineage="2")
    record = QueryRecord(id="q", sinks=("q",), sources=(one, other), states=())
    assert record.readers == ()  # as on Spark Connect
    assert replace(record, sources=(other,)).readers == ("scan_b",)
    order = (("scan_b", 0), ("scan_a", 1), ("scan_c", 0))  # scan_c reads what scan_b reads
    assert replace(record, order=order).readers == ("scan_b", "scan_a")


def timed_record(*, timer: bool) -> QueryRecord:
    """A query with a window of event time; ``timer`` if its table may become idle."""
    sources = [
        SourceRecord(operator="scan_a", table="a (filesystem)", lineage="1"),
        SourceRecord(operator="window_a", table=ENDING, lineage="2"),
        *([SourceRecord(operator=waking_name("window_a"), table=TIMER, lineage="2")] if timer else []),
    ]
    return QueryRecord(id="q", sinks=("q",), sources=tuple(sources), states=(), begun=True)


def test_an_idle_timeout_begins_a_generation_in_a_checkpoint_that_has_no_timer() -> None:
    old = replace(timed_record(timer=False), order=(("window_a", 0), ("scan_a", 1)), generation=2)
    order = (("scan_a", 0), ("window_a", 1), ("window_a/timer", 2))
    found = in_order(old, timed_record(timer=True), order)
    assert (found.generation, found.order) == (3, order)
    (verdict,) = carried([old], [timed_record(timer=True)])
    assert (verdict.outcome, verdict.sources) == ("continues", ())
    (back,) = carried([replace(found, order=order)], [timed_record(timer=False)])
    assert (back.outcome, back.sources) == ("continues", ())


@pytest.mark.parametrize("timer", [True, False])
def test_on_spark_connect_a_query_keeps_the_timers_that_it_had(timer: bool) -> None:
    old = timed_record(timer=timer)
    (record,) = with_old_timers([old], [timed_record(timer=not timer)])
    assert record.sources == old.sources
    assert record.timers == (("window_a",) if timer else ())
    (verdict,) = carried([old], [record], renumber=False)
    assert verdict.outcome == "continues"
    assert with_old_timers([], [record]) == (record,)


def test_timers_continue_each_other_because_each_change_of_an_offset_is_a_batch() -> None:
    def timers(*lineages: str) -> tuple[SourceRecord, ...]:
        return tuple(SourceRecord(operator=f"o{each}/timer", table=TIMER, lineage=each) for each in lineages)

    found = continued_sources(timers("1", "2"), timers("3", "4", "5"))
    assert found.unclear == ()
    assert set(found.origins.values()) == {"o1/timer", "o2/timer"}
