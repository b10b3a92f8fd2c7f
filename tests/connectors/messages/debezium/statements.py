"""What happens in PostgreSQL while Debezium watches: the tables, and the statements after its snapshot."""

from __future__ import annotations

TABLES = (
    "CREATE TABLE customers (id BIGINT PRIMARY KEY, name TEXT, vip BOOLEAN, token UUID, extra JSONB, "
    "made TIMESTAMP(3))",
    """CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, price NUMERIC(10, 2), weight DOUBLE PRECISION,
    small SMALLINT, ratio REAL, day DATE, at TIMESTAMP(6), seen TIMESTAMPTZ, code VARCHAR(10), raw BYTEA)""",
    "CREATE TABLE notes (id BIGINT PRIMARY KEY, done BOOLEAN, text TEXT)",
    "CREATE TABLE visits (id BIGINT PRIMARY KEY, page TEXT)",
    "CREATE TABLE tags (id BIGINT PRIMARY KEY, tag TEXT NOT NULL, text TEXT)",
    *(f"ALTER TABLE {name} REPLICA IDENTITY FULL" for name in ("customers", "orders", "notes", "visits")),
    *(f"ALTER TABLE {name} ALTER COLUMN text SET STORAGE EXTERNAL" for name in ("notes", "tags")),
)
"""tags has the replica identity that a table has by default, its primary key; long texts are stored apart.

The Base64 of the bytes of -26588.24, without the point, is 1234.
"""
BEFORE = (
    "INSERT INTO customers VALUES (1, 'Ann', TRUE, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": [1, null]}', "
    "'2021-01-02 03:04:05.678'), (2, 'Bob \"é\"', FALSE, NULL, NULL, NULL), (3, NULL, NULL, NULL, '\"x\"', NULL)",
    "INSERT INTO orders VALUES (10, 1, 12.50, 0.1, 7, 1.5, '2020-02-29', '2020-03-08 02:30:00.123456', "
    "'2020-03-08 02:30:00.123456+02', 'a', '\\x00ff'), (11, 2, -0.01, -1e300, -32768, "
    "NULL, NULL, NULL, NULL, '', NULL)",
    "INSERT INTO notes VALUES (1, FALSE, repeat('x', 2500))",
    "INSERT INTO visits VALUES (1, '/'), (2, '/shop')",
    "INSERT INTO tags VALUES (1, 'red', NULL)",
)
"""What the snapshot finds: its messages have the op r."""
AFTER = (
    "INSERT INTO orders VALUES (12, 1, 99999999.99, 2.5, 1, 2.25, '1999-12-31', '1999-12-31 23:59:59', "
    "'1999-12-31 23:59:59Z', 'new', '')",
    "UPDATE orders SET price = 20, code = NULL WHERE id = 10",
    "UPDATE orders SET id = 13 WHERE id = 11",
    "UPDATE customers SET name = 'Anna' WHERE id = 1",
    "DELETE FROM customers WHERE id = 3",
    "INSERT INTO customers VALUES (4, 'Dee', TRUE, NULL, NULL)",
    "BEGIN; INSERT INTO orders (id, customer, price) VALUES (14, 4, 5), (15, 4, 6); DELETE FROM orders WHERE id = 14; "
    "COMMIT",
    "BEGIN; DELETE FROM orders WHERE id = 12; INSERT INTO orders (id, customer) VALUES (99, 1); ROLLBACK",
    "DELETE FROM orders WHERE id = 12",
    "INSERT INTO orders (id, customer, price) VALUES (12, 2, 0.75)",
    "INSERT INTO orders (id, weight, ratio, day, at) VALUES (16, 'NaN', '-Infinity', '0044-03-15', '0001-01-01')",
    "INSERT INTO orders (id, weight, ratio, price) VALUES (17, 1e-7, 1e10, 0)",
    "INSERT INTO orders (id, price) VALUES (18, -26588.24)",
    "UPDATE notes SET done = TRUE WHERE id = 1",
    "INSERT INTO visits VALUES (3, '/cart')",
    "TRUNCATE visits",
    "INSERT INTO visits VALUES (4, '/')",
    "INSERT INTO tags VALUES (2, 'blue', repeat('y', 2500))",
    "UPDATE tags SET tag = 'green' WHERE id = 2",
    "DELETE FROM tags WHERE id = 1",
)
ROWS_BEFORE = 9
MODES = {
    "defaults": {"converter.schemas.enable": "false"},
    "string": {"decimal.handling.mode": "string", "converter.schemas.enable": "true"},
    "double": {
        "decimal.handling.mode": "double", "time.precision.mode": "isostring", "converter.schemas.enable": "false",
        "skipped.operations": "none",
    },
}  # fmt: skip
"""What is set in Debezium beside where the database is."""
