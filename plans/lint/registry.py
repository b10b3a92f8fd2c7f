"""All rules of the linter by id, each with its name, severity, description, reason and advice.

    HP0xx  the linter itself     HP1xx  no effect     HP2xx  state     HP3xx  waiting and lookups     HP4xx  event time

An id never changes its meaning, and the id of a removed rule is never reused. Each rule has a section in
``docs/lint.md``.

>>> rule_called("state-never-expires").id
'HP201'
"""

from __future__ import annotations

from collections.abc import Mapping

from hintplan.plans.lint.copy_rules import outlived_ttls
from hintplan.plans.lint.double_rules import doubled_state
from hintplan.plans.lint.edit_rules import edits_of_one, idle_reasons, redundant_edits, redundant_hints
from hintplan.plans.lint.loss_rules import lossy_settings, overwriting_sinks
from hintplan.plans.lint.rule import Rule
from hintplan.plans.lint.state_rules import lopsided_outer_join, never_expires, shorter_than_upstream
from hintplan.plans.lint.time_rules import (
    delay_above_window,
    half_a_window,
    many_windows,
    never_idle,
    outside_of_windows,
    windows_without_zone,
)
from hintplan.plans.lint.unused_rules import unused_options, unused_tables
from hintplan.plans.lint.wait_rules import cache_without_time, capacity_one, delay_above_timeout, retry_with_full_cache

_ALL = (
    Rule(
        id="HP000",
        slug="invalid-plan",
        level="error",
        about="The plan is not valid, or its facts were changed by hand.",
        why="It cannot run, so other rules cannot be checked.",
        advice="fix the plan; 'hintplan validate' checks it",
    ),
    Rule(
        id="HP001",
        slug="ignore-without-reason",
        level="warning",
        about="An ignore has no reason.",
        why="Later, nobody will know whether the ignore is still needed.",
        advice="give it a reason",
    ),
    Rule(
        id="HP002",
        slug="ignore-without-effect",
        level="warning",
        about="An ignore matches nothing that the plans it is for have.",
        why="Its cause is fixed or gone, and it could hide a new finding.",
        advice="remove it",
    ),
    Rule(
        id="HP101",
        slug="redundant-edit",
        level="warning",
        about="An edit repeats the value of a lower layer.",
        why="It looks like a decision and is not one; remove the hint instead.",
        advice="change the hint in the SQL instead, and compile again with --keep-edits",
        check=redundant_edits,
        fixable=True,
    ),
    Rule(
        id="HP102",
        slug="redundant-hint",
        level="note",
        about="A hint repeats the value of config or table.",
        why="It looks like a decision, and changes nothing.",
        advice="remove it from the SQL, unless it should stay when the config changes",
        check=redundant_hints,
    ),
    Rule(
        id="HP103",
        slug="idle-hint",
        level="warning",
        about="A hint of the SQL has no effect (found with --sql).",
        why="Its author believes that it works.",
        advice="remove it, or correct the name of its target",
    ),
    Rule(
        id="HP104",
        slug="idle-reason",
        level="warning",
        about="There is a reason for a setting that no edit sets.",
        why="It explains a value that nobody has set.",
        advice="remove the reason",
        check=idle_reasons,
        fixable=True,
    ),
    Rule(
        id="HP105",
        slug="unused-table",
        level="warning",
        about="No operator uses the table, or calls the function.",
        why="Readers search in vain for its user; its options may even hold an address that must not be there.",
        advice="compile the SQL again, which leaves it out",
        check=unused_tables,
        fixable=True,
    ),
    Rule(
        id="HP106",
        slug="unused-option",
        level="warning",
        about="A key of the configuration or an option of a table is for something that the plan does not have.",
        why="It looks as if it had an effect.",
        advice="remove it from the SQL, or from the plan",
        check=unused_options,
        fixable=True,
    ),
    Rule(
        id="HP201",
        slug="state-never-expires",
        level="warning",
        about="A state keeps every row or key it has ever seen.",
        why="State grows until the disk is full, or until each batch takes too long.",
        advice="give it a TTL, or ignore the rule with the reason why the keys are few",
        check=never_expires,
    ),
    Rule(
        id="HP202",
        slug="shorter-than-upstream",
        level="warning",
        about="A state forgets rows that an operator upstream can still change.",
        why="Updates and deletions of rows that are forgotten here are lost, and aggregates start again from nothing.",
        advice="make it at least as long as the TTL upstream",
        check=shorter_than_upstream,
    ),
    Rule(
        id="HP203",
        slug="lopsided-outer-join",
        level="warning",
        about="The TTLs of an outer join's sides differ a thousandfold.",
        why="Rows on the short side expire before their match arrives, so rows stay without a match; most often a "
        "unit is wrong.",
        advice="check the units, and how long a row should wait for its match",
        check=lopsided_outer_join,
    ),
    Rule(
        id="HP204",
        slug="lossy-setting",
        level="note",
        about="A setting loses data that its default keeps.",
        why="Results lack this data, and nothing in them shows the loss.",
        advice="make sure that the loss is intended, and document it in a reason or in an ignore",
        check=lossy_settings,
    ),
    Rule(
        id="HP205",
        slug="overwriting-sink",
        level="note",
        about="A sink deletes the existing rows of its table, including rows of other writers.",
        why="Every run of the job does so, and the old rows are no longer in any result.",
        advice="make sure that nobody else's rows are in the table, and give the reason in an ignore",
        check=overwriting_sinks,
    ),
    Rule(
        id="HP206",
        slug="doubled-state",
        level="note",
        about="Two operators keep the same rows or groups, apart from columns and conditions.",
        why="A view that several queries read is computed and stored once per query.",
        advice="read both from one view, with SET 'table.optimizer.shared-views.enabled' = 'true', which keeps the "
        "state once, with the columns of all readers, and applies their conditions above it",
        check=doubled_state,
    ),
    Rule(
        id="HP207",
        slug="outlived-ttl",
        level="note",
        about="A state keeps copies of rows longer than a hint or an edit keeps the rows themselves.",
        why="Expired rows are still stored, in the results of a join, and still joined.",
        advice="give that state a TTL too: edit it, or name the join in a sub-query and give the name a hint",
        check=outlived_ttls,
    ),
    Rule(
        id="HP301",
        slug="retry-with-full-cache",
        level="error",
        about="A lookup retries although its cache holds the whole table.",
        why="The cache has everything, so another attempt finds nothing either.",
        advice="turn the retry off",
        check=retry_with_full_cache,
        fixable=True,
    ),
    Rule(
        id="HP302",
        slug="delay-above-timeout",
        level="warning",
        about="Retries take longer than the timeout that covers them.",
        why="A row without a match fails the job before its last attempt.",
        advice="raise the timeout, or make fewer attempts or shorter delays",
        check=delay_above_timeout,
    ),
    Rule(
        id="HP303",
        slug="async-capacity-one",
        level="warning",
        about="An asynchronous operator has one call in flight.",
        why="It is as slow as a synchronous one, at the price of an asynchronous one.",
        advice="raise the capacity, or make it synchronous",
        check=capacity_one,
    ),
    Rule(
        id="HP304",
        slug="edit-of-one-branch",
        level="warning",
        about="An edit changes one of several lookups or calls that are alike.",
        why="A view that several branches read is looked up for each, and the other branches keep their settings.",
        advice="edit all of them, or ignore the rule with the reason why they differ",
        check=edits_of_one,
    ),
    Rule(
        id="HP305",
        slug="cache-without-time",
        level="warning",
        about="The rows of a lookup's cache expire at once.",
        why="Every row is looked up, at the price of a cache.",
        advice="give a time, or take the setting out: without one, rows stay until the cache is full",
        check=cache_without_time,
    ),
    Rule(
        id="HP401",
        slug="many-windows",
        level="warning",
        about="Each row is in more than 60 windows.",
        why="A batch puts out as many rows for each key, and the next operator reads them all.",
        advice="make the slide or the step longer, or the window shorter",
        check=many_windows,
    ),
    Rule(
        id="HP402",
        slug="half-a-window",
        level="warning",
        about="A query groups or joins by the start of a window, but not by its end.",
        why="This is no operation on windows: its results change with every row, and its state is kept for its TTL.",
        advice="group or join by window_start and window_end",
        check=half_a_window,
    ),
    Rule(
        id="HP403",
        slug="delay-above-window",
        level="note",
        about="The delay of a watermark is longer than a window.",
        why="Windows stay open for longer than they last; most often a unit is wrong.",
        advice="check the unit of the delay, and how late rows are",
        check=delay_above_window,
    ),
    Rule(
        id="HP404",
        slug="never-idle",
        level="note",
        about="A source that falls silent holds back the watermark of other sources, or of its other partitions.",
        why="Windows stay open and are kept until the source has new rows.",
        advice="set 'scan.watermark.idle-timeout' or 'table.exec.source.idle-timeout', if rows that come after it may "
        "be dropped",
        check=never_idle,
    ),
    Rule(
        id="HP405",
        slug="windows-without-zone",
        level="note",
        about="The job has a time zone, and a window over TIMESTAMP does not follow it.",
        why="Days of such windows begin at midnight of the values, whatever the zone of the job is.",
        advice="make the rowtime a TIMESTAMP_LTZ if windows should follow the zone",
        check=windows_without_zone,
    ),
    Rule(
        id="HP406",
        slug="outside-of-windows",
        level="warning",
        about="A regular join without a TTL reads results of windows, and rows outside of windows.",
        why="The watermark does not end its state: it keeps all rows of both sides.",
        advice="read the rows through the same window, and compare window_start and window_end of both sides",
        check=outside_of_windows,
    ),
)

RULES: Mapping[str, Rule] = {rule.id: rule for rule in _ALL}
"""The rules by id, in the order of their ids."""

_BY_SLUG = {rule.slug: rule for rule in _ALL}


def rule_called(name: str) -> Rule | None:
    """Return the rule with this id or slug, ignoring case."""
    return RULES.get(name.upper()) or _BY_SLUG.get(name.lower())
