"""What an expression of a plan may say, and what Spark gets to see of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hintplan.plans.declarations.functions import ALLOWED_FUNCTIONS
from hintplan.plans.errors import RunError
from hintplan.runtime.expressions.allowed import MAX_LENGTH, check_expression
from hintplan.runtime.expressions.spark_columns import register_called

COLUMNS = {(name,): name for name in ("a", "b", "s", "ts", "arr", "m", "o", "two words", "back`tick", "select")}
ROOT = Path(__file__).parents[3]
PATH = "operators.calc_t.filter"


def checked(text: str) -> str:
    return check_expression(text, COLUMNS, operator="calc_t", path=PATH).sql


REFUSED = {
    "reflect('java.lang.System', 'getenv')": "reflect",
    "REFLECT('java.lang.System', 'getenv')": "reflect",
    "`reflect`('java.lang.System', 'getenv')": "reflect",
    "system.builtin.reflect('java.lang.System', 'exit')": "reflect",
    "try_reflect('java.lang.System', 'getenv')": "try_reflect",
    "java_method('java.lang.Runtime', 'getRuntime')": "java_method",
    "coalesce(s, java_method('java.lang.System', 'getenv', 'HOME'))": "java_method",
    "CASE WHEN a > 0 THEN reflect('x', 'y') END": "reflect",
    "identifier('reflect')('x', 'y')": "not an expression",
    "my_udf(a)": "my_udf",
    "default.my_udf(a)": "my_udf",
    "input_file_name()": "input_file_name",
    "current_user": "current_user",
    "session_user": "session_user",
    "current_user()": "current_user",
    "(SELECT 1)": "contains a subquery",
    "a IN (SELECT 1)": "contains a subquery",
    "EXISTS(SELECT 1 FROM text.`/etc/hostname`)": "contains a exists",
    "text.`/etc/hostname`": "no column of the input",
    "transform(arr, x -> reflect('a', 'b'))": "lambda",
    "filter(arr, x -> x > 1)": "lambda",
    "sum(a)": "contains a sum",
    "sum(a) OVER ()": "contains a window",
    "count(*)": "contains a count",
    "explode(arr)": "explode",
    "*": "star",
    ":name": "placeholder",
    "?": "placeholder",
    "a; DROP TABLE t": "not an expression",
    "a AS b": "not an expression",
    "": "not an expression",
    "a +": "not an expression",
    "'${env:HOME}'": "Spark would replace",
    "`${spark.app.id}`": "Spark would replace",
    "s COLLATE unicode": "collate",
    "{fn upper(s)}": "contains '{'",
    "a ? b": "contains '\\?'",
    "arr:f": "not an expression",
    "s = 'it''s'": "doubles a quote",
    "s = '\\u0041'": "contains",
    "x'f\\'": "contains|not an expression",
    "x'fg'": "contains|not an expression",
    "N'x'": "contains",
    "regexp_replace(s)": "not an expression",
    "a + .5": "write 0.5",
    "hp_json_value(s, s)": "takes a literal as argument 2, the path",
    "hp_json_value(s, '$[*]')": "is given a path that it cannot follow: '\\[\\*\\]' in the path",
    "hp_json_value(s)": "takes 2 to 4 arguments, found 1",
    "HP_IS_JSON(s, 'number')": "takes 'value', 'object', 'array' or 'scalar' as argument 2",
    "hp_json_number(s, s)": "takes 1 argument, found 2",
    "hp_json_length(s)": "hp_json_length",
    "nothing": "'nothing', which is no column",
    "A": "'A', which is no column",
    "(" * 201 + "a" + ")" * 201: "200 levels",
    "CASE WHEN a = 1 THEN " * 201 + "1" + " END" * 201: "200 levels",
    "NOT " * 5000 + "a": "too deeply",
    "arr" + "[0]" * 5000: "deep|chain",
    " + ".join(["a"] * 500): "chains more than",
    ", ".join(["coalesce(a", *["1"] * 6000]) + ")": "5,000 parts",
    "a" + " " * MAX_LENGTH: "262,145 characters",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_may_not_run_is_refused_with_operator_and_path(text: str) -> None:
    with pytest.raises(RunError, match=REFUSED[text]) as caught:
        checked(text)
    (found,) = caught.value.diagnostics
    assert found.path == PATH
    assert "calc_t" in found.message
    assert len(found.message) < 500


ACCEPTED = {
    "a+1>2": "`a` + 1 > 2",
    "`two words`||'x'": "`two words` || 'x'",
    "`back``tick`": "`back``tick`",
    "`select` = 1": "`select` = 1",
    "o.f.g": "`o` . `f` . `g`",
    "m['k']": "`m` [ 'k' ]",
    "arr[0].f": "`arr` [ 0 ] . `f`",
    "CAST(a AS DECIMAL(10, 2))": "CAST ( `a` AS DECIMAL ( 10 , 2 ) )",
    "ts - INTERVAL '5' SECOND": "`ts` - INTERVAL '5' SECOND",
    "a -- then a comment, reflect('x')": "`a`",
    "a /* reflect('x') */ + 1": "`a` + 1",
    "s = 'reflect(1)'": "`s` = 'reflect(1)'",
    's = "it\'s"': "`s` = 'it\\'s'",
    "s = r'\\d'": "`s` = '\\\\d'",
    "a IN (1, 2) AND b IS NOT NULL": "`a` IN ( 1 , 2 ) AND `b` IS NOT NULL",
    "date_sub(ts, 1 + 2)": "date_sub ( `ts` , 1 + 2 )",
    "10L + 1.5BD + 1e2": "10L + 1.5BD + 1e2",
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_harmless_text_is_written_anew_with_columns_quoted(text: str) -> None:
    assert checked(text) == ACCEPTED[text]


def test_many_conjuncts_are_not_a_deep_chain() -> None:
    assert checked(" AND ".join(f"a <> {number}" for number in range(1000))).count("AND") == 999


def test_nesting_up_to_the_limit_is_accepted() -> None:
    assert checked("(" * 199 + "a" + ")" * 199).count("(") == 199


def test_a_join_condition_addresses_columns_by_side() -> None:
    columns = {("l", "k"): "__l_k", ("r", "k"): "__r_k", ("r", "f"): "__r_f"}
    found = check_expression("r.k > l.k + 1 AND r.f.g = 2", columns, operator="join_l_r", path="p")
    assert found.sql == "`__r_k` > `__l_k` + 1 AND `__r_f` . `g` = 2"
    assert set(found.columns) == {("l", "k"), ("r", "k"), ("r", "f")}
    with pytest.raises(RunError, match="'k', which is no column of the input"):
        check_expression("k = 1", columns, operator="join_l_r", path="p")


@pytest.mark.parametrize("text", REFUSED)
def test_a_harmful_part_is_refused_in_any_conjunct(text: str) -> None:
    with pytest.raises(RunError):
        check_expression(f"a = 1 AND ({text}) AND b", COLUMNS, operator="calc_t", path=PATH)


@pytest.mark.parametrize(
    "text", ["a = 1 AND b and s BETWEEN 'x' AND 'y'", "(a = 1 AND b) AND NOT b", "a = 1 AND b OR b"]
)
def test_the_conjuncts_are_the_pieces_that_spark_gets_with_the_trees_of_their_texts(text: str) -> None:
    whole = check_expression(text, COLUMNS, operator="calc_t", path=PATH)
    parts = whole.conjuncts()
    assert " AND ".join(part.sql for part in parts) == whole.sql.replace(" and ", " AND ")
    for part in parts:
        alone = check_expression(part.text, COLUMNS, operator="calc_t", path=PATH)
        assert (part.sql, part.tree, set(part.columns)) == (alone.sql, alone.tree, set(alone.columns))


def test_only_the_check_makes_checked_expressions_and_few_modules_give_spark_a_text() -> None:
    """The others give it a text of their own: no part of a plan but checked expressions and quoted names."""
    sources = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (ROOT / "runtime").rglob("*.py")}
    assert [path for path, source in sources.items() if " CheckedExpression(" in source] == [
        "runtime/expressions/allowed.py"
    ]
    assert {path for path, source in sources.items() if "F.expr(" in source or "selectExpr(" in source} == {
        "runtime/builders/aggregate.py",
        "runtime/builders/lookup_join.py",
        "runtime/builders/union.py",
        "runtime/builders/values.py",
        "runtime/builders/window_frames.py",
        "runtime/expressions/spark_columns.py",
        "runtime/spark/wall_clocks.py",
    }


def test_nothing_that_calls_into_the_jvm_or_reads_files_is_on_the_list() -> None:
    dangerous = {
        "reflect", "try_reflect", "java_method", "input_file_name", "input_file_block_start", "current_user", "user",
        "session_user", "current_database", "current_catalog", "from_avro", "schema_of_avro", "java_udf",

    }  # fmt: skip
    assert not dangerous & {name.lower() for name in ALLOWED_FUNCTIONS}


TEXTS = [
    "it's", "a\\", "\\'", "''", "\\\\'", "a\nb", "\t", "\0x", "é😀", "%_", "\\%", "\\u0041", "\\101", "`", '"', "--",
    "/* */", "\\n", "\r\n", "\x1a", "a\\\nb", "$1", "{}", "') OR reflect('a", "\\') OR reflect(\\'a",
]  # fmt: skip


@pytest.mark.spark
def test_string_literals_reach_spark_as_they_were_meant(spark: SparkSession) -> None:
    frame = spark.range(1)
    for text in TEXTS:
        literal = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        assert frame.select(F.expr(checked(literal))).collect()[0][0] == text


SAME_MEANING = [
    "a / 2", "a div 2", "a % 2", "-a", "a - -1", "a * (1 + 2)", "a - (1 - 2)", "NOT a = 1 OR b", "s LIKE '%a\\_%'",
    "s || a", "a <=> NULL", "a IS NOT DISTINCT FROM 7", "CASE a WHEN 7 THEN 'x' ELSE 'y' END",
    "CASE WHEN a > 1 THEN 1.5 ELSE 2 END", "TRY_CAST(s AS INT)", "CAST(a AS STRING)", "CAST(1.25 AS DECIMAL(10, 1))",
    "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00'", "TIMESTAMP_NTZ '2024-02-29 12:00:00'", "a::string",
    "ts + INTERVAL '1' DAY", "ts - INTERVAL '90' MINUTE", "EXTRACT(YEAR FROM ts)", "a BETWEEN 1 AND 7",
    "CASE WHEN a > 1 THEN s ELSE raise_error('never') END",
    "a NOT IN (1, 2)", "s IN ('x', 'banana')", "10L", "1e2", "1.50", "2.5BD", "x'ff00'", "CAST(NULL AS DOUBLE) IS NULL",
    "'a' 'b'", "~a & 12 | 1 ^ 3", "s RLIKE '^ba'", "s ILIKE 'BANANA%'", "b IS NOT TRUE", "trim(BOTH 'b' FROM s)",
]  # fmt: skip

# One call at least of every function that a plan may call, each in a way that sqlglot might mistake.
CALLS = [
    "abs(-a)", "ascii(s)", "btrim(s)", "btrim(s, 'b')", "ceil(2.5)", "ceiling(2.5)", "char_length(s)",
    "character_length(s)", "coalesce(NULL, s)", "concat(s, 'x', a)", "concat_ws('-', s, a)", "contains(s, 'an')",
    "convert_timezone('UTC', 'Asia/Tokyo', ts)",
    "current_timestamp() > ts", "date_add(ts, 1 + 2)", "date_format(ts, 'yyyy-MM')", "date_sub(ts, 1 + 2)",
    "date_trunc('MONTH', ts)", "datediff(DATE '2024-03-01', ts)", "day(ts)", "dayofmonth(ts)", "dayofweek(ts)",
    "dayofyear(ts)", "endswith(s, '_1')", "exp(0)", "floor(2.5)", "greatest(a, 9)", "hour(ts)", "if(b, 1, 2)",
    "ifnull(NULL, a)", "initcap(s)", "instr(s, 'an')", "isnan(CAST('NaN' AS DOUBLE))", "isnotnull(a)", "isnull(a)",
    "last_day(ts)", "least(a, 9)", "left(s, 2)", "length(s)", "ln(1)", "locate('an', s, 3)", "log10(100)",
    "lower('ABC')", "lpad(s, 10, '*')", "ltrim('b', s)", "ltrim('  x')", "md5(s)", "minute(ts)", "mod(a, 4)",
    "month(ts)", "now() > ts", "nullif(a, 7)", "nvl(NULL, a)", "nvl2(NULL, 1, 2)", "pmod(-a, 4)", "position('an', s)",
    "pow(a, 2)", "power(a, 2)", "quarter(ts)", "regexp_like(s, 'an+')", "regexp_replace(s, '(a)n', '$1')",
    "repeat(s, 2)", "replace(s, 'an', '-')", "reverse(s)", "right(s, 2)", "round(2.345, 2)", "rpad(s, 10, '*')",
    "rtrim('1', s)", "second(ts)", "sha2(s, 256)", "shiftleft(a, 3)", "shiftright(a, 1)",
    "sign(-a)", "signum(-a)", "try_add(a, 1)", "try_multiply(a, 2)", "try_subtract(a, 1)", "split_part(s, '_', 2)",
    "sqrt(49)",
    "startswith(s, 'ba')", "substr(s, 2, 3)", "substring(s, 2, 3)", "timestamp_micros(a)", "timestamp_millis(a)",
    "timestamp_seconds(a)", "to_date('2024-02-29')", "to_date('29.02.2024', 'dd.MM.yyyy')",
    "to_timestamp('2024-02-29')", "to_timestamp('29.02.2024', 'dd.MM.yyyy')", "translate(s, 'an', 'AN')", "trim(s)",
    "unix_micros(CAST(ts AS TIMESTAMP))", "unix_millis(CAST(ts AS TIMESTAMP))", "unix_seconds(CAST(ts AS TIMESTAMP))",
    "upper(s)", "weekofyear(ts)", "year(ts)", "acos(0.5)", "add_months(ts, 1)", "asin(0.5)", "atan(a)", "atan2(a, 2)",
    "base64(s)", "bin(a)", "chr(97)", "cos(a)", "cosh(a)", "cot(a)", "degrees(a)", "e()", "from_unixtime(a, 'yyyy')",
    "get(split(s, '_'), 1)", "hex(a)", "log2(a)", "pi()", "radians(a)", "regexp_count(s, 'an')",
    "regexp_extract(s, '(a)n', 1)", "regexp_extract_all(s, '(a)n', 1)",
    "regexp_instr(s, 'n')", "regexp_substr(s, 'n+')", "sha1(s)", "sin(a)", "sinh(a)",
    "split(s, '_')", "tan(a)", "tanh(a)", "timestampadd(HOUR, a, ts)",
    "timestampdiff(HOUR, ts, TIMESTAMP_NTZ '2024-03-01 00:00:00')", "try_parse_url('http://h/p?k=v', 'QUERY', 'k')",
    "try_to_binary('YQ==', 'base64')", "try_to_timestamp('2024-02-29', 'yyyy-MM-dd')", "try_url_decode('a%20b')",
    "url_encode(s)", "encode(s, 'UTF-8')", "unhex('4A')", "format_string('%s-%05d', s, a)", "trunc(ts, 'MONTH')",
    "array(a, NULL, 9)", "array_append(array(a), 8)", "array_compact(array(a, NULL))", "array_contains(array(a, 9), 9)",
    "array_distinct(array(a, a, 9))", "array_except(array(a, 9), array(9))", "array_intersect(array(a, 9), array(9))",
    "array_join(array(s, 'x'), '-', '?')", "array_max(array(a, 9))", "array_min(array(a, 9))",
    "array_position(array(a, 9), 9)", "array_prepend(array(a), 8)", "array_remove(array(a, 9), 9)",
    "array_repeat(s, CAST(a AS INT))",
    "array_sort(array(9, a, NULL))", "array_union(array(a), array(9))", "map('x', a, s, 9)",
    "map_concat(map('x', a), map('y', 9))", "map_entries(map('x', a))", "map_from_arrays(array('x', s), array(a, 9))",
    "map_keys(map('x', a))", "map_values(map('x', a))", "named_struct('x', a, 'y z', s)", "size(array(a, 9))",
    "to_json(array(s, NULL))", "hp_is_json(s, 'value')", "hp_json_boolean('[true]', '$[0]')",
    "hp_json_double('[1.5]', '$[0]', 0.5D, 2.5D)", "hp_json_exists(s, '$', true)", "hp_json_integer('[7]', '$[0]')",
    "hp_json_number('1.0E10')", "hp_json_query('{\"b\":1,\"a\":[2]}', 'lax $', 'conditional')", "hp_json_quote(s)",
    "hp_json_unquote('\"x\"')", "hp_json_value('{\"a b\":1e3}', '$[\\'a b\\']', 'none')",
    "slice(array(a, 8, 9), 2, 2)", "sort_array(array(9, a, NULL), false)", "str_to_map('a=1,b=2', ',', '=')",
]  # fmt: skip


def test_every_allowed_function_is_called_in_these_tests() -> None:
    failing = {"raise_error"}  # in SAME_MEANING, in a branch that is not taken
    called = {call.partition("(")[0].lower() for call in CALLS} | failing
    missing = sorted(ALLOWED_FUNCTIONS - called)
    assert missing == [], f"write a call of each of {missing} into CALLS"
    assert called == set(ALLOWED_FUNCTIONS)


@pytest.mark.spark
def test_rewriting_does_not_change_what_spark_computes(spark: SparkSession) -> None:
    texts = [*SAME_MEANING, *CALLS]
    frame = spark.sql("SELECT 7 AS a, true AS b, 'banana_1' AS s, TIMESTAMP_NTZ '2024-02-28 23:30:00' AS ts")
    for text in CALLS:
        register_called(frame, check_expression(text, COLUMNS, operator="calc_t", path=PATH))
    columns = [F.expr(text).alias(f"given{i}") for i, text in enumerate(texts)]
    columns += [F.expr(checked(text)).alias(f"checked{i}") for i, text in enumerate(texts)]
    both = frame.select(*columns)
    values = both.collect()[0]
    for i, text in enumerate(texts):
        assert both.schema[f"checked{i}"].dataType == both.schema[f"given{i}"].dataType, text
        assert repr(values[f"checked{i}"]) == repr(values[f"given{i}"]), text
