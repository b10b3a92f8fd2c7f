"""When a run is started again: what Flink 2.3 documents of its strategies, counted by hand."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from hintplan import compile_sql
from hintplan.plans.declarations.durations import parse_duration
from hintplan.plans.errors import SqlError
from hintplan.plans.model.config import KEYS
from hintplan.plans.settings.restart_strategy import RESTART_SETTINGS, TYPE
from hintplan.runtime.supervision.restarts import NEVER, Restarts, Strategy, configured

KEYS_OF_FLINK = json.loads((Path(__file__).parents[2] / "flink" / "keys.json").read_text(encoding="utf-8"))


def delays(strategy: Strategy, *at: float) -> list[float | None]:
    restarts = Restarts(strategy, chance=lambda: 0.5)  # neither longer nor shorter
    return [restarts.delay(now) for now in at]


def test_by_default_there_is_no_restart() -> None:
    assert delays(NEVER, 0.0) == [None]


def test_a_pause_grows_to_the_longest() -> None:
    grows = Strategy(attempts=None, first=1.0, factor=2.0, longest=10.0)
    assert delays(grows, *range(0, 60, 10)) == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_there_are_so_many_attempts_in_a_row() -> None:
    assert delays(Strategy(attempts=2, factor=1.0), 0.0, 5.0, 10.0, 15.0) == [1.0, 1.0, None, None]


def test_a_run_that_went_well_for_some_time_begins_anew() -> None:
    strategy = Strategy(attempts=2, factor=2.0, reset=100.0)
    # The second failure comes 100 s after the run went on, which was 1 s after the first.
    assert delays(strategy, 0.0, 101.0, 202.0, 303.0) == [1.0, 1.0, 1.0, 1.0]
    assert delays(strategy, 0.0, 100.9, 202.8) == [1.0, 2.0, None]


def test_pauses_of_many_jobs_differ_by_chance_and_stay_within_bounds() -> None:
    strategy = Strategy(attempts=None, first=1.0, factor=1.5, jitter=0.1, longest=60.0)
    chance = random.Random(7).random
    found = [[r.delay(now) for now in range(15)] for r in (Restarts(strategy, chance) for _ in range(50))]
    for number in range(15):
        middle = min(1.5**number, 60.0)
        pauses = [each[number] for each in found]
        assert all(max(1.0, 0.9 * middle) <= pause <= min(60.0, 1.1 * middle) for pause in pauses if pause is not None)
        assert len(set(pauses)) > 20


def test_a_failure_rate_takes_so_many_failures_in_an_interval() -> None:
    rate = Strategy(
        attempts=None, first=5.0, longest=5.0, factor=1.0, jitter=0.0, reset=math.inf, failures=2, within=60.0
    )
    # The third within a minute of the first is one too many; one minute and a moment later it is not.
    assert delays(rate, 0.0, 10.0, 60.0) == [5.0, 5.0, None]
    assert delays(rate, 0.0, 10.0, 60.1, 70.1) == [5.0, 5.0, 5.0, 5.0]
    assert delays(rate, 0.0, 10.0, 60.1, 70.0) == [5.0, 5.0, 5.0, None]


def strategy_of(settings: dict[str, str]) -> Strategy:
    sets = "".join(f"SET '{key}' = '{value}';" for key, value in settings.items())
    script = (
        "CREATE TABLE o (k BIGINT) WITH ('connector' = 'filesystem', 'path' = 'o', 'format' = 'json');"
        "CREATE TABLE r (k BIGINT) WITH ('connector' = 'print');INSERT INTO r SELECT k FROM o;"
    )
    return configured(compile_sql(sets + script, name="job").config)


def test_what_a_script_says_becomes_the_strategy_of_the_plan() -> None:
    assert strategy_of({}) == NEVER
    for name in ("none", "off", "disable"):
        assert strategy_of({TYPE: name}) == NEVER
    constant = {"factor": 1.0, "jitter": 0.0, "reset": math.inf}
    for key, name in ((TYPE, "fixed-delay"), (TYPE, "FixedDelay"), ("restart-strategy", "fixeddelay")):
        assert strategy_of({key: name}) == Strategy(attempts=1, first=1.0, longest=1.0, **constant)
    fixed = {"restart-strategy.fixed-delay.attempts": "3", "restart-strategy.fixed-delay.delay": "10 s"}
    assert strategy_of({TYPE: "fixed-delay", **fixed}) == Strategy(attempts=3, first=10.0, longest=10.0, **constant)
    assert strategy_of(fixed) == NEVER
    assert strategy_of({TYPE: "exponential-delay"}) == Strategy(attempts=2**31 - 1)
    grows = {"initial-backoff": "2 s", "max-backoff": "3 min", "backoff-multiplier": "2", "jitter-factor": "0"}
    grows |= {"reset-backoff-threshold": "10 min", "attempts-before-reset-backoff": "7"}
    found = strategy_of(
        {TYPE: "exponentialdelay", **{f"restart-strategy.exponential-delay.{k}": v for k, v in grows.items()}}
    )
    assert found == Strategy(attempts=7, first=2.0, longest=180.0, factor=2.0, jitter=0.0, reset=600.0)
    rate = {"max-failures-per-interval": "4", "failure-rate-interval": "5 min", "delay": "0 s"}
    rate = {f"restart-strategy.failure-rate.{name}": value for name, value in rate.items()}
    expected = Strategy(attempts=None, first=0.0, longest=0.0, failures=4, within=300.0, **constant)
    assert strategy_of({TYPE: "failure-rate", **rate}) == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("type", "sometimes"),
        ("fixed-delay.attempts", "0"),
        ("fixed-delay.delay", "soon"),
        ("failure-rate.failure-rate-interval", "0 s"),
        ("exponential-delay.backoff-multiplier", "0.5"),
        ("exponential-delay.jitter-factor", "1.5"),
        ("exponential-delay.jitter-factor", "nan"),
        ("exponential-delay.initial-backoff", "0 ms"),
    ],
)
def test_a_value_that_is_none_is_refused_where_it_stands(key: str, value: str) -> None:
    with pytest.raises(SqlError) as caught:
        strategy_of({f"restart-strategy.{key}": value})
    assert caught.value.diagnostics[0].line == 1


def test_keys_and_defaults_are_those_of_flink() -> None:
    flink = {key: facts["default"] for key, facts in KEYS_OF_FLINK.items() if key.startswith("restart-strategy.")}
    assert {setting.name for setting in RESTART_SETTINGS} == set(flink)
    assert all(setting.name in KEYS for setting in RESTART_SETTINGS)
    iso = {"PT1S": "1 s", "PT1M": "1 min", "PT1H": "1 h"}
    for setting in RESTART_SETTINGS:
        default = iso.get(str(flink[setting.name]), flink[setting.name])
        assert (None if setting.default is None else str(setting.default)) == default
        if setting.kind == "duration":
            assert parse_duration(str(setting.default)) > 0
