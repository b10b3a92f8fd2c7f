"""Finds regular expressions that may take exponential time: Java tries the ways to match a text one by one.

A pattern is slow if a loop can read the same characters in two ways, as in ``(a+)+`` or ``(a|a)*``. The number of ways
then doubles with each character. Any other pattern takes time that is polynomial in the length of the text. The test
reads a pattern as an automaton whose positions are its characters. All characters beyond ASCII count as one.
Look-arounds count as their content. Knows neither SQL nor Spark.

>>> slow_pattern("(a+)+$"), slow_pattern("([0-9]+,)*[0-9]+")
('repeats a part that can match the same text in several ways', None)
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from hintplan.plans.frozen import frozen

LONGEST_PATTERN = 2_000
_MOST_POSITIONS, _MOST_PAIRS = 500, 20_000
_FEW = 4
"""The largest repetition that is written out; a repetition beyond it counts as unbounded."""

SLOW_HINT = "write it so that a text matches in one way: [a-z]+ for ([a-z]+)+, [ab]* for (a|b|ab)*"
_SLOW = "repeats a part that can match the same text in several ways"
_BEYOND = 128
_ALL = frozenset(range(_BEYOND + 1))
_CLASSES = {
    "d": frozenset(map(ord, "0123456789")),
    "w": frozenset(c for c in range(_BEYOND) if re.match(r"\w", chr(c))),
    "s": frozenset(map(ord, " \t\n\x0b\f\r")),
}
_CLASSES |= {name.upper(): _ALL - chars for name, chars in _CLASSES.items()}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_COUNT = re.compile(r"\{(\d{1,9})(,?)(\d{0,9})\}")
_OPENING = re.compile(r"\((?:\?(?:<[A-Za-z][A-Za-z0-9]*>|[idmsuxU-]*:|>|=|!|<=|<!))?")
_FLAGS = re.compile(r"\(\?[idmsuxU-]+\)")
_CODE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4}))")
_PROPERTY = re.compile(r"\\[pP](?:\{[^{}]*\}|.)")


class _Unknown(ValueError):
    """The pattern has a construct that the test does not know, or is too large to test."""


@frozen
class _Chars:
    """One character of a set."""

    chars: frozenset[int]


@frozen
class _Group:
    """One of several ``alternatives``, each a sequence."""

    alternatives: tuple[tuple[_Node, ...], ...]


@frozen
class _Repeat:
    """A node repeated from ``least`` to ``most`` times; None is unbounded."""

    node: _Node
    least: int
    most: int | None


_Node = _Chars | _Group | _Repeat
_NOTHING = _Group(alternatives=((),))


@frozen
class _Part:
    """The ``first`` and ``last`` positions of a part, each with the number of ways that lead there."""

    first: Counter[int]
    last: Counter[int]
    nullable: bool


@lru_cache(maxsize=1_000)
def slow_pattern(pattern: str) -> str | None:
    """Return the reason why matching ``pattern`` may take exponential time, or None if it does not."""
    if len(pattern) > LONGEST_PATTERN:
        return f"has more than {LONGEST_PATTERN:,} characters"
    try:
        return _Automaton(_Reader(pattern).whole()).problem()
    except _Unknown as unknown:
        return str(unknown)
    except RecursionError:
        return "is nested too deeply"


class _Reader:
    """Reads a pattern of Java into nodes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.folds = re.search(r"\(\?[a-zA-Z]*i", text) is not None
        self.any = _ALL if re.search(r"\(\?[a-zA-Z]*s", text) is not None else _ALL - {ord("\n"), ord("\r")}

    def whole(self) -> _Node:
        pattern = self.group()
        if self.at < len(self.text):
            raise _Unknown("closes a group that is not open")
        return pattern

    def group(self) -> _Group:
        alternatives: list[tuple[_Node, ...]] = []
        nodes: list[_Node] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                alternatives.append(tuple(nodes))
                nodes = []
                self.at += 1
            else:
                nodes.append(self.repeated())
        return _Group(alternatives=(*alternatives, tuple(nodes)))

    def repeated(self) -> _Node:
        node = self.atom()
        while self.at < len(self.text):
            mark = self.text[self.at]
            count = _COUNT.match(self.text, self.at)
            if mark in "*+?":
                least, most = int(mark == "+"), 1 if mark == "?" else None
                self.at += 1
            elif count is not None:
                least = int(count[1])
                most = least if not count[2] else int(count[3]) if count[3] else None
                self.at = count.end()
            else:
                break
            if self.text[self.at : self.at + 1] in ("+", "?"):
                self.at += 1  # possessive and reluctant repetitions match in as many ways
            node = _Repeat(node=node, least=least, most=most)
        return node

    def atom(self) -> _Node:
        text, mark = self.text, self.text[self.at]
        flags = _FLAGS.match(text, self.at)
        if flags is not None:
            self.at = flags.end()
            return _NOTHING
        if mark == "(":
            opening = _OPENING.match(text, self.at)
            assert opening is not None
            self.at = opening.end()
            group = self.group()
            if self.at >= len(text):
                raise _Unknown("has a group that is not closed")
            self.at += 1
            return group
        if mark == "[":
            return _Chars(chars=self.char_class())
        if mark in "^$":
            self.at += 1
            return _NOTHING
        if mark == ".":
            self.at += 1
            return _Chars(chars=self.any)
        if mark == "\\":
            return self.escaped()
        self.at += 1
        return _Chars(chars=self.folded(mark))

    def escaped(self) -> _Node:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "Q":
            end = self.text.find("\\E", self.at)
            quoted = self.text[self.at + 2 : len(self.text) if end < 0 else end]
            self.at = len(self.text) if end < 0 else end + 2
            return _Group(alternatives=(tuple(_Chars(chars=self.folded(c)) for c in quoted),))
        if (following.isdigit() and following != "0") or following == "k":
            raise _Unknown("refers to a group of its own")
        if following and following in "bBAGZzE":
            self.at += 2
            return _NOTHING
        return _Chars(chars=self.escape())

    def escape(self) -> frozenset[int]:
        """Return the characters of the escape that starts here."""
        code, category = _CODE.match(self.text, self.at), _PROPERTY.match(self.text, self.at)
        if code is not None or category is not None:
            self.at = (code or category).end()  # type: ignore[union-attr]
            if code is None:
                return _ALL
            point = int(code[1] or code[2] or code[3], 16)
            return self.folded(chr(min(point, 0x10FFFF)))
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if following in _CLASSES:
            return _CLASSES[following]
        if following in _CONTROLS:
            return self.folded(_CONTROLS[following])
        return _ALL if following.isalnum() or not following else self.folded(following)

    def folded(self, char: str) -> frozenset[int]:
        forms = {char, char.lower(), char.upper()} if self.folds else {char}
        return frozenset(min(ord(form), _BEYOND) if len(form) == 1 else _BEYOND for form in forms)

    def char_class(self) -> frozenset[int]:
        """Return the characters of the class that starts here, or all characters if it contains other classes."""
        self.at += 1
        negated = self.text[self.at : self.at + 1] == "^"
        self.at += negated
        chars: frozenset[int] = frozenset()
        nested = False
        first = True
        while self.at < len(self.text) and (self.text[self.at] != "]" or first):
            first = False
            if self.text[self.at] == "[":
                nested = True
                self.char_class()
                continue
            if self.text.startswith("&&", self.at):
                nested = True
                self.at += 2
                continue
            low = self.member()
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", "["):
                self.at += 1
                high = self.member()
                low = self.between(min(low, default=0), max(high, default=_BEYOND))
            chars |= low
        if self.at >= len(self.text):
            raise _Unknown("has a class of characters that is not closed")
        self.at += 1
        if nested:
            return _ALL
        return (_ALL - chars) | {_BEYOND} if negated else chars

    def between(self, low: int, high: int) -> frozenset[int]:
        chars = frozenset(range(low, high + 1))
        return chars.union(*(self.folded(chr(c)) for c in chars)) if self.folds else chars

    def member(self) -> frozenset[int]:
        if self.text[self.at] == "\\":
            return self.escape()
        self.at += 1
        return self.folded(self.text[self.at - 1])


class _Automaton:
    """The positions of a pattern, the characters of each, and the number of ways from one to the next."""

    def __init__(self, pattern: _Node) -> None:
        self.chars: list[frozenset[int]] = []
        self.follow: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self.part(pattern)

    def problem(self) -> str | None:
        loops = _loops({position: list(after) for position, after in self.follow.items()})
        for before, after in self.follow.items():
            for position, ways in after.items():
                if ways > 1 and before in loops and loops[before] == loops.get(position):
                    return _SLOW
        return _SLOW if self.comes_back_in_two_ways(loops) else None

    def comes_back_in_two_ways(self, loops: dict[Any, int]) -> bool:
        """Return True if a position of a loop leads to itself on two paths that read the same text."""
        pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        waiting = [(position, position) for position in loops]
        while waiting:
            pair = waiting.pop()
            if pair in pairs:
                continue
            left, right = ([q for q in self.follow[p] if loops.get(q) == loops[p]] for p in pair)
            pairs[pair] = [(a, b) for a in left for b in right if self.chars[a] & self.chars[b]]
            waiting += pairs[pair]
            if len(pairs) > _MOST_PAIRS:
                raise _Unknown("can match in too many ways for them to be looked at")
        together = _loops(pairs)
        alike = {together[p, p] for p in loops if (p, p) in together}
        return any(a != b and number in alike for (a, b), number in together.items())

    def part(self, node: _Node) -> _Part:
        if isinstance(node, _Chars):
            position = len(self.chars)
            if position >= _MOST_POSITIONS:
                raise _Unknown("is too long for its ways to match to be looked at")
            self.chars.append(node.chars)
            return _Part(first=Counter((position,)), last=Counter((position,)), nullable=False)
        if isinstance(node, _Repeat):
            return self.repeated(node)
        first, last, nullable = Counter[int](), Counter[int](), False
        for alternative in node.alternatives:
            whole = self.sequence(alternative)
            first, last, nullable = first + whole.first, last + whole.last, nullable or whole.nullable
        return _Part(first=first, last=last, nullable=nullable)

    def sequence(self, nodes: tuple[_Node, ...]) -> _Part:
        whole = _Part(first=Counter(), last=Counter(), nullable=True)
        for node in nodes:
            whole = self.joined(whole, self.part(node))
        return whole

    def joined(self, left: _Part, right: _Part) -> _Part:
        self.connect(left, right)
        return _Part(
            first=left.first + right.first if left.nullable else left.first,
            last=right.last + left.last if right.nullable else right.last,
            nullable=left.nullable and right.nullable,
        )

    def connect(self, left: _Part, right: _Part) -> None:
        for before, ways in left.last.items():
            for after, more in right.first.items():
                self.follow[before][after] += ways * more

    def repeated(self, node: _Repeat) -> _Part:
        optional = _Repeat(node=node.node, least=0, most=1)
        if node.most == 0:
            return self.part(_NOTHING)
        if node.most == 1:
            part = self.part(node.node)
            return _Part(first=part.first, last=part.last, nullable=part.nullable or node.least == 0)
        if node.most is not None and node.most <= _FEW:
            return self.sequence((*[node.node] * node.least, *[optional] * (node.most - node.least)))
        part = self.part(node.node)
        if part.nullable and node.most is not None:
            raise _Unknown("repeats a part that may be empty a limited number of times")
        self.connect(part, part)
        return _Part(first=part.first, last=part.last, nullable=part.nullable or node.least == 0)


def _loops(edges: dict[Any, list[Any]]) -> dict[Any, int]:
    """Return the number of the loop that contains each node, for nodes in loops.

    This is Tarjan's algorithm, without recursion.
    """
    order: dict[Any, int] = {}
    low: dict[Any, int] = {}
    loops: dict[Any, int] = {}
    stack: list[Any] = []
    open_: set[Any] = set()

    def enter(node: object) -> tuple[Any, Iterator[Any]]:
        order[node] = low[node] = len(order)
        stack.append(node)
        open_.add(node)
        return node, iter(edges.get(node, ()))

    for root in edges:
        work = [enter(root)] if root not in order else []
        while work:
            node, following = work[-1]
            after = next(following, None)
            if after is not None:
                if after not in order:
                    work.append(enter(after))
                elif after in open_:
                    low[node] = min(low[node], order[after])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == order[node]:
                members = [stack.pop()]
                while members[-1] != node:
                    members.append(stack.pop())
                open_.difference_update(members)
                if len(members) > 1 or node in edges.get(node, ()):
                    loops |= dict.fromkeys(members, order[node])
    return loops
