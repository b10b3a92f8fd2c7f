"""The functions that expressions in a plan may call.

They are functions of Spark, and hintplan's own JSON functions. All are pure functions of their arguments and the clock:
none calls into the JVM, reads files, raises errors on purpose or exposes the cluster. The list includes all functions
that the planner emits, and more that a person may want to write. Operators, CAST, CASE and literals are not functions
and are always allowed.

>>> "upper" in ALLOWED_FUNCTIONS, "java_method" in ALLOWED_FUNCTIONS
(True, False)
"""

from __future__ import annotations

from hintplan.plans.declarations.json_functions import JSON_FUNCTIONS

_TEXT = """
ascii base64 btrim char_length character_length chr concat concat_ws contains encode endswith format_string get initcap
instr left length locate lower lpad ltrim md5 position regexp_count regexp_extract regexp_extract_all regexp_instr
regexp_like regexp_replace regexp_substr repeat replace reverse right rpad rtrim sha1 sha2 split split_part startswith
substr substring translate trim try_parse_url try_to_binary try_url_decode unhex upper url_encode
"""

_NUMBERS = """
abs acos asin atan atan2 bin ceil ceiling cos cosh cot degrees e exp floor hex ln log10 log2 mod pi pmod pow power
radians round shiftleft shiftright sign signum sin sinh sqrt tan tanh try_add try_multiply try_subtract
"""

_TIME = """
add_months convert_timezone current_timestamp date_add date_format date_sub date_trunc datediff day dayofmonth dayofweek
dayofyear from_unixtime hour last_day minute month now quarter second timestamp_micros timestamp_millis
timestamp_seconds timestampadd timestampdiff to_date to_timestamp trunc try_to_timestamp
unix_micros unix_millis unix_seconds weekofyear year
"""

_NESTED = """
array array_append array_compact array_contains array_distinct array_except array_intersect array_join array_max
array_min array_position array_prepend array_remove array_repeat array_sort array_union map map_concat map_entries
map_from_arrays map_keys map_values named_struct size slice sort_array str_to_map
"""

_JSON = f"to_json {' '.join(JSON_FUNCTIONS)}"

_CHOICE = "coalesce greatest if ifnull isnull isnotnull isnan least nullif nvl nvl2 raise_error"

ALLOWED_FUNCTIONS: frozenset[str] = frozenset(f"{_TEXT} {_NUMBERS} {_TIME} {_NESTED} {_JSON} {_CHOICE}".split())
"""The names of the functions, in lower case."""

_WORDS = """
AND AS BETWEEN BOTH CASE CAST DISTINCT DIV ELSE END ESCAPE EXTRACT FALSE FOR FROM ILIKE IN INTERVAL IS LEADING LIKE
NOT NULL OR PLACING RLIKE THEN TO TRAILING TRUE TRY_CAST WHEN
ARRAY BIGINT BINARY BOOLEAN CHAR DATE DECIMAL DOUBLE FLOAT INT MAP SMALLINT STRING STRUCT TIMESTAMP TIMESTAMP_LTZ
TIMESTAMP_NTZ TINYINT VARCHAR
YEAR YEARS QUARTER MONTH MONTHS WEEK WEEKS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND SECONDS MILLISECOND
MILLISECONDS MICROSECOND MICROSECONDS DOW DAYOFWEEK DAYOFWEEK_ISO DOY YEAROFWEEK
"""

ALLOWED_WORDS: frozenset[str] = frozenset(_WORDS.split())
"""The words, in capitals, that an expression may contain in addition to names of functions and quoted columns."""
