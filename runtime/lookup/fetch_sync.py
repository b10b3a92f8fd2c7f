"""Fetch keys from a synchronous source: in bulk if it can, else key by key, while the caller waits.

The fetch repeats after a failure, and on a miss if the plan has a retry. All missed keys wait for their retries
together. So a batch is delayed as long as one row would be, no matter how many rows missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from hintplan.plans.errors import RunError
from hintplan.runtime.lookup.api import Key, LookupFunction, Row
from hintplan.runtime.lookup.metrics import LookupCounters
from hintplan.runtime.lookup.policy import Answers, FetchPolicy, answers, backoff, chunks, failed
from hintplan.runtime.worker.clock import Clock
from hintplan.runtime.worker.exceptions import retried


def fetch_sync(
    function: LookupFunction, keys: Sequence[Key], policy: FetchPolicy, clock: Clock, counters: LookupCounters
) -> Answers:
    """Fetch the final answer for each of the distinct ``keys``; RunError with the cause if the source keeps failing."""
    fetched = Answers()
    pending = list(keys)
    for attempt in range(1 + policy.max_attempts):
        if not pending:
            break
        if attempt:
            clock.sleep(policy.delay)
            counters.retries += len(pending)
        for chunk in chunks(function, pending):
            rows = _call(function, chunk, policy, clock, counters)
            fetched.add(chunk, rows, clock.elapsed())
        pending = [key for key in pending if not fetched.rows[key]]
    return fetched


def _call(
    function: LookupFunction, keys: list[Key], policy: FetchPolicy, clock: Clock, counters: LookupCounters
) -> list[list[Row]]:
    counters.inFlightMax = max(counters.inFlightMax, 1)
    failures = 0
    while True:
        started = clock.elapsed()
        try:
            rows = function.lookup_many(keys) if function.bulk else [function.lookup(keys[0])]
        except function.retry_on as error:
            if type(error) is RunError:
                raise
            counters.numLoadFailures += 1
            failures += 1
            if failures > policy.max_failures or not retried(error, function.retry_on):
                raise failed(policy, keys, failures, error) from error
            clock.sleep(backoff(failures - 1))
        except (KeyboardInterrupt, SystemExit) as error:
            raise failed(policy, keys, failures + 1, error) from error
        else:
            counters.latestLoadTime = clock.elapsed() - started
            return answers(policy, keys, rows)
