"""What each option of a connector means, in a line: what an editor shows while a plan is typed.

Names, kinds and defaults are in :mod:`plans.connectors.table`; docs/connectors.md says the rest. A test fails when an
option lacks its line.

>>> OPTION_WORDS["print"]["print-identifier"]
'What stands before each line.'
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CONNECTOR_WORDS", "FIELD_WORDS", "OPTION_WORDS"]

CONNECTOR_WORDS: Mapping[str, str] = {
    "blackhole": "A sink that drops what it gets.",
    "datagen": "A source that makes rows up.",
    "filesystem": "Files in a directory: csv, json or parquet.",
    "http": "Looks rows up in a web service that answers in JSON.",
    "jdbc": "A table in SQLite or PostgreSQL.",
    "print": "A sink that prints its rows as Flink does.",
    "python": "Looks rows up with a class of yours.",
    "redis": "Looks rows up in Redis.",
}

FIELD_WORDS: Mapping[str, str] = {
    "kind": "How the values of the column are made: random or sequence.",
    "min": "The least random number.",
    "max": "The greatest random number.",
    "length": "The length of random text and bytes.",
    "start": "The first value of a sequence.",
    "end": "The last value of a sequence.",
}

_CONNECTION = {
    "connection.pool-size": "The most connections of a Python worker for asynchronous lookups.",
    "timeout": "How long connecting may take, and each answer.",
}

OPTION_WORDS: Mapping[str, Mapping[str, str]] = {
    "blackhole": {},
    "datagen": {
        "rows-per-second": "Rows for each second since the query was started.",
        "number-of-rows": "The number of rows in all; without end if absent.",
    },
    "filesystem": {
        "path": "The directory of the files.",
        "format": "The format of the files.",
        "source.max-files-per-trigger": "The number of files in a micro-batch; all if absent.",
        "source.changelog": "Whether rows are changes, with the row kind in a field op; upsert: by primary key.",
        "sink.changelog": "Whether every change is written, with its row kind in a last column op; else only inserts.",
        "json.ignore-parse-errors": "Whether what cannot be read becomes NULL; else such a row fails the run.",
        "csv.ignore-parse-errors": "Whether what cannot be read becomes NULL; else such a row fails the run.",
        "csv.field-delimiter": "What stands between fields: one character, or \\t.",
        "csv.quote-character": "What stands around fields; doubled inside of them.",
        "csv.disable-quote-character": "Whether there is no quoting at all.",
        "csv.escape-character": "What takes away the meaning of the next character; the quote character if absent.",
        "csv.allow-comments": "Whether lines that start with # are skipped.",
        "csv.null-literal": "The text that means NULL.",
    },
    "http": {
        "url": "The address, with key columns in braces in the path or the query.",
        "authorization": "The header of that name, as ${env:NAME}.",
        "response.pointer": "A JSON pointer to the rows of the answer, such as /data/items.",
        "response.max-bytes": "A longer answer fails the query.",
        **_CONNECTION,
    },
    "jdbc": {
        "url": "jdbc:sqlite:<path> or jdbc:postgresql://host:port/database.",
        "table-name": "The table in the database.",
        "username": "The user of the database; SQLite has none.",
        "password": "The password, as ${env:NAME}.",
        "connection.pool-size": _CONNECTION["connection.pool-size"],
        "connection.timeout": "How long a lookup waits for a connection.",
        "statement.timeout": "When the server ends a query.",
        "scan.fetch-size": "The number of rows fetched at once for a full cache.",
    },
    "print": {"print-identifier": "What stands before each line."},
    "python": {
        "class": "A LookupFunction, as module.Class, for synchronous lookups.",
        "async-class": "An AsyncLookupFunction, as module.Class, for asynchronous lookups.",
        "scan-class": "A ScanFunction, as module.Class, for a full cache.",
    },
    "redis": {
        "host": "The host of the server.",
        "port": "The port of the server.",
        "database": "The number of the database.",
        "username": "The user.",
        "password": "The password, as ${env:NAME}.",
        "ssl": "Whether the connection is encrypted, and the certificate verified.",
        "key-pattern": "How keys are made, with columns in braces, such as user:{id}.",
        "data-type": "What the values are.",
        **_CONNECTION,
    },
}
