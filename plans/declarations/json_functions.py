"""Hintplan's own JSON functions, which expressions of a plan may call in addition to Spark's, and their arguments.

Spark has no functions that read documents as Flink does, so a run brings its own
(:mod:`hintplan.runtime.expressions.json_documents`). They are pure functions of their arguments and never fail. Paths
and keywords must be literals, so that readers and runs know them in advance.

>>> call_fault("hp_json_value", [None, "$.a"]), call_fault("hp_is_json", [None, "thing"])
(None, "takes 'value', 'object', 'array' or 'scalar' as argument 2")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hintplan.plans.declarations.json_paths import parse_json_path

_VALUE = ("text", "path", "value?", "value?")

JSON_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "hp_is_json": ("text", "kind"),
    "hp_json_boolean": _VALUE,
    "hp_json_double": _VALUE,
    "hp_json_exists": ("text", "path", "value?"),
    "hp_json_integer": _VALUE,
    "hp_json_number": ("text",),
    "hp_json_query": ("text", "path", "wrapper?", "value?", "value?"),
    "hp_json_quote": ("text",),
    "hp_json_unquote": ("text",),
    "hp_json_value": _VALUE,
}
"""The arguments of each: a document or other ``text``, a path, a keyword, or any value; ``?`` marks optional ones.

The two values are the results for a path without a match, and for a path that cannot be followed.
"""

_WORDS: Mapping[str, tuple[str, ...]] = {
    "kind": ("value", "object", "array", "scalar"),
    "wrapper": ("without", "conditional", "unconditional"),
}


def call_fault(name: str, literals: Sequence[str | None]) -> str | None:
    """Return the fault in a call of ``name``, or None.

    ``literals`` has the text of each argument that is a text literal, and None for any other argument.
    """
    kinds = JSON_FUNCTIONS[name]
    least = sum(not kind.endswith("?") for kind in kinds)
    if not least <= len(literals) <= len(kinds):
        wanted = f"{least}" if least == len(kinds) else f"{least} to {len(kinds)}"
        return f"takes {wanted} argument{'s' * (wanted != '1')}, found {len(literals)}"
    for number, (kind, literal) in enumerate(zip(kinds, literals, strict=False), 1):
        words = _WORDS.get(kind.rstrip("?"))
        if words is not None and literal not in words:
            listed = ", ".join(f"'{word}'" for word in words[:-1])
            return f"takes {listed} or '{words[-1]}' as argument {number}"
        if kind == "path" and literal is None:
            return f"takes a literal as argument {number}, the path"
        if kind == "path":
            try:
                parse_json_path(literal or "")
            except ValueError as error:
                return f"is given a path that it cannot follow: {error}"
    return None
