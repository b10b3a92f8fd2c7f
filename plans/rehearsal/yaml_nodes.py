"""YAML as nodes with their positions, whose scalars are texts: YAML's own types would misread ``12:59`` and ``NO``.

Anchors, aliases, tags and several documents are refused, and so are duplicate keys. Needs PyYAML.

    node = read_yaml(text, "paid.test.yaml")
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hintplan.plans.errors import Diagnostic, PlanError
from hintplan.plans.frozen import frozen

_NULLS = ("", "~", "null", "Null", "NULL")
_QUOTED = ("'", '"', "|", ">")
_MOST_DEPTH = 60
MOST_BYTES = 16 << 20
"""The most bytes of a file of tests."""


@frozen
class Place:
    """A position in a file; line and column count from 1. ``begin`` and ``end`` are offsets of the node's text."""

    file: str
    line: int
    column: int
    begin: int = 0
    end: int = 0

    def finding(self, message: str, hint: str | None = None) -> Diagnostic:
        """Return a diagnostic at this position."""
        return Diagnostic(message=message, hint=hint, file=self.file, line=self.line, column=self.column)

    def error(self, message: str, hint: str | None = None) -> PlanError:
        """Return an error at this position."""
        return PlanError(diagnostics=(self.finding(message, hint),))


@frozen
class TextNode:
    """A scalar; ``text`` is None for NULL, which only a scalar without quotes can be."""

    place: Place
    text: str | None


@frozen
class ListNode:
    """A sequence; ``flow`` if it is in brackets."""

    place: Place
    items: tuple[Node, ...]
    flow: bool = False


@frozen
class MapNode:
    """A mapping, with the node of each key; ``flow`` if it is in braces."""

    place: Place
    entries: tuple[tuple[TextNode, Node], ...]
    flow: bool = False

    def items(self) -> Iterator[tuple[str, TextNode, Node]]:
        """Yield each key as text and as a node, and the node of its value."""
        return ((key.text or "", key, value) for key, value in self.entries)


Node = TextNode | ListNode | MapNode


def kind_of(node: Node) -> str:
    """Return the words for a kind of node in messages."""
    match node:
        case MapNode():
            return "a mapping"
        case ListNode():
            return "a list"
        case TextNode(text=None):
            return "nothing"
        case TextNode(text=text):
            return f"'{text}'"


def read_yaml(text: str, file: str) -> Node:
    """Return the only document of ``text``; PlanError with a position for text that is not plain YAML."""
    import yaml  # only tests need it

    loader_class: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = loader_class(text)
    try:
        _refuse_references(text, file, yaml)
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
        problem = str(error.problem or error.context or "is not YAML")
        raise Place(file=file, line=line, column=column).error(f"the text is not YAML: {problem}") from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise Place(file=file, line=1, column=1).error(f"the text is not YAML: {reason}") from error
    finally:
        loader.dispose()
    if node is None:
        raise Place(file=file, line=1, column=1).error("the file is empty", "begin with plan: or sql:, then tests:")
    return _converted(node, file, 0)


def _refuse_references(text: str, file: str, yaml: Any) -> None:
    """Raise PlanError for aliases, which can make a small file huge, and for tags and further documents."""
    documents = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        place = Place(file=file, line=event.start_mark.line + 1, column=event.start_mark.column + 1)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise place.error("anchors and aliases are not read", "repeat the rows, or put them into a file")
        if getattr(event, "tag", None):
            raise place.error(f"the tag {event.tag} is not read", "write the value alone; its column has the type")
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise place.error("the file has a second document", "put its tests into a file of their own")


def _converted(node: Any, file: str, depth: int) -> Node:
    place = Place(
        file=file,
        line=node.start_mark.line + 1,
        column=node.start_mark.column + 1,
        begin=node.start_mark.index,
        end=node.end_mark.index,
    )
    if depth > _MOST_DEPTH:
        raise place.error(f"the values are nested more than {_MOST_DEPTH} levels deep")
    if node.id == "scalar":
        plain = node.style not in _QUOTED
        return TextNode(place=place, text=None if plain and node.value in _NULLS else node.value)
    if node.id == "sequence":
        items = tuple(_converted(item, file, depth + 1) for item in node.value)
        return ListNode(place=place, items=items, flow=bool(node.flow_style))
    entries: list[tuple[TextNode, Node]] = []
    seen: dict[str | None, Place] = {}
    for key_node, value in node.value:
        key = _converted(key_node, file, depth + 1)
        if not isinstance(key, TextNode):
            raise key.place.error(f"a key is a text, found {kind_of(key)}")
        if key.text in seen:
            first = seen[key.text]
            raise key.place.error(f"'{key.text}' is here twice, first in line {first.line}", "remove one of them")
        seen[key.text] = key.place
        entries.append((key, _converted(value, file, depth + 1)))
    return MapNode(place=place, entries=tuple(entries), flow=bool(node.flow_style))


def last_offset(node: Node) -> int:
    """Return the offset behind the last character of a node, without the blanks and comments behind a block."""
    match node:
        case MapNode(entries=entries, place=place) if entries:
            return max(last_offset(entries[-1][1]), place.end if node.flow else 0)
        case ListNode(items=items, place=place) if items:
            return max(last_offset(items[-1]), place.end if node.flow else 0)
    return node.place.end
