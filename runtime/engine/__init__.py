"""The engine, a thin layer around a stateful operator on Spark: route and pack rows, call it, unpack its output.

    rows -> pack -> one blob per partition -> groupBy(bucket) -> process -> blobs -> unpack -> rows

Rows cross every boundary as Arrow IPC blobs and never become Python objects. The engine owns routing, blobs, timers,
metrics and where segments of state live; it knows neither joins nor aggregates.
"""
