"""The fuzzer of whole queries against DuckDB, and of commands on mutated plans.

    python -m tests.fuzz --queries 3000 --seed 1
    python -m tests.fuzz --queries 1 --first 1234     # one case again

Prints each failure with its number, SQL, tables, cut and a smaller case, then a summary; ends with 1 if any failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.fuzz.cases import Case, Outcome, bundles, check, check_bundle
from tests.fuzz.compiled import script
from tests.fuzz.shrink import shrunk
from tests.fuzz.trees import rendered
from tests.spark.quick import quick_jvms

_NUMBERS_OF_A_SEED = 1_000_000
_SHRINK_SECONDS = 60


def fuzz(numbers: range, *, share: str | None = None, slowly: int = 50) -> Counter[str]:
    """Check the cases with these ``numbers``, or those of one ``share``; tells of failures and, every ``slowly`` cases,
    of progress.
    """
    from hintplan.runtime.run.command import opened_session
    from hintplan.runtime.run.spark_options import SparkOptions
    from hintplan.runtime.spark.session import prepare_session

    quick_jvms()
    count: Counter[str] = Counter()
    started, told = time.monotonic(), 0
    options = SparkOptions(master="local[2]", remote=None, conf={"spark.driver.memory": "2g"}, debug=False)
    with opened_session(options) as session:
        spark = prepare_session(session, time_zone="UTC", once=True)
        for cases in bundles(numbers):
            if share is not None and cases[0].share != share:
                continue
            for case, outcome in zip(cases, check_bundle(cases, spark), strict=True):
                count[f"{case.share}: {outcome.status}"] += 1
                count[outcome.status] += 1
                count["cases"] += 1
                count["rows"] += outcome.rows
                count["with rows"] += outcome.rows > 0
                if outcome.failed:
                    small, last = shrunk(case, outcome, lambda c: check(c, spark), seconds=_SHRINK_SECONDS)
                    print(report(case, outcome, small, last), flush=True)
            if count["cases"] // slowly > told:
                told = count["cases"] // slowly
                print(f"{time.monotonic() - started:6.0f} s  {summary(count)}", flush=True)
    return count


def report(case: Case, outcome: Outcome, small: Case, last: Outcome) -> str:
    """A failure for those who mend it."""
    return "\n".join(
        [
            f"=== case {case.number} ({case.share}): {outcome.status}",
            outcome.detail,
            _shown(case),
            f"--- smaller: {last.detail}",
            _shown(small),
            f"--- again: make fuzz QUERIES=1 FIRST={case.number} PLANS=0",
        ]
    )


def _shown(case: Case) -> str:
    texts = rendered(case.query, batch=case.batch)
    used = [t for t in case.world.tables if f"{t.name} AS " in texts.flink + " ".join(texts.views)]
    events = [f"  {t.name}: {'; '.join(f'{k} {r}' for k, r in t.events)}" for t in used]
    cut = f"cut {case.world.cut}, restarted before {sorted(case.world.restarts)}"
    return "\n".join([script(case.world, texts, batch=case.batch), "in DuckDB: " + texts.duck, *events, cut])


def summary(count: Counter[str]) -> str:
    words = ("same", "different", "error", "refused", "not asked")
    return (
        f"{count['cases']} queries: "
        + ", ".join(f"{count[word]} {word}" for word in words)
        + f"; {count['with rows']} with rows"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--queries", type=int, default=300, help="how many queries")
    parser.add_argument("--plans", type=int, default=0, help="how many mutated plans and scripts for commands")
    parser.add_argument("--seed", type=int, default=1, help="which queries: each seed has a million of its own")
    parser.add_argument("--first", type=int, help="the number of the first query, instead of --seed")
    parser.add_argument("--share", choices=("in process", "stream", "batch"), help="only queries that run so")
    given = parser.parse_args()
    first = given.first if given.first is not None else given.seed * _NUMBERS_OF_A_SEED
    failed = 0
    if given.plans:
        from tests.fuzz.commands import fuzz_commands

        failed += fuzz_commands(given.plans, first)
    if given.queries:
        count = fuzz(range(first, first + given.queries), share=given.share)
        print(summary(count))
        for share in ("in process", "stream", "batch"):
            found = {k.split(": ")[1]: n for k, n in sorted(count.items()) if k.startswith(f"{share}: ")}
            print(f"  {share}: " + ", ".join(f"{n} {k}" for k, n in found.items()))
        failed += count["different"] + count["error"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
