"""Commands on hostile input, in this process: mutated plans and scripts, odd settings, odd file names.

Whatever comes in, a command prints a result or an error and ends with 0, 1, 2, or 64 for wrong usage: no traceback, no
internal error, at most 64 KB of messages, at most five seconds of processor time (of the clock it may be more on a busy
machine). An error of ``compile`` names line and column.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.fuzz.mutations import HOSTILE_WORDS, mutated_script, mutated_text
from tests.fuzz.samples import SCRIPTS, sample_plans
from tests.plans.in_process import Done, hintplan

__all__ = ["Call", "call_of", "complaint", "fuzz_commands"]

_MOST_TEXT = 64 << 10
_MOST_SECONDS = 5
_DIFF_FORMATS = ("text", "markdown", "json", "html", "github", "sarif", "junit")
_LINT_FORMATS = ("text", "json", "github", "sarif", "junit")
_PICTURES = ("html", "svg", "mermaid", "dot", "tree")
_NAMES = (
    "plan.json", "-plan.json", "a b.json", "p*.json", "p[1].json", "é😀.json", "new\nline.json", "'q\".json", "~", "--",
    "{a}.json", "%s.json", "\x1b[31m.json", ".json", "a:b.json",
)  # fmt: skip
"""Names of the file that a command is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A command line, with the files that it is about."""

    words: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...]


def call_of(number: int) -> Call:
    """The call with this number."""
    dice = Random(f"command {number}")
    if dice.random() < 0.3:
        return _compile(dice)
    text = dice.choice(sample_plans())
    other = text if dice.random() < 0.7 else dice.choice(sample_plans())
    name = dice.choice(_NAMES) if dice.random() < 0.15 else "plan.json"
    files = ((name, mutated_text(dice, text)), ("other.json", other.encode()))
    anyhow = ("--allow-fact-edits",) if dice.random() < 0.7 else ()
    return Call(words=_command(dice, f"./{name}" if dice.random() < 0.7 else name, anyhow), files=files)


def _command(dice: Random, plan: str, anyhow: tuple[str, ...]) -> tuple[str, ...]:
    sides = (plan, "other.json") if dice.random() < 0.5 else ("other.json", plan)
    setting = dice.choice(
        ("join_o_c.leftState.ttl", "operators.join_o_c.state.leftState.ttl", "config.table.exec.state.ttl", "name",
         "tables.o.options.path", "lookup_p.retry.max-attempts", "lookup_p.cache.max-rows", "*.ttl", *HOSTILE_WORDS)
    )  # fmt: skip
    value = dice.choice(("3 d", "0 ms", "5", "true", *HOSTILE_WORDS))
    return dice.choice(
        [
            ("validate", plan, *anyhow),
            ("validate", plan, "--json", *anyhow),
            ("explain", plan, *anyhow),
            ("explain", plan, "--json", *anyhow),
            ("diff", *sides, *anyhow, "--format", dice.choice(_DIFF_FORMATS)),
            ("diff", *sides, *anyhow, "--full", "--fail-on", "any"),
            ("set", plan, f"{setting}={value}", *anyhow),
            ("set", plan, f"{setting}={value}", "--json", "--reason", dice.choice(HOSTILE_WORDS)),
            ("set", plan, "--remove", setting, *anyhow),
            ("lint", plan, *anyhow, "--format", dice.choice(_LINT_FORMATS)),
            ("lint", plan, "--fix", *anyhow),
            ("fmt", plan, "--check"),
            ("fmt", plan, "--diff"),
            ("fmt", plan),
            ("flat", plan),
            ("flat", plan, "--lenient"),
            ("show", plan, *anyhow, "--format", dice.choice(_PICTURES)),
            ("show", "other.json", "--diff", plan, "--format", "html", *anyhow),
            ("why", plan, setting, *anyhow),
            ("rebase", *sides[:1], "--onto", sides[1], *anyhow),
            ("rebase", *sides[:1], "--onto", sides[1], "-o", "new.json", "--json", "--drop-orphans", *anyhow),
            ("merge", plan, "other.json", "other.json"),
            ("merge", "other.json", plan, "other.json", "-o", "new.json", "--json"),
            ("merge", "other.json", "other.json", plan),
            ("check", plan, "--checkpoint", "nothing", *anyhow),
        ]
    )


def _compile(dice: Random) -> Call:
    script = mutated_script(dice, dice.choice(SCRIPTS))
    options = (("--strict-hints",) if dice.random() < 0.2 else ()) + (
        ("-c", f"{dice.choice(('table.exec.state.ttl', 'parallelism.default', *HOSTILE_WORDS))}=1")
        if dice.random() < 0.1
        else ()
    )
    name = dice.choice(_NAMES) + ".sql" if dice.random() < 0.1 else "job.sql"
    content = script.encode("utf-8", errors=dice.choice(("replace", "surrogatepass")))
    return Call(words=("compile", f"./{name}", *options), files=((name, content),))


def complaint(call: Call) -> str | None:
    """What is wrong with the way in which hintplan takes ``call``; None if nothing is."""
    with TemporaryDirectory(prefix="hintplan-commands-") as folder:
        for name, content in call.files:
            Path(folder, name).write_bytes(content)
        started = time.process_time()
        try:
            done = hintplan(*call.words, folder=Path(folder))
        except BaseException as error:  # noqa: BLE001 - a crash of one must not hide the others
            return f"not caught: {type(error).__name__}: {error}"[:2000]
        return _wrong(call, done, time.process_time() - started)


def _wrong(call: Call, done: Done, seconds: float) -> str | None:
    if done.returncode not in (0, 1, 2, 64):
        return f"exit code {done.returncode}"
    if "internal error" in done.stderr or "Traceback (most recent" in done.stderr + done.stdout:
        return done.stderr[:2000]
    if len(done.stderr.encode()) > _MOST_TEXT:
        return f"{len(done.stderr.encode()):,} bytes of messages: {done.stderr[:300]}"
    if seconds > _MOST_SECONDS:
        return f"{seconds:.1f} s"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", done.stderr):
        return f"control characters reach the terminal: {done.stderr[:300]!r}"
    if done.returncode and not done.stderr.strip() and not done.stdout.strip():
        return "ends with an error and says nothing"
    about_script = call.words[0] == "compile" and "-c" not in call.words and done.returncode == 1
    if about_script and not re.search(r":\d+:\d+: ", done.stderr):
        return f"an error without a place: {done.stderr[:500]}"
    return None


def fuzz_commands(count: int, first: int) -> int:
    """Check the calls from number ``first`` on, telling of those that are taken badly; how many."""
    failed = 0
    used: Counter[str] = Counter()
    for number in range(first, first + count):
        call = call_of(number)
        used[call.words[0]] += 1
        wrong = complaint(call)
        if wrong is not None:
            failed += 1
            print(f"=== call {number}: hintplan {_words(call.words)}\n{wrong}", flush=True)
            if failed <= 20:
                print("".join(f"--- {name!r}: {content[:1500]!r}\n" for name, content in call.files[:1]), flush=True)
    print(f"{count} calls, {failed} taken badly: " + ", ".join(f"{n} {word}" for word, n in sorted(used.items())))
    sys.stdout.flush()
    return failed


def _words(words: Sequence[str]) -> str:
    return " ".join(word if re.fullmatch(r"[\w./=-]+", word) else repr(word[:80]) for word in words)
