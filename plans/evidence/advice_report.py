"""The report of ``hintplan advise``: as text, as Markdown, and as JSON values."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hintplan.plans.analysis.watermarks import sending_tables
from hintplan.plans.declarations.durations import format_duration, parse_duration
from hintplan.plans.evidence.advice import Advice, Option, advice_on
from hintplan.plans.evidence.ages import ENDS, NONE, Counts, below
from hintplan.plans.evidence.document import Evidence, utc
from hintplan.plans.evidence.kept import percent, share_text
from hintplan.plans.frozen import frozen
from hintplan.plans.model.plan import Plan
from hintplan.plans.operators import WatermarkAssigner
from hintplan.plans.settings.layers import set_by
from hintplan.plans.settings.state import UNTIL_WATERMARK, StateEntry, readable_ttl
from hintplan.plans.text.aligned import aligned_rows
from hintplan.plans.text.counts import age_text, count_of, human_bytes
from hintplan.plans.text.escapes import clean
from hintplan.plans.text.markdown import code, fence

_HEAD = ("TTL", "matches kept", "rows", "bytes")
_SHARE_NAMES = {0.5: "half", 1.0: "all"}


@frozen
class StateAdvice:
    """The ``advice`` on a state ``entry`` of ``operator``; None if the evidence does not have the state.

    ``partner`` is the input whose rows look for the rows of this state, of the two inputs of a join. ``delays`` has the
    watermark delays that decide which rows are late, by the path of the setting. ``until`` is how long a state without
    a TTL keeps a row.
    """

    operator: str
    entry: StateEntry
    partner: str | None = None
    advice: Advice | None = None
    delays: tuple[tuple[str, str], ...] = ()
    until: str = UNTIL_WATERMARK

    @property
    def path(self) -> str:
        """The path of the state, as evidence files write it."""
        return f"{self.operator}.{self.entry.name}"

    @property
    def ttl(self) -> int | None:
        """The TTL in the plan in ms; 0 never expires rows, and None is a state that the watermark empties."""
        return None if self.entry.ttl is None else parse_duration(self.entry.ttl)

    @property
    def setting(self) -> str:
        """The path of the TTL, as ``hintplan set`` takes it."""
        return f"{self.operator}.state.{self.entry.name}.ttl"


def advise(plan: Plan, evidence: Evidence, keep: float) -> tuple[StateAdvice, ...]:
    """Return the advice on each state of ``plan``, in the order of the plan."""
    return tuple(
        StateAdvice(
            operator=operator.id,
            entry=entry,
            partner=next((other.input for other in operator.state if other.input != entry.input), None),
            advice=None if (found := evidence.state(f"{operator.id}.{entry.name}")) is None else advice_on(found, keep),
            delays=_delays(plan, operator.id) if entry.ttl is None else (),
            until=operator.kept_until(entry.name),
        )
        for operator in plan.operators
        for entry in operator.state
    )


def _delays(plan: Plan, operator: str) -> tuple[tuple[str, str], ...]:
    assigners = (plan.by_id[name] for name in sending_tables(plan, operator))
    return tuple((f"{one.id}.watermark.delay", one.delay) for one in assigners if isinstance(one, WatermarkAssigner))


def advice_text(advices: Sequence[StateAdvice], plan_file: str) -> str:
    """Return a paragraph for each state; ``plan_file`` is the name of the plan in commands."""
    if not advices:
        return "the plan keeps no state"
    return "\n\n".join("\n".join(map(clean, _paragraph(one, plan_file))) for one in advices)


def advice_markdown(advices: Sequence[StateAdvice], plan_file: str) -> str:
    """Return a section for each state, with its table, and the command that sets the proposed TTL."""
    if not advices:
        return "the plan keeps no state"
    parts = []
    for one in advices:
        parts += [f"### {code(one.path)}", facts_text(one)]
        if one.advice is None:
            continue
        parts += [text for text in [_waiting(one, one.advice, code)] if text]
        rows = [_HEAD, *(_cells(one.advice, option) for option in one.advice.options)]
        if one.advice.options:
            lines = [f"| {' | '.join((*row, '', '')[:5])} |" for row in rows]
            parts.append("\n".join([lines[0], "|---|---:|---:|---:|---|", *lines[1:]]))
        parts += [f"- {note}" for note in _notes(one, one.advice)]
        parts += [fence(command, "console") for command in _command(one, plan_file)]
    return "\n\n".join(parts)


def advice_json(advices: Sequence[StateAdvice], evidence: Evidence, keep: float) -> dict[str, Any]:
    """Return the advice as JSON values, for scripts; times that people set are in ms."""
    return {
        "plan": evidence.plan,
        "at": utc(evidence.at),
        "keep": keep,
        "states": [
            {
                "operator": one.operator,
                "state": one.entry.name,
                "input": one.entry.input,
                "partner": one.partner,
                "setting": one.setting if one.entry.ttl is not None else None,
                "ttl": one.entry.ttl,
                "advice": None if one.advice is None else _json(one, one.advice),
            }
            for one in advices
        ],
    }


def _json(one: StateAdvice, advice: Advice) -> dict[str, Any]:
    seen, lateness = advice.seen, advice.state.lateness
    return {
        "observed-ttl": None if advice.state.ttl is None else format_duration(advice.state.ttl),
        "rows": advice.state.rows,
        "bytes": advice.state.bytes,
        "observed": seen
        and {
            "since": utc(seen.since),
            "until": utc(seen.until),
            "hits": sum(seen.hits),
            "misses": sum(seen.misses),
            "written": seen.written,
            "expired": seen.expired,
            "sampled": seen.sampled,
        },
        "matches-within": [{"share": share, "ms": age} for share, age in advice.waiting],
        "ttls": [
            {
                "ttl": format_duration(option.ttl),
                "kept-least": option.share and option.share.least,
                "kept-most": option.share and option.share.most,
                "more-matches-at-least": option.more,
                "rows": option.size.rows,
                "bytes": option.size.bytes,
                "size-is-least": option.size.at_least,
            }
            for option in advice.options
        ],
        "proposed": None if advice.proposed is None else format_duration(advice.proposed),
        "proposed-is-least": advice.at_least,
        "late-rows": None if lateness is None else sum(lateness),
        "kept-by-longer-delays": [{"ms": ms, "late-rows": kept} for ms, kept in _longer_delays(lateness or NONE)],
        "notes": [*_notes(one, advice)],
    }


def _paragraph(one: StateAdvice, plan_file: str) -> Iterator[str]:
    yield f"{one.path}   {one.entry.input}   {facts_text(one)}"
    advice = one.advice
    if advice is None:
        return
    if text := _waiting(one, advice):
        yield f"  {text}"
    if advice.options:
        rows = [_HEAD, *(_cells(advice, option) for option in advice.options)]
        yield from (f"  {line}" for line in aligned_rows(rows, right={1, 2, 3}))
    yield from (f"  {note}" for note in _notes(one, advice))
    yield from (f"  {command}" for command in _command(one, plan_file))


def facts_text(one: StateAdvice) -> str:
    """Return the TTL, the size and the observed time of a state."""
    if one.entry.settings is None:
        lifetime = f"rows stay {one.until}"
    else:
        lifetime = f"TTL {readable_ttl(one.entry.ttl or '')} ({set_by(one.entry.settings, 'ttl')})"
    if one.advice is None:
        return f"{lifetime} · not in the evidence"
    state, seen = one.advice.state, one.advice.seen
    if state.ttl is not None and one.ttl != state.ttl:
        lifetime += f", in the run {readable_ttl(format_duration(state.ttl))}"
    parts = [lifetime, human_bytes(state.bytes), count_of(state.rows, "row")]
    if state.ttl is None:
        late = [] if state.lateness is None else [count_of(sum(state.lateness), "late row")]
        return " · ".join([*parts, *late])
    if seen is None:
        return " · ".join([*parts, "nothing observed yet"])
    return " · ".join([*parts, f"observed {age_text(seen.until - seen.since)}, {count_of(sum(seen.hits), 'hit')}"])


def _waiting(one: StateAdvice, advice: Advice, mark: Callable[[str], str] = str) -> str:
    """Return by which time which share of matches had come, and for a join, which side waits for which."""
    if not advice.waiting:
        return ""
    subject, verb = "the hits", "come"
    if one.partner is not None:
        subject, verb = f"the rows of {mark(one.partner)}", f"find their row of {mark(one.entry.input)}"
    texts: list[str] = []
    for share, age in advice.waiting:
        name = _SHARE_NAMES.get(share, percent(share))
        limit = f"within {format_duration(age)}" if age is not None else f"after up to {_LONGEST} or more"
        texts.append(f"{name} {limit}" if texts else f"{name} of {subject} {verb} {limit}")
    return ", ".join(texts)


_LONGEST = format_duration(ENDS[-1])


def _cells(advice: Advice, option: Option) -> tuple[str, ...]:
    """Return the row of the table for an option: its TTL, matches, rows, bytes and perhaps a remark."""
    size, least = option.size, "at least " * option.size.at_least
    remark = _remark(advice, option)
    return (
        readable_ttl(format_duration(option.ttl)),
        _kept(advice, option),
        f"{least}{size.rows:,}",
        f"{least}{human_bytes(size.bytes)}",
        *([remark] if remark else []),
    )


def _kept(advice: Advice, option: Option) -> str:
    if option.share is None:
        return f"at least {option.more:,} more" if option.more else "not known"
    # Matches that came much later than the TTL in force were not observable, and lower the share.
    missed = advice.seen is not None and sum(advice.seen.misses) > 0
    limited = missed or (option.ttl == advice.state.ttl and option.ttl != 0)
    return f"at most {percent(option.share.most)}" if limited else share_text(option.share)


def _remark(advice: Advice, option: Option) -> str:
    parts = []
    if option.ttl == advice.state.ttl:
        parts.append("now")
        if advice.seen is not None and (missed := sum(advice.seen.misses)):
            parts.append(f"{count_of(missed, 'match', 'matches')} missed")
    if option.ttl == advice.proposed:
        parts.append(f"<- {'at least this for' if advice.at_least else 'keeps'} {percent(advice.keep)}")
    return "; ".join(parts)


def _notes(one: StateAdvice, advice: Advice) -> Iterator[str]:
    """Yield everything that the evidence cannot show, or shows only in part."""
    state, seen = advice.state, advice.seen
    if state.ttl is None:
        yield from _late(state.lateness, one.delays)
        return
    if seen is None:
        yield "no advice: nothing was observed yet"
        return
    if not advice.matches:
        yield f"no advice: no row was used after the batch that wrote it, of {count_of(seen.written, 'row')} written"
    elif not advice.has_enough:
        yield (
            f"no advice: {count_of(advice.matches, 'match', 'matches')} are too few to find what keeps "
            f"{percent(advice.keep)}, which takes {advice.needed:,}"
        )
    elif advice.proposed is None:
        yield f"no advice: {percent(advice.keep)} of the matches take a TTL of more than {_LONGEST}"
    missed = sum(seen.misses)
    if missed:
        noun = count_of(missed, "match", "matches")
        yield (
            f"at least {noun} came too late: they are counted only while the expired row is still stored, so times "
            f"and TTLs are lower bounds"
        )
    lengths = {period.ttl for period in state.periods} | {state.ttl}
    if len(lengths) > 1:
        shortest = format_duration(min(length for length in lengths if length))
        yield f"the TTL was {shortest} for a part of the time: longer TTLs are judged by the rest of it"
    span = seen.until - seen.since
    if state.ttl == 0 or state.ttl > span:
        yield f"observed for {age_text(span)} only: matches that come later than that were not seen yet"
    if seen.sampled:
        yield "hits were sampled: counts and shares are estimates"


def _late(lateness: Counts | None, delays: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the share of the late rows that a longer watermark delay would have kept."""
    if lateness is None:
        yield "no advice on the watermark delay: the lateness of rows was not recorded"
        return
    total = sum(lateness)
    if not total:
        yield "no row was late"
        return
    for end, kept in _longer_delays(lateness):
        yield f"a watermark delay longer by {format_duration(end)} would have kept {kept:,} of {total:,} late rows"
    if delays:
        yield f"the delay now: {', '.join(f'{path} = {delay}' for path, delay in delays)}; all results wait as long"
    yield "late rows were counted since the state began, also under other delays"


def _longer_delays(lateness: Counts) -> Iterator[tuple[int, int]]:
    """Yield by how many ms a delay must be longer to keep half, 90 %, 99 % and all late rows, and how many it keeps."""
    total, last = sum(lateness), 0
    for share in (0.5, 0.9, 0.99, 1.0) if total else ():
        end = next((end for end in ENDS if below(lateness, end) >= share * total), None)
        if end is not None and end != last:
            yield end, below(lateness, end)
            last = end


def _command(one: StateAdvice, plan_file: str) -> Iterator[str]:
    """Yield the command that sets the proposed TTL, if that is a change.

    A lower bound is no reason to shorten a TTL.
    """
    advice = one.advice
    if advice is None or advice.proposed in (None, one.ttl) or advice.seen is None:
        return
    if advice.at_least and not 0 < (one.ttl or 0) < (advice.proposed or 0):
        return
    length = age_text(advice.seen.until - advice.seen.since)
    option = advice.option(advice.proposed)
    if option is None or option.share is None:
        reason = f"{percent(advice.keep)} of matches in {length} need at least this"
    else:
        reason = f"{percent(option.share.least)} of matches in {length}"
    setting = f"{one.setting}={shlex.quote(format_duration(advice.proposed))}"
    yield f"hintplan set {shlex.quote(plan_file)} {setting} --reason {shlex.quote(reason)}"
