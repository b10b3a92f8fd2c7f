"""The engine, a thin layer around a stateful operator on Spark: route and pack rows, call it, unpack its output.

    rows -> pack -> one blob per partition -> groupBy(bucket) -> process -> blobs -> unpack -> rows

Rows cross every boundary as Arrow IPC blobs and never become Python objects. The engine owns routing, blobs, timers,
metrics and the location of state segments. It knows no joins and no aggregates.
"""
