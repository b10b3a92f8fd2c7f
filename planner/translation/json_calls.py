"""Flink's JSON functions with clauses: their arguments and clauses, and hintplan's own function for each.

:mod:`hintplan.runtime.expressions.json_documents` defines the meaning of documents, numbers and paths, and
:mod:`hintplan.planner.expressions.functions.json_values` the form of values in documents.
"""

from __future__ import annotations

from sqlglot import exp

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.json_values import (
    FORMS,
    JsonValue,
    json_array,
    json_document,
    json_object,
    part_of,
)
from hintplan.planner.expressions.typed import BOOLEAN, DOUBLE, INT, NULL, STRING, Expr, Literal, call, literal
from hintplan.planner.syntax.dialect import offset_of
from hintplan.planner.syntax.json_forms import ON_EMPTY, ON_ERROR, ON_NULL, RETURNING, WRAPPER
from hintplan.planner.translation.translator import Translator
from hintplan.plans.declarations.json_paths import ADVICE, parse_json_path
from hintplan.plans.declarations.types import DataType, parse_type

_READERS = {"BOOLEAN": "hp_json_boolean", "DOUBLE": "hp_json_double", "INT": "hp_json_integer"}
_EMPTY_PARTS = {"EMPTY ARRAY": "[]", "EMPTY OBJECT": "{}"}
_TRUTH = {"TRUE": "TRUE", "FALSE": "FALSE", "UNKNOWN": None}
_CLAUSES = {"JSON_EXISTS": (ON_ERROR,), "JSON_QUERY": (RETURNING, WRAPPER, ON_EMPTY, ON_ERROR)}

Clauses = dict[str, exp.Expr]


def translate_is_json(t: Translator, node: exp.Expr) -> Expr:
    """Translate ``x IS JSON [VALUE | OBJECT | ARRAY | SCALAR]``."""
    condition, offset = node.expression, offset_of(node)
    if condition.args.get("with_") is not None or condition.args.get("unique"):
        raise t.source.error("IS JSON does not take UNIQUE KEYS", offset, "remove it, Flink has no such condition")
    value = _document(t, "IS JSON", t.expression(node.this), offset)
    kind = str(condition.this or "VALUE").lower()
    return call("hp_is_json", (value, literal(kind, STRING)), BOOLEAN, offset)


def json_call(t: Translator, node: exp.Expr) -> Expr:
    """Translate a call of one of the functions in ``FORMS``."""
    name, offset = node.name.upper(), offset_of(node)
    clauses: Clauses = {}
    for clause in node.expressions:
        if isinstance(clause, exp.Kwarg):
            if clause.name in clauses or clause.name not in _CLAUSES.get(name, (clause.name,)):
                raise t.source.error(f"{name} does not take this {clause.name}", offset_of(clause), "remove it")
            clauses[clause.name] = clause.expression
    arguments = [argument for argument in node.expressions if not isinstance(argument, exp.Kwarg)]
    if name == "JSON_STRING":
        return _string(t, arguments, offset)
    if name in ("JSON_ARRAY", "JSON_OBJECT"):
        return _constructed(t, name, arguments, clauses, offset)
    if len(arguments) != 2:
        raise t.source.error(f"{name} takes a document and a path", offset, f"write {name}(document, '$.path')")
    document = _document(t, name, t.expression(arguments[0]), offset)
    path = _path(t, name, arguments[1])
    build = {"JSON_EXISTS": _exists, "JSON_QUERY": _query, "JSON_VALUE": _value}[name]
    return build(t, document, path, clauses, offset)


def _document(t: Translator, name: str, value: Expr, offset: int) -> Expr:
    if not (value.type.is_text or value.type == NULL):
        message = f"{name} takes text, found {value.type.as_nullable()}"
        raise t.source.error(message, value.offset or offset, "write CAST(... AS STRING)")
    return cast(value, STRING, offset) if value.type == NULL else value


def _path(t: Translator, name: str, node: exp.Expr) -> Expr:
    if not (isinstance(node, exp.Literal) and node.is_string):
        raise t.source.error(f"the path of {name} must be a literal", offset_of(node), "write it out, such as '$.a'")
    try:
        parse_json_path(node.name)
    except ValueError as error:
        raise t.source.error(str(error), offset_of(node), ADVICE) from None
    return literal(node.name, STRING, offset_of(node))


def _exists(t: Translator, document: Expr, path: Expr, clauses: Clauses, offset: int) -> Expr:
    behavior = clauses.get(ON_ERROR)
    if behavior is None:
        return call("hp_json_exists", (document, path), BOOLEAN, offset)
    word = behavior.name
    if not isinstance(behavior, exp.Var) or word not in _TRUTH:
        raise _failing(t, "JSON_EXISTS", word, ON_ERROR, behavior, "TRUE, FALSE or UNKNOWN")
    return call("hp_json_exists", (document, path, literal(_TRUTH[word], BOOLEAN)), BOOLEAN, offset)


def _query(t: Translator, document: Expr, path: Expr, clauses: Clauses, offset: int) -> Expr:
    kind = _returned(t, "JSON_QUERY", clauses, (STRING,))
    arguments = [document, path]
    defaults = []
    for clause in (ON_EMPTY, ON_ERROR):
        behavior = clauses.get(clause)
        word = "NULL" if behavior is None else behavior.name
        if behavior is not None and (
            not isinstance(behavior, exp.Var) or (word != "NULL" and word not in _EMPTY_PARTS)
        ):
            raise _failing(t, "JSON_QUERY", word, clause, behavior, "NULL, EMPTY ARRAY or EMPTY OBJECT")
        defaults.append(literal(_EMPTY_PARTS.get(word), STRING))
    present = [default for default in defaults if default.text is not None]
    if WRAPPER in clauses or present:
        arguments.append(literal(clauses[WRAPPER].name if WRAPPER in clauses else "without", STRING))
    return call("hp_json_query", (*arguments, *(defaults if present else ())), kind, offset)


def _value(t: Translator, document: Expr, path: Expr, clauses: Clauses, offset: int) -> Expr:
    kind = _returned(t, "JSON_VALUE", clauses, (STRING, BOOLEAN, INT, DOUBLE))
    defaults = [_default(t, clauses, clause, kind) for clause in (ON_EMPTY, ON_ERROR)]
    has_default = any(default.text is not None for default in defaults)
    return call(
        _READERS.get(kind.root, "hp_json_value"), (document, path, *(defaults if has_default else ())), kind, offset
    )


def _default(t: Translator, clauses: Clauses, clause: str, kind: DataType) -> Literal:
    behavior = clauses.get(clause)
    if behavior is None or (isinstance(behavior, exp.Var) and behavior.name == "NULL"):
        return literal(None, kind)
    if isinstance(behavior, exp.Var):
        raise _failing(t, "JSON_VALUE", behavior.name, clause, behavior, "NULL, or DEFAULT with a literal")
    value = t.expression(behavior)
    if isinstance(value, Literal) and value.text is not None:
        if value.type == kind or (value.type.is_text and kind.is_text):
            return literal(value.text, kind, value.offset)
        if value.type.is_integer and kind.is_text:
            return literal(value.text, kind, value.offset)
        if value.type.root == "DECIMAL" and kind == DOUBLE:
            return literal(f"{value.text}E0", kind, value.offset)
    message = f"DEFAULT {clause} of JSON_VALUE must be a literal of {kind}"
    raise t.source.error(message, offset_of(behavior), "write one, or COALESCE around the call")


def _returned(t: Translator, name: str, clauses: Clauses, known: tuple[DataType, ...]) -> DataType:
    returning = clauses.get(RETURNING)
    if returning is None:
        return STRING
    try:
        kind = parse_type(returning.name).as_nullable()
    except ValueError as error:
        raise t.source.error(str(error), offset_of(returning), "use a type such as STRING") from None
    if kind not in known:
        listed = ", ".join(map(str, known))
        advice = f"use {listed}, and CAST around the call" if len(known) > 1 else "leave it out"
        raise t.source.error(f"{name} does not return {kind}", offset_of(returning), advice)
    return kind


def _failing(t: Translator, name: str, word: str, clause: str, said: exp.Expr, known: str) -> Exception:
    """Return the error for ``word`` before ``clause``; Flink accepts ERROR there, and refuses any other word, too."""
    if word == "ERROR":
        message = f"ERROR {clause} is not supported: {name} is computed also for rows that no branch selects"
        return t.source.error(message, offset_of(said), f"write {known}")
    return t.source.error(f"{name} does not take {word} {clause}", offset_of(said), f"write {known}")


def _constructed(t: Translator, name: str, arguments: list[exp.Expr], clauses: Clauses, offset: int) -> Expr:
    behavior = clauses.get(ON_NULL)
    absent = behavior.name == "ABSENT" if behavior is not None else name == "JSON_ARRAY"
    if name == "JSON_ARRAY":
        return json_array([part(t, name, each, offset) for each in arguments], absent=absent, offset=offset)
    members: dict[str, JsonValue] = {}
    for key, value in zip(arguments[::2], arguments[1::2], strict=True):
        if not (isinstance(key, exp.Literal) and key.is_string):
            raise t.source.error("a name in JSON_OBJECT must be a literal", offset_of(key), "write KEY 'name' VALUE x")
        if key.name in members:
            raise t.source.error(f"JSON_OBJECT has the name '{key.name}' twice", offset_of(key), "remove one of them")
        members[key.name] = part(t, name, value, offset)
    return json_object(members, absent=absent, offset=offset)


def _string(t: Translator, arguments: list[exp.Expr], offset: int) -> Expr:
    if len(arguments) != 1:
        raise t.source.error("JSON_STRING takes one value", offset, "write JSON_STRING(x)")
    return part(t, "JSON_STRING", arguments[0], offset).text


def part(t: Translator, name: str, node: exp.Expr, offset: int) -> JsonValue:
    """Translate an element of a document: calls of JSON_OBJECT and JSON_ARRAY are nested, anything else is a value."""
    value = t.expression(node)
    return json_document(value) if _is_document(node) else part_of(t.source, name, value, offset)


def _is_document(node: exp.Expr) -> bool:
    """Return True if Flink recognises ``node`` as a call of JSON_OBJECT or JSON_ARRAY.

    It also does so inside COALESCE, and inside a CAST to STRING, because these calls are never NULL.
    """
    if isinstance(node, exp.Paren):
        return _is_document(node.this)
    if not isinstance(node, exp.Anonymous):
        return False
    name = node.name.upper()
    if name in ("COALESCE", "IFNULL") or (name == "CAST" and node.expressions[1].name.upper() == "STRING"):
        return _is_document(node.expressions[0])
    return name in ("JSON_ARRAY", "JSON_OBJECT")


__all__ = ["FORMS", "json_call", "part", "translate_is_json"]
