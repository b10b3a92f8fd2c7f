"""Every Flink type has one Spark and one Arrow type, and the two agree with Spark's own mapping between them."""

import pyarrow as pa
import pytest

from plans.declarations.types import _PLAIN
from runtime.types import to_arrow, to_spark
from tests.spark.arrow_types import spark_sends

TYPES = {
    "BOOLEAN": ("boolean", pa.bool_()),
    "TINYINT": ("tinyint", pa.int8()),
    "SMALLINT": ("smallint", pa.int16()),
    "INT": ("int", pa.int32()),
    "BIGINT NOT NULL": ("bigint", pa.int64()),
    "FLOAT": ("float", pa.float32()),
    "DOUBLE": ("double", pa.float64()),
    "DECIMAL(12, 3)": ("decimal(12,3)", pa.decimal128(12, 3)),
    "DATE": ("date", pa.date32()),
    "STRING": ("string", pa.string()),
    "CHAR(3)": ("string", pa.string()),
    "VARCHAR(20)": ("string", pa.string()),
    "BYTES": ("binary", pa.binary()),
    "BINARY(2)": ("binary", pa.binary()),
    "VARBINARY(9)": ("binary", pa.binary()),
    "TIMESTAMP(3)": ("timestamp_ntz", pa.timestamp("us")),
    "TIMESTAMP_LTZ(6)": ("timestamp", pa.timestamp("us", tz="UTC")),
    "ARRAY<STRING>": ("array<string>", pa.list_(pa.string())),
    "MAP<STRING, INT>": ("map<string,int>", pa.map_(pa.string(), pa.int32())),
    "ROW<a INT, b ROW<c DATE>>": (
        "struct<a:int,b:struct<c:date>>",
        pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.date32())]))]),
    ),
}


@pytest.mark.parametrize("text", TYPES)
def test_a_type_maps_to_the_spark_and_arrow_type_of_the_table(text: str) -> None:
    simple, arrow = TYPES[text]
    assert to_spark(text).simpleString() == simple
    assert to_arrow(text) == arrow


@pytest.mark.parametrize("text", TYPES)
def test_spark_itself_would_send_the_type_as_that_arrow_type(text: str) -> None:
    assert spark_sends(to_spark(text)) == to_arrow(text)


def test_every_plain_type_of_the_plan_language_is_covered() -> None:
    assert {text.removesuffix(" NOT NULL") for text in TYPES} >= _PLAIN


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="VARIANT is not supported"):
        to_spark("VARIANT")
