"""The evidence file: the observations of all states of a plan, as counters, for reviews without the checkpoint.

``hintplan state --evidence FILE`` writes it. It contains counts, times and names of operators, and no rows. The file
comes from another machine, so it is read strictly: each error names the line and column of the value.

    {
      "evidence": 1,
      "plan": "paid",
      "at": "2026-03-13T10:00:00.000Z",
      "states": {
        "join_o_p.leftState": { "ttl": "1 d", "rows": 3, "bytes": 192, "row-ages": [[1000, 3]], "periods": [] }
      }
    }

A histogram lists the buckets that are not empty: the end of the bucket in ms, one of :data:`~.ages.ENDS` or null for
the last bucket, and the count.

>>> text = dumps(Evidence(plan="paid", at=0, states=()))
>>> loads(text).plan
'paid'
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from hintplan.plans.declarations.durations import DurationError, format_duration, parse_duration
from hintplan.plans.evidence.ages import ENDS, NONE, Counts, bucket_of, counts, pairs
from hintplan.plans.evidence.period import Period
from hintplan.plans.format.printer import print_document
from hintplan.plans.frozen import frozen
from hintplan.plans.text.counts import count
from hintplan.plans.text.jsontext import JsonText, Path
from hintplan.plans.text.names import did_you_mean

FORMAT = 1
MOST_PERIODS = 2

_ROOT = ("evidence", "plan", "at", "states")
_STATE = ("ttl", "rows", "bytes", "row-ages", "periods", "lateness")
_PERIOD = ("since", "until", "ttl", "hits", "misses", "written", "expired", "sampled")
_OPTIONAL = ("lateness",)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_STATE_PATH = re.compile(r"[^.]+\.[^.]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITE_IT = "write the file again: hintplan state PLAN --checkpoint DIR --evidence FILE"


@frozen
class StateEvidence:
    """The observations of the state ``name`` of an ``operator``.

    ``ttl`` (ms) is the TTL in force; 0 never expires rows, and None is a state that the watermark empties. ``rows`` and
    ``bytes`` are the visible rows and their share of the stored bytes, and ``row_ages`` counts these rows by the time
    since their last write. ``periods`` are the time before the current period and the current period, at most
    :data:`MOST_PERIODS`. ``lateness`` counts late rows by the time by which the watermark had passed them; None if the
    run did not record it.
    """

    operator: str
    name: str
    ttl: int | None
    rows: int = 0
    bytes: int = 0
    row_ages: Counts = NONE
    periods: tuple[Period, ...] = ()
    lateness: Counts | None = None

    @property
    def path(self) -> str:
        """The path of the state in the plan, such as ``join_o_p.leftState``."""
        return f"{self.operator}.{self.name}"


@frozen
class Evidence:
    """The observations of all states of ``plan`` (its name) until ``at`` (ms since 1970)."""

    plan: str
    at: int
    states: tuple[StateEvidence, ...]

    def state(self, path: str) -> StateEvidence | None:
        """Return the observations of the state at ``path``, such as ``join_o_p.leftState``."""
        return next((state for state in self.states if state.path == path), None)


def dumps(evidence: Evidence) -> bytes:
    """Return the bytes of the file; they are the same for equal evidence."""
    return print_document(
        {
            "evidence": FORMAT,
            "plan": evidence.plan,
            "at": utc(evidence.at),
            "states": {state.path: _state_json(state) for state in evidence.states},
        }
    )


def loads(data: bytes | str, *, file: str | None = None) -> Evidence:
    """Return the evidence in the text of a file; raise PlanError, with the position, if it is anything else."""
    return _Reader(JsonText(data, file=file)).evidence()


def utc(moment: int) -> str:
    """Return ms since 1970 as text.

    >>> utc(1_772_359_200_000)
    '2026-03-01T10:00:00.000Z'
    """
    text = (_EPOCH + timedelta(milliseconds=moment)).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _state_json(state: StateEvidence) -> dict[str, Any]:
    return {
        "ttl": None if state.ttl is None else format_duration(state.ttl),
        "rows": state.rows,
        "bytes": state.bytes,
        "row-ages": pairs(state.row_ages),
        "periods": [period_json(period) for period in state.periods],
        **({} if state.lateness is None else {"lateness": pairs(state.lateness)}),
    }


def period_json(period: Period) -> dict[str, Any]:
    """Return a period as the file has it."""
    return {
        "since": utc(period.since),
        "until": utc(period.until),
        "ttl": format_duration(period.ttl),
        "hits": pairs(period.hits),
        "misses": pairs(period.misses),
        "written": period.written,
        "expired": period.expired,
        "sampled": period.sampled,
    }


class _Reader:
    """Reads the values of a text, and raises PlanError with the position of a wrong one."""

    def __init__(self, text: JsonText) -> None:
        self._text = text

    def evidence(self) -> Evidence:
        root = self._object((), self._text.value)
        if root.get("evidence") != FORMAT or isinstance(root["evidence"], bool):
            if "evidence" not in root:
                self._refuse((), "this is no evidence file: it has no 'evidence'", _WRITE_IT)
            found = root["evidence"]
            message = f"expected the format {FORMAT} of evidence files, found {found!r}"
            self._refuse(("evidence",), message, "use the version of hintplan that wrote the file")
        self._keys((), root, _ROOT)
        states = self._object(("states",), root["states"])
        return Evidence(
            plan=self._string(("plan",), root["plan"]),
            at=self._time(("at",), root["at"]),
            states=tuple(self._state(("states", path), path, state) for path, state in states.items()),
        )

    def _state(self, at: Path, path: str, value: object) -> StateEvidence:
        if not _STATE_PATH.fullmatch(path):
            self._refuse(at, f"'{path}' is no path of a state", "a path is such as join_o_p.leftState")
        found = self._object(at, value)
        self._keys(at, found, _STATE, optional=_OPTIONAL)
        operator, _, name = path.partition(".")
        rows, ages = self._number((*at, "rows"), found["rows"]), self._histogram((*at, "row-ages"), found["row-ages"])
        if sum(ages) != rows:
            self._refuse((*at, "row-ages"), f"expected the ages of {rows:,} rows, found {sum(ages):,}", _WRITE_IT)
        periods = self._list((*at, "periods"), found["periods"])
        if len(periods) > MOST_PERIODS:
            message = f"expected at most {MOST_PERIODS} periods, found {len(periods)}"
            self._refuse((*at, "periods"), message, _WRITE_IT)
        return StateEvidence(
            operator=operator,
            name=name,
            ttl=None if found["ttl"] is None else self._duration((*at, "ttl"), found["ttl"]),
            rows=rows,
            bytes=self._number((*at, "bytes"), found["bytes"]),
            row_ages=ages,
            periods=tuple(self._period((*at, "periods", i), period) for i, period in enumerate(periods)),
            lateness=self._histogram((*at, "lateness"), found["lateness"]) if "lateness" in found else None,
        )

    def _period(self, at: Path, value: object) -> Period:
        found = self._object(at, value)
        self._keys(at, found, _PERIOD)
        since, until = self._time((*at, "since"), found["since"]), self._time((*at, "until"), found["until"])
        if until < since:
            self._refuse((*at, "until"), "the period ends before it begins", _WRITE_IT)
        if not isinstance(found["sampled"], bool):
            self._refuse((*at, "sampled"), f"expected true or false, found {_shown(found['sampled'])}")
        return Period(
            since=since,
            until=until,
            ttl=self._duration((*at, "ttl"), found["ttl"]),
            hits=self._histogram((*at, "hits"), found["hits"]),
            misses=self._histogram((*at, "misses"), found["misses"]),
            written=self._number((*at, "written"), found["written"]),
            expired=self._number((*at, "expired"), found["expired"]),
            sampled=found["sampled"],
        )

    def _histogram(self, at: Path, value: object) -> Counts:
        by_bucket: dict[int, int] = {}
        for index, pair in enumerate(self._list(at, value)):
            here = (*at, index)
            if not isinstance(pair, list) or len(pair) != 2:
                self._refuse(here, f"expected the end of a bucket and a count, found {_shown(pair)}")
            end, bucket = pair[0], len(ENDS)
            if end is not None:
                bucket = bucket_of(self._number((*here, 0), end)) - 1
                if bucket < 0 or ENDS[bucket] != end:
                    near = ENDS[max(bucket, 0)]
                    self._refuse((*here, 0), f"no bucket ends at {end} ms", f"the nearest bucket ends at {near}")
            if by_bucket and bucket <= max(by_bucket):
                self._refuse(here, "the buckets must be in order, and each at most once")
            by_bucket[bucket] = self._number((*here, 1), pair[1])
        return counts(by_bucket)

    def _keys(
        self, at: Path, found: Mapping[str, object], expected: Collection[str], *, optional: Collection[str] = ()
    ) -> None:
        for key in found:
            if key not in expected:
                self._refuse((*at, key), f"unknown key '{key}'", did_you_mean(key, tuple(expected)))
        for key in expected:
            if key not in found and key not in optional:
                self._refuse(at, f"the key '{key}' is missing", _WRITE_IT)

    def _object(self, at: Path, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._refuse(at, f"expected an object, found {_shown(value)}")
        return value

    def _list(self, at: Path, value: object) -> list[Any]:
        if not isinstance(value, list):
            self._refuse(at, f"expected a list, found {_shown(value)}")
        return value

    def _string(self, at: Path, value: object) -> str:
        if not isinstance(value, str):
            self._refuse(at, f"expected a text, found {_shown(value)}")
        return value

    def _number(self, at: Path, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self._refuse(at, f"expected a whole number of at least 0, found {_shown(value)}")
        return value

    def _time(self, at: Path, value: object) -> int:
        text = self._string(at, value)
        try:
            if not _TIME.fullmatch(text):
                raise ValueError
            return round((datetime.fromisoformat(text) - _EPOCH) / timedelta(milliseconds=1))
        except ValueError:
            self._refuse(at, f"expected a time, found {_shown(text)}", "write it as 2026-03-01T10:00:00.000Z")

    def _duration(self, at: Path, value: object) -> int:
        text = self._string(at, value)
        try:
            return parse_duration(text, require_unit=True)
        except DurationError as error:
            self._refuse(at, f"bad duration '{text[:40]}': {error.reason}", error.hint)

    def _refuse(self, at: Path, message: str, hint: str | None = None) -> NoReturn:
        start = self._text.spans({at})[at][1]
        raise self._text.error(start, message, hint=hint, path=".".join(map(str, at)) or None)


def _shown(value: object) -> str:
    """Return the kind of a value, or a short value itself."""
    if isinstance(value, list):
        return f"a list of {count(len(value), 'value')}"
    kinds = {dict: "an object", list: "a list", type(None): "null", bool: str(value).lower()}
    return kinds.get(type(value)) or repr(value)[:40]
