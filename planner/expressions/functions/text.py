"""Text functions. Positions count from 1; lengths are in characters."""

from __future__ import annotations

from hintplan.planner.expressions.coercion import cast
from hintplan.planner.expressions.functions.arguments import (
    Builder,
    Signature,
    as_pattern,
    check_arguments,
    choose,
    integer_of,
    integer_or_none,
    nonempty_text_literal,
)
from hintplan.planner.expressions.typed import BOOLEAN, INT, STRING, Expr, call, literal
from hintplan.planner.syntax.source import Source

SIGNATURES: dict[str, Signature] = {
    "BTRIM": ("btrim", ("text", "text?"), STRING),
    "CHARACTER_LENGTH": ("length", ("text",), INT),
    "CHAR_LENGTH": ("length", ("text",), INT),
    "CHR": ("chr", ("integer",), STRING),
    "CONCAT": ("concat", ("text*",), STRING),
    "CONCAT_WS": ("concat_ws", ("text", "text*"), STRING),
    "ENDSWITH": ("endswith", ("text", "text"), BOOLEAN),
    "INSTR": ("instr", ("text", "text"), INT),
    "LEFT": ("left", ("text", "integer"), STRING),
    "LOWER": ("lower", ("text",), STRING),
    "MD5": ("md5", ("text",), STRING),
    "POSITION": ("locate", ("text", "text"), INT),
    "REPEAT": ("repeat", ("text", "integer"), STRING),
    "REVERSE": ("reverse", ("text",), STRING),
    "RIGHT": ("right", ("text", "integer"), STRING),
    "SHA1": ("sha1", ("text",), STRING),
    "STARTSWITH": ("startswith", ("text", "text"), BOOLEAN),
    "TRANSLATE": ("translate", ("text", "text", "text"), STRING),
    "UPPER": ("upper", ("text",), STRING),
    "URL_DECODE": ("try_url_decode", ("text",), STRING),
    "URL_ENCODE": ("url_encode", ("text",), STRING),
}
_MAY_BE_NULL = literal(None, STRING)


def _trim(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile TRIM, LTRIM and RTRIM of blanks, or of the characters in the second argument, which Spark takes first."""
    check_arguments(source, name, args, ("text", "text?"), offset)
    if name == "TRIM" and len(args) == 2:
        return call("btrim", args, STRING, offset)
    return call(name.lower(), tuple(reversed(args)), STRING, offset)


def _replace(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile REPLACE; refuse empty search text, because Flink finds it between all characters, and Spark nowhere."""
    check_arguments(source, name, args, ("text", "text", "text"), offset)
    nonempty_text_literal(source, "the text that REPLACE replaces", args[1], offset)
    return call("replace", args, STRING, offset)


def _substring(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile SUBSTRING: unlike in Spark, a start before the text gives empty text, a negative length gives NULL."""
    check_arguments(source, name, args, ("text", "integer", "integer?"), offset)
    text, start = args[0], args[1]
    result: Expr = call("substring", args, STRING, offset)
    if (from_ := integer_or_none(start)) is None or from_ < 0:
        before = call("<", (call("+", (start, call("length", (text,), INT, offset)), INT, offset), literal(0, INT)),
                      BOOLEAN, offset)  # fmt: skip
        result = choose(before, literal("", STRING), result)
    if len(args) == 3:
        length = integer_or_none(args[2])
        if length is None or length < 0:
            result = choose(call("<", (args[2], literal(0, INT)), BOOLEAN, offset), _MAY_BE_NULL, result)
    return result


def _pad(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile LPAD and RPAD: a negative length gives NULL. The padding must be a literal that is not empty."""
    check_arguments(source, name, args, ("text", "integer", "text"), offset)
    nonempty_text_literal(source, f"what {name} pads with", args[2], offset)
    padded: Expr = call(name.lower(), args, STRING, offset)
    if (length := integer_or_none(args[1])) is None or length < 0:
        padded = choose(call("<", (args[1], literal(0, INT)), BOOLEAN, offset), _MAY_BE_NULL, padded)
    return padded


def _locate(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("text", "text", "integer?"), offset)
    if len(args) == 3:
        integer_of(source, "the position at which LOCATE starts", args[2], 1, offset)
    return call("locate", args, INT, offset)


def _sha2(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    if name == "SHA2":
        check_arguments(source, name, args, ("text", "integer"), offset)
        bits = integer_of(source, "the length of SHA2", args[1], 224, offset)
    else:
        check_arguments(source, name, args, ("text",), offset)
        bits = int(name.removeprefix("SHA"))
    if bits not in (224, 256, 384, 512):
        raise source.error(f"SHA2 has no length {bits}", offset, "use 224, 256, 384 or 512")
    return call("sha2", (args[0], literal(bits, INT)), STRING, offset)


def _to_base64(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile TO_BASE64 without the line breaks that Spark adds after 76 characters."""
    check_arguments(source, name, args, ("text",), offset)
    lines = call("base64", args, STRING, offset)
    return call("regexp_replace", (lines, literal("\\s+", STRING), literal("", STRING)), STRING, offset)


def _from_base64(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("text",), offset)
    decoded = call("try_to_binary", (args[0], literal("base64", STRING)), STRING, offset)
    return call("CAST", (decoded,), STRING, offset)


def _split_index(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile SPLIT_INDEX: parts count from 0. Empty text, and an index after the last part, give NULL."""
    check_arguments(source, name, args, ("text", "text", "integer"), offset)
    separator = nonempty_text_literal(source, "the separator of SPLIT_INDEX", args[1], offset)
    parts = call("split", (args[0], literal(as_pattern(separator), STRING)), STRING, offset)
    part = call("get", (parts, args[2]), STRING, offset)
    return choose(call("<>", (args[0], literal("", STRING)), BOOLEAN, offset), part, _MAY_BE_NULL)


def _initcap(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    """Compile INITCAP: as in Flink, words consist of ASCII letters and digits, and other letters stay as they are.

    URL encoding turns all other characters into bytes. A blank after each byte and each sign makes Spark begin a word
    there, and is removed afterwards.
    """
    check_arguments(source, name, args, ("text",), offset)
    encoded = call("url_encode", args, STRING, offset)
    apart = (encoded, literal("%..|[-+.*_]", STRING), literal("$0 ", STRING))
    words = call("initcap", (call("regexp_replace", apart, STRING, offset),), STRING, offset)
    joined = call("replace", (words, literal(" ", STRING), literal("", STRING)), STRING, offset)
    return call("try_url_decode", (joined,), STRING, offset)


def _elt(source: Source, name: str, args: tuple[Expr, ...], offset: int) -> Expr:
    check_arguments(source, name, args, ("integer", "text*"), offset)
    chosen: Expr = _MAY_BE_NULL
    for i, value in reversed(list(enumerate(args[1:], 1))):
        chosen = choose(call("=", (args[0], literal(i, INT)), BOOLEAN, offset), cast(value, STRING, offset), chosen)
    return chosen


BUILDERS: dict[str, Builder] = {
    "ELT": _elt,
    "FROM_BASE64": _from_base64,
    "INITCAP": _initcap,
    "LOCATE": _locate,
    "LPAD": _pad,
    "LTRIM": _trim,
    "REPLACE": _replace,
    "RPAD": _pad,
    "RTRIM": _trim,
    **dict.fromkeys(("SHA2", "SHA224", "SHA256", "SHA384", "SHA512"), _sha2),
    "SPLIT_INDEX": _split_index,
    "SUBSTR": _substring,
    "SUBSTRING": _substring,
    "TO_BASE64": _to_base64,
    "TRIM": _trim,
}
